// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `castanet run --driver xdp` between hosts: the IP router runs in the kernel, is changed by handlers, swapped, killed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use castanet_testkit::namespace::{has_tun, inside_with_bpf, run};
use castanet_testkit::until;
use common::live_xdp::{
    add_host, came_up, ctl, detached, has_driver_xdp as has_xdp, number, router, settle,
    start_in_kernel as start,
};
use common::{BINARY, signal};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn the_ip_router_forwards_in_the_kernel() {
    inside_with_bpf("the_ip_router_forwards_in_the_kernel", || {
        if !has_xdp() {
            return;
        }
        let (a, b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        // By default the router drops its privileges, and another process loads the programs.
        for arguments in [&[][..], &["--keep-privileges"]] {
            let live = start(&socket, arguments, &router());
            assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
            settle(&a, &socket);
            let before = came_up(&socket);
            a.ping(1000, "-i 0.001 10.0.1.2");
            // Both directions, and a few packets of ARP and the first ones.
            let (received, up) = (number(&socket, "one/FromDevice@1.count"), came_up(&socket) - before);
            assert!(received >= 1001 && up * 100 <= received, "{up} of {received} came up");
            // The others were ARP packets and neighbour solicitations.
            let sent = number(&socket, "two/ToDevice@7.count");
            // The router also sends ARP packets of its own.
            assert!((1001..=received + 20).contains(&sent), "{sent} of {received} sent");
            // Other frames may come between two readings.
            let (received, ledger) = loop {
                let (received, ledger) =
                    (number(&socket, "one/FromDevice@1.count"), ctl(&socket, &["read", "ledger"]));
                if number(&socket, "one/FromDevice@1.count") == received {
                    break (received, ledger);
                }
            };
            assert!(ledger.contains(&format!("one/FromDevice@1\tFromDevice\t{received}\t")), "{ledger}");
            // Packets that need the rest of the router come up: its own address, expired and long packets.
            a.ping(2, "-i 0.01 10.0.0.1");
            assert!(a.run("traceroute -n -q 1 -w 60 10.0.1.2").contains(" 1  10.0.0.1 "));
            // A handler changes what runs in the kernel.
            assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("ttl=63"));
            ctl(&socket, &["write", "one/ttl.active", "false"]);
            assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("ttl=64"), "replies keep their time to live");
            ctl(&socket, &["write", "one/ttl.active", "true"]);
            b.ping(100, "-i 0.001 10.0.0.2");
            drop(live);
            detached();
            let _ = std::fs::remove_file(&socket);
        }
    });
}

/// The IP router with a firewall of many rules. It drops pings with TTL 77.
fn firewall() -> String {
    let rules: String =
        (0..2900).map(|n| format!("deny src net 172.{}.{}.0/24, ", 16 + n / 256, n % 256)).collect();
    let checked = "CheckIPHeader(INTERFACES $OURS)";
    router().replace(
        checked,
        &format!("{checked} -> rules :: IPFilter({rules} deny icmp type 8 and ip ttl 77, allow all)"),
    )
}

#[test]
fn large_programs_run_in_parts() {
    inside_with_bpf("large_programs_run_in_parts", || {
        if !has_xdp() {
            return;
        }
        let (a, _b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("s"), folder.path().join("firewall.click"));
        std::fs::write(&file, firewall()).unwrap();
        let out = Command::new(BINARY).args(["explain", "--driver", "xdp"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let is_in_kernel = |l: &str| l.starts_with("rules ") && l.contains(" in the kernel ");
        assert!(said.lines().any(is_in_kernel) && said.contains(" instructions in "), "{said}");
        // The process that opens devices loads the parts, or the router itself.
        for arguments in [&[][..], &["--keep-privileges"]] {
            let live = start(&socket, arguments, &router());
            assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
            // No packet is lost while the programs in parts replace others, and themselves, except those that are counted as drops because user
            // level cannot keep up.
            let before = a.echo_replies();
            let out = std::thread::scope(|s| {
                let ping = s.spawn(|| a.run("ping -q -c 1000 -i 0.002 -W 60 10.0.1.2"));
                for _ in 0..3 {
                    ctl(&socket, &["swap", file.to_str().unwrap()]);
                }
                ping.join().unwrap()
            });
            // Replies may still be on their way when ping ends.
            let end = Instant::now() + Duration::from_secs(60);
            loop {
                let ledger = ctl(&socket, &["read", "ledger"]);
                let column = |n: usize| {
                    ledger.lines().map(move |l| (l, l.split('\t').nth(n).unwrap().parse::<u64>().unwrap()))
                };
                let dropped: u64 = column(5).map(|(_, n)| n).sum();
                // After a long pause the replies come at once, and the host may not keep all of them.
                let sent =
                    column(4).filter(|(l, _)| l.contains("\tToDevice\t")).map(|(_, n)| n).min().unwrap();
                let replies = a.echo_replies() - before;
                if replies.max(sent) + dropped >= 1000 {
                    break;
                }
                assert!(Instant::now() < end, "{replies} replies\n{out}{ledger}");
                std::thread::sleep(Duration::from_millis(10));
            }
            settle(&a, &socket);
            let before = came_up(&socket);
            assert!(a.run("ping -q -c 10 -i 0.001 -t 77 -W 1 10.0.1.2 || true").contains(" 0 received"));
            assert!(came_up(&socket) <= before + 5);
            drop(live);
            detached();
            let _ = std::fs::remove_file(&socket);
        }
    });
}

#[test]
fn swaps_of_the_kernel_part_lose_no_packet() {
    inside_with_bpf("swaps_of_the_kernel_part_lose_no_packet", || {
        if !has_xdp() {
            return;
        }
        let (a, _b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let live = start(&socket, &[], &router());
        assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
        // The second has other elements in the kernel, and the third has all of the path at user level.
        let texts = [
            router(),
            router().replace("-> DropBroadcasts", "-> Paint($color, 18) -> DropBroadcasts"),
            router().replace("FromDevice($dev)", "FromDevice($dev, SNAPLEN 2000)"),
        ];
        let files: Vec<_> = (0..texts.len())
            .map(|i| {
                let file = folder.path().join(format!("{i}.click"));
                std::fs::write(&file, &texts[i]).unwrap();
                file
            })
            .collect();
        let out = std::thread::scope(|s| {
            let ping = s.spawn(|| a.try_ping(3000, "-i 0.001 10.0.1.2"));
            let mut n = 0;
            while !ping.is_finished() {
                ctl(&socket, &["swap", files[n % files.len()].to_str().unwrap()]);
                n += 1;
            }
            assert!(n > 5, "{n} swaps");
            ping.join().unwrap()
        });
        let log = std::fs::read_to_string(socket.with_extension("log")).unwrap();
        out.unwrap_or_else(|e| panic!("{e}{log}"));
        ctl(&socket, &["swap", files[0].to_str().unwrap()]);
        // The counts go on: no frame is counted twice or not at all.
        let (received, sent) =
            (number(&socket, "one/FromDevice@1.count"), number(&socket, "two/ToDevice@7.count"));
        assert!((3001..=3100).contains(&received) && (3001..=received).contains(&sent), "{received} {sent}");
        settle(&a, &socket);
        // A device that goes down and comes back gets its program again.
        run("ip link set r0 down; ip link set r0 up");
        a.run("ip route replace default via 10.0.0.1");
        until("the device is used again", || a.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
        settle(&a, &socket);
        drop(live);
        detached();
    });
}

#[test]
fn frames_that_a_device_does_not_send_are_drops() {
    inside_with_bpf("frames_that_a_device_does_not_send_are_drops", || {
        if !has_xdp() {
            return;
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return println!("SKIP: the kernel does not tell its types");
        }
        let (a, b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _live = start(&socket, &[], &router());
        assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
        settle(&a, &socket);
        let counts = || [number(&socket, "two/ToDevice@7.drops"), number(&socket, "two/ToDevice@7.count")];
        // Frames longer than the device's MTU, which the router does not know of, and frames to a device that does not receive by NAPI.
        let losses = [
            (
                5,
                "ip link set r1 mtu 1000",
                "ip link set r1 mtu 1500",
                "ping -q -c 5 -i 0.01 -s 1200 -W 0.1 10.0.1.2 || true",
            ),
            (
                7,
                "ethtool -K port gro off",
                "ethtool -K port gro on",
                "ping -q -c 7 -i 0.01 -W 0.1 10.0.1.2 || true",
            ),
        ];
        for (number, cause, cure, traffic) in losses {
            let does = |line: &str| if line.starts_with("ip") { run(line) } else { b.run(line) };
            does(cause);
            let [drops, sent] = counts();
            assert!(a.run(traffic).contains(" 0 received"));
            // Nothing else is sent to the device.
            assert_eq!(counts(), [drops + number, sent], "{cause}");
            let ledger = ctl(&socket, &["read", "ledger"]);
            let line = ledger.lines().find(|l| l.starts_with("two/ToDevice@7\t")).unwrap();
            let numbers: Vec<u64> = line.split('\t').skip(2).map(|n| n.parse().unwrap()).collect();
            assert_eq!(numbers[3], drops + number, "{ledger}");
            // A new program counts from where the former one has stopped.
            ctl(&socket, &["write", "one/ttl.active", "false"]);
            ctl(&socket, &["write", "one/ttl.active", "true"]);
            assert_eq!(counts(), [drops + number, sent], "{cause}");
            does(cure);
            assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
        }
    });
}

#[test]
fn packets_on_their_way_up_at_the_end_are_drops() {
    inside_with_bpf("packets_on_their_way_up_at_the_end_are_drops", || {
        if !has_xdp() {
            return;
        }
        let a = add_host(0);
        a.run("ip neighbour add 10.0.0.9 lladdr 02:00:00:00:00:09 dev port");
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        for _ in 0..5 {
            // Packets come up at the queue.
            let mut live =
                start(&socket, &[], "from :: FromDevice(r0, SNIFFER false) -> Queue -> Unqueue -> Discard;");
            std::thread::scope(|s| {
                s.spawn(|| a.run("nice -n 19 ping -q -l 20000 -c 20000 -W 0.1 10.0.0.9 || true"));
                until("packets come up", || number(&socket, "from.count") > 100);
                signal(live.0.id(), "INT");
                // The router checks its ledger at the end.
                assert!(
                    live.0.wait().unwrap().success(),
                    "{}",
                    std::fs::read_to_string(socket.with_extension("log")).unwrap()
                );
            });
        }
    });
}

#[test]
fn the_host_gets_frames_back() {
    inside_with_bpf("the_host_gets_frames_back", || {
        if !has_xdp() || !has_tun() {
            return;
        }
        let a = add_host(0);
        run("ip address add 10.0.0.1/24 dev r0");
        let folder = tempfile::tempdir().unwrap();
        // The router counts the pings to the host, and passes them on.
        let text = "FromDevice(r0, METHOD XDP) -> c :: Classifier(12/0800 23/01, -);
            c [0] -> pings :: Counter -> to :: ToHost(r0); c [1] -> to;";
        for (i, arguments) in
            [&["--driver", "xdp"][..], &["--driver", "af-xdp"], &["--driver", "af-xdp", "--keep-privileges"]]
                .into_iter()
                .enumerate()
        {
            let socket = folder.path().join(i.to_string());
            let live = common::live_xdp::start(&socket, arguments, text);
            until("the host answers", || a.run("ping -c 1 -W 1 10.0.0.1 || true").contains("1 received"));
            let all_return = |requests, options| {
                let said = a.try_ping(requests, options);
                said.unwrap_or_else(|e| panic!("{arguments:?}: {e}{}", ctl(&socket, &["read", "ledger"])))
            };
            let before = number(&socket, "pings.count");
            all_return(100, "-i 0.001 10.0.0.1");
            assert_eq!(number(&socket, "pings.count") - before, 100, "{arguments:?}");
            // Large frames, too, and those that the router itself has received before a hot swap.
            all_return(1, "-s 1472 10.0.0.1");
            if i == 0 {
                assert_eq!(came_up(&socket), 0, "{}", ctl(&socket, &["read", "kernel"]));
            }
            let file = folder.path().join("next.click");
            std::fs::write(&file, text.replace("pings ::", "n :: Null -> pings ::")).unwrap();
            ctl(&socket, &["swap", file.to_str().unwrap()]);
            all_return(100, "-i 0.001 10.0.0.1");
            assert_eq!(number(&socket, "to.drops"), 0);
            drop(live);
            until("the programs are detached", || !run("ip link show").contains("xdp"));
            until("the TAP device is gone", || !run("ip link show").contains("tohost"));
        }
        // Without METHOD XDP, the host has the frames already.
        let line = format!("{BINARY} run -q -e 'FromDevice(r0) -> ToHost(r0);'");
        let out = Command::new("sh").args(["-c", &line]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success() && said.contains("no FromDevice that takes its frames from the host"),
            "{said}"
        );
    });
}

/// Runs a configuration that stops at once, and returns what it says. None of it succeeds or fails silently.
fn attempt(wrapper: &str, text: &str) -> (bool, String) {
    let line = format!("{wrapper} {BINARY} run -q --driver xdp -e '{text}'");
    let out = Command::new("sh").args(["-c", &line]).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn what_stands_in_the_way_is_named() {
    inside_with_bpf("what_stands_in_the_way_is_named", || {
        if !has_xdp() {
            return;
        }
        run("ip link add va type veth peer name vb; ip link set va up; ip link set vb up");
        run("ip link add bridge0 type bridge; ip link set bridge0 up");
        let one = "FromDevice(va, SNIFFER false) -> Queue -> ToDevice(va); DriverManager(stop);";
        let (ok, said) = attempt("", one);
        assert!(ok, "{said}");
        // Without rights.
        let (ok, said) = attempt(
            "setpriv --bounding-set=-all --inh-caps=-all --reuid 65534 --regid 65534 --clear-groups",
            one,
        );
        assert!(!ok && said.contains("CAP_"), "{said}");
        // Several workers.
        let out = Command::new(BINARY)
            .args(["run", "-q", "--driver", "xdp", "-j", "2", "-e", one])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("needs a router with one worker"), "{said}");
        // A driver that cannot run the program: the kernel runs it later.
        let (ok, said) = attempt("", "FromDevice(bridge0, SNIFFER false) -> Discard; DriverManager(stop);");
        assert!(ok && said.matches("generic mode").count() == 1, "{said}");
        // Elements that keep everything at user level, and no device at all.
        let (ok, said) =
            attempt("", "FromDevice(va, SNAPLEN 100, SNIFFER false) -> Discard; DriverManager(stop);");
        assert!(ok && said.contains("processed at user level, because it has SNAPLEN"), "{said}");
        let (ok, said) = attempt("", "Idle -> Discard; DriverManager(stop);");
        assert!(ok && said.contains("has no FromDevice"), "{said}");
        // Another program.
        let folder = tempfile::tempdir().unwrap();
        let live = start(&folder.path().join("s"), &[], "FromDevice(va, SNIFFER false) -> Discard;");
        let (ok, said) = attempt("", one);
        assert!(!ok && said.contains("another XDP program is attached already"), "{said}");
        drop(live);
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routers in bad circumstances: links that flap, kill -9, hot swaps under load, devices and rights that lack something.

use crate::common::live_xdp::{
    add_host, came_up, ctl, detached, has_driver_xdp, number, router, start_in_kernel,
};
use crate::common::{BINARY, signal};
use crate::on;
use castanet_testkit::namespace::{inside_with_bpf, run};
use castanet_testkit::until;
use std::process::Command;

#[test]
fn links_that_flap_go_on_in_the_kernel() {
    inside_with_bpf("disturbances::links_that_flap_go_on_in_the_kernel", || {
        if !has_driver_xdp() {
            return;
        }
        let (a, b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        // For a device that is made again, the router must lock memory, which it may not always do once it has dropped its privileges.
        let _live = start_in_kernel(&socket, &["--keep-privileges"], &router());
        assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
        let works = |what: &str| {
            until(what, || a.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
            let before = came_up(&socket);
            a.try_ping(200, "-i 0.001 10.0.1.2").unwrap_or_else(|e| panic!("{what}: {e}"));
            let up = came_up(&socket) - before;
            assert!(up <= 6, "{what}: {up} packets came up");
        };
        let id = b.id();
        let traffic = on(&a, || run("ping -q -c 3000 -i 0.001 -W 1 10.0.1.2 || true"));
        for i in 0..10 {
            // Both ends of the second link, in turn.
            match i % 2 {
                0 => run("ip link set r1 down; sleep 0.05; ip link set r1 up"),
                _ => run(&format!(
                    "nsenter --net=/proc/{id}/ns/net -- sh -c 'ip link set port down; sleep 0.05; ip link set port up;
                     ip route replace default via 10.0.1.1'"
                )),
            };
        }
        traffic.join().unwrap();
        works("after flaps of the second link");
        run("ip link set r0 down; ip link set r0 up");
        works("after a flap of the first link");
        // A device that is made again with the same name and addresses.
        let ethernet =
            |text: String| text.split_once("link/ether ").unwrap().1.split(' ').next().unwrap().to_string();
        let (here, there) = (ethernet(run("ip link show r1")), ethernet(b.run("ip link show port")));
        run("ip link del r1");
        run(&format!(
            "ip link add r1 address {here} type veth peer name port address {there}; ip link set port netns {id}"
        ));
        for line in [
            "ip address add 10.0.1.2/24 dev port",
            "ip link set port up",
            "ethtool -K port tx off txvlan off gro on",
            "ip route replace default via 10.0.1.1",
        ] {
            b.run(line);
        }
        run("ip link set r1 up");
        works("after the second device was made again");
        assert_eq!(run("ip link show r1").matches("prog/xdp").count(), 1);
    });
}

#[test]
fn a_router_killed_in_the_middle_of_traffic_leaves_nothing() {
    inside_with_bpf("disturbances::a_router_killed_in_the_middle_of_traffic_leaves_nothing", || {
        if !has_driver_xdp() {
            return;
        }
        let (a, _b) = (add_host(0), add_host(1));
        let folder = tempfile::tempdir().unwrap();
        for (i, arguments) in [&[][..], &["--keep-privileges"], &[]].into_iter().enumerate() {
            let socket = folder.path().join(i.to_string());
            let live = start_in_kernel(&socket, arguments, &router());
            until("it forwards", || a.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
            let traffic = on(&a, || run("ping -q -c 1000 -i 0.001 -W 1 10.0.1.2 || true"));
            until("packets flow", || number(&socket, "one/FromDevice@1.count") > 100);
            signal(live.0.id(), "KILL");
            detached();
            traffic.join().unwrap();
            drop(live);
            assert!(!a.run("ping -c 1 -W 0.2 10.0.1.2 || true").contains("1 received"), "nobody forwards");
        }
        let _live = start_in_kernel(&folder.path().join("last"), &[], &router());
        until("a new one forwards", || a.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
    });
}

/// Replaces a router by others while packets flow, until `swaps` swaps are done. No packet is lost, and nothing stays open.
fn many_swaps(swaps: usize) {
    let (a, _b) = (add_host(0), add_host(1));
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let live = start_in_kernel(&socket, &["--keep-privileges"], &router());
    let files: Vec<_> = [
        router(),
        router().replace("-> DropBroadcasts", "-> Paint($color, 18) -> DropBroadcasts"),
        router().replace("kind [2] ->", "kind [2] -> Null -> Counter ->"),
    ]
    .iter()
    .enumerate()
    .map(|(i, text)| {
        let file = folder.path().join(format!("{i}.click"));
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    })
    .collect();
    assert!(a.run("ping -c 1 -W 60 10.0.1.2").contains("1 received"));
    let open = || std::fs::read_dir(format!("/proc/{}/fd", live.0.id())).unwrap().count();
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", live.0.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let (mut done, mut first) = (0, None);
    while done < swaps {
        let said = std::thread::scope(|s| {
            let ping = s.spawn(|| a.try_ping(2000, "-i 0.001 10.0.1.2"));
            while !ping.is_finished() && done < swaps {
                ctl(&socket, &["swap", &files[done % 3]]);
                done += 1;
                if done == swaps / 2 {
                    first = Some((open(), memory()));
                }
            }
            ping.join().unwrap()
        });
        let log = std::fs::read_to_string(socket.with_extension("log")).unwrap();
        said.unwrap_or_else(|e| panic!("after {done} swaps: {e}{log}"));
    }
    let (files_before, memory_before) = first.unwrap();
    assert!(open() <= files_before + 3, "{} open files, {files_before} before", open());
    assert!(memory() < memory_before + (32 << 10), "{} kB, {memory_before} kB before", memory());
    println!("{done} swaps, {} open files, {} kB", open(), memory());
}

#[test]
fn swaps_under_load_keep_nothing_open() {
    inside_with_bpf("disturbances::swaps_under_load_keep_nothing_open", || {
        if has_driver_xdp() {
            many_swaps(40);
        }
    });
}

#[test]
#[ignore = "takes minutes; run by .ci/long"]
fn a_thousand_swaps_under_load_lose_no_packet() {
    inside_with_bpf("disturbances::a_thousand_swaps_under_load_lose_no_packet", || {
        if has_driver_xdp() {
            many_swaps(1000);
        }
    });
}

#[test]
fn generic_mode_is_said_once_and_works() {
    inside_with_bpf("disturbances::generic_mode_is_said_once_and_works", || {
        if !has_driver_xdp() {
            return;
        }
        let (a, _b) = (add_host(0), add_host(1));
        // The driver of bridges runs no programs.
        for n in 0..2 {
            run(&format!(
                "ip link add br{n} type bridge; ip link set r{n} master br{n}; ip link set br{n} up"
            ));
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let text = router().replace("r0", "br0").replace("r1", "br1");
        let _live = start_in_kernel(&socket, &[], &text);
        until("it forwards", || a.run("ping -c 1 -W 1 10.0.1.2 || true").contains("1 received"));
        let before = came_up(&socket);
        a.ping(300, "-i 0.001 10.0.1.2");
        assert!(came_up(&socket) <= before + 6, "{} came up", came_up(&socket) - before);
        // Packets that come up: expired ones, and those to the router itself.
        a.ping(2, "-i 0.01 10.0.0.1");
        assert!(a.run("traceroute -n -q 1 -w 60 10.0.1.2").contains(" 1  10.0.0.1 "));
        let file = folder.path().join("1.click");
        std::fs::write(&file, text.replace("kind [2] ->", "kind [2] -> Null ->")).unwrap();
        ctl(&socket, &["swap", file.to_str().unwrap()]);
        a.ping(100, "-i 0.001 10.0.1.2");
        let said = std::fs::read_to_string(socket.with_extension("log")).unwrap();
        assert_eq!(said.matches("generic mode").count(), 2, "once for each device: {said}");
    });
}

#[test]
fn missing_capabilities_and_other_programs_are_named() {
    inside_with_bpf("disturbances::missing_capabilities_and_other_programs_are_named", || {
        if !has_driver_xdp() {
            return;
        }
        run("ip link add va type veth peer name vb; ip link set va up; ip link set vb up");
        let text =
            "FromDevice(va, SNIFFER false) -> Strip(14) -> CheckIPHeader -> Discard; DriverManager(stop);";
        let attempt = |wrapper: &str, further: &str| {
            let line = format!("{wrapper} {BINARY} run -q --driver xdp {further} -e '{text}'");
            let out = Command::new("sh").args(["-c", &line]).output().unwrap();
            (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
        };
        let all = ["bpf", "perfmon", "net_admin", "net_raw"];
        for further in ["", "--keep-privileges"] {
            for lacks in all {
                // CAP_SYS_ADMIN includes the first two.
                let drop =
                    format!("setpriv --bounding-set=-sys_admin,-{lacks} --inh-caps=-sys_admin,-{lacks}");
                let (ok, said) = attempt(&drop, further);
                let named: Vec<_> =
                    all.into_iter().filter(|c| said.contains(&format!("CAP_{}", c.to_uppercase()))).collect();
                assert!(!ok && named == [lacks], "without {lacks}: {said}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _live = start_in_kernel(&socket, &[], "FromDevice(va, SNIFFER false) -> Discard;");
        let id = run("ip link show va");
        let id = id.split_once("prog/xdp id ").unwrap().1.split_whitespace().next().unwrap().to_string();
        let (ok, said) = attempt("", "");
        assert!(
            !ok && said
                .contains(&format!("another XDP program is attached already (ID {id}); end the program"))
                && said.contains("ip link set va xdp off"),
            "{said}"
        );
    });
}

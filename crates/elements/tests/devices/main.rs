// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests routers on real devices, in network namespaces. The network stack of a host at the other end shows whether the
//! routers work.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod dpdk;
mod fanout;
mod xdp;

use castanet_element::Remote;
use castanet_element::spec::Reason;
use castanet_io::device::{Outgoing, PacketOptions, PacketSender, PacketSocket, info};
use castanet_runtime::Router;
use castanet_testkit::host::Host;
use castanet_testkit::namespace::{has_tun, inside, pair, run};
use castanet_testkit::{FEW_ROUNDS, Log, number, real, router, try_router, until, value};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Runs a router in real time during `body`. Returns the router after its end, and its messages.
fn during(text: &str, workers: usize, body: impl FnOnce(&Log)) -> (Router, Vec<String>) {
    during_calls(text, workers, |log, _| body(log))
}

/// Like [`during`], but `body` can also call handlers.
fn during_calls(text: &str, workers: usize, body: impl FnOnce(&Log, &dyn Remote)) -> (Router, Vec<String>) {
    let (options, log) = real(workers);
    let mut r = router(text, options);
    let shared = r.shared().clone();
    let running = r.running().clone();
    let thread = std::thread::spawn(move || {
        r.run().unwrap();
        r
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&log, &*running)));
    shared.end();
    let r = thread.join().unwrap();
    if let Err(e) = result {
        eprintln!("messages: {:#?}, drops: {:?}", log.lines(), r.drops());
        std::panic::resume_unwind(e);
    }
    (r, log.lines())
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}
fn ether(device: &str) -> String {
    text(info(device).unwrap().ether.unwrap())
}

fn drops(r: &Router, element: &str, reason: Reason) -> u64 {
    let e = r.find(element).unwrap();
    r.drops().get(&(e, reason)).copied().unwrap_or(0)
}

/// Adds a host with a device `h{n}`, whose other end is `r{n}` in this namespace.
fn add_host(n: u32, address: &str) -> Host {
    let h = Host::new();
    run(&format!("ip link add r{n} type veth peer name h{n}; ip link set h{n} netns {}", h.id()));
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/r{n}/disable_ipv6"), "1");
    h.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
    h.run(&format!("ip address add {address} dev h{n}"));
    h.run(&format!("ip link set h{n} up"));
    h.run("ip link set lo up");
    run(&format!("ip link set r{n} up"));
    h
}

#[test]
fn late_replies_are_not_lost_ones() {
    inside("late_replies_are_not_lost_ones", || {
        let h = add_host(1, "10.0.0.2/24");
        let shown = h.run("ip -o link show h1");
        let mac = shown.split("link/ether ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
        for (last, arrives) in [("Queue -> DelayUnqueue(200ms) -> reply", true), ("Discard", false)] {
            // The last request has sequence number 20. Its reply is late or missing.
            let router = format!(
                "FromDevice(r1) -> c :: Classifier(12/0806 20/0001, 12/0800 40/0014, 12/0800, -);
                 c [0] -> ARPResponder(10.0.0.1 {own}) -> q :: Queue -> ToDevice(r1);
                 c [2] -> reply :: Strip(14) -> CheckIPHeader -> ICMPPingResponder
                    -> EtherEncap(0x0800, {own}, {mac}) -> q;
                 c [1] -> {last}; c [3] -> Discard;",
                own = ether("r1"),
            );
            during(&router, 1, |_| {
                h.run("ping -c 1 -W 60 10.0.0.1");
                let patience = Duration::from_secs(if arrives { 60 } else { 1 });
                let said = h.ping_within(patience, 20, "-i 0.001 10.0.0.1");
                assert_eq!(said.is_ok(), arrives, "{said:?}");
            });
        }
    });
}

#[test]
fn ping_is_answered() {
    inside("ping_is_answered", || {
        let h = add_host(1, "10.0.0.2/24");
        // `nsenter --net` does not change /sys, so the address is taken from the output of `ip` on the host.
        let shown = h.run("ip -o link show h1");
        let mac = shown.split("link/ether ").nth(1).and_then(|t| t.split(' ').next()).unwrap();
        let router = format!(
            "from :: FromDevice(r1) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
             c [0] -> ARPResponder(10.0.0.1 {own}) -> q :: Queue -> to :: ToDevice(r1);
             c [1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder -> EtherEncap(0x0800, {own}, {mac}) -> q;
             c [2] -> other :: Discard;",
            own = ether("r1"),
        );
        let (mut r, messages) = during(&router, 1, |_| {
            let out = h.run("ping -c 5 -l 5 -i 60 10.0.0.1");
            assert!(out.contains("5 received") && !out.contains("DUP"), "{out}");
            h.run("ping -c 2 -l 2 -i 60 -s 1400 10.0.0.1");
        });
        assert_eq!(messages, [""; 0]);
        let (from, to) = (number(&mut r, "from", "count"), number(&mut r, "to", "count"));
        let s = info("r1").unwrap().statistics;
        assert_eq!((from, to), (s.rx_packets, s.tx_packets));
        assert!(to >= 8, "an ARP answer and seven echoes");
        assert_eq!(number(&mut r, "from", "kernel_drops"), 0);
        assert_eq!(value(&mut r, "from", "encap"), "ETHER");
        assert_eq!((number(&mut r, "to", "pulls"), number(&mut r, "to", "q")), (to, 0));
    });
}

#[test]
fn hosts_speak_tcp_across_with_all_offloads_on() {
    inside("hosts_speak_tcp_across_with_all_offloads_on", || {
        let (a, b) = (add_host(1, "10.0.0.1/24"), add_host(2, "10.0.0.2/24"));
        let router = "one :: FromDevice(r1, PROMISC true) -> Queue(5000) -> two_out :: ToDevice(r2);
            two :: FromDevice(r2, PROMISC true) -> Queue(5000) -> one_out :: ToDevice(r1);";
        for workers in [1, 2] {
            let before = info("r1").unwrap().statistics.rx_packets;
            let (mut r, messages) = during(router, workers, |_| {
                let me = std::env::current_exe().unwrap();
                let program = |name: &str| format!("{} --exact {name} --ignored --nocapture", me.display());
                let serve = program("tcp_server");
                let server = std::thread::scope(|s| {
                    let server = s.spawn(|| b.run(&serve));
                    a.run(&program("tcp_client"));
                    server.join().unwrap()
                });
                assert!(server.contains(&format!("received {LENGTH} {}", hash(LENGTH))), "{server}");
            });
            assert_eq!(messages, [""; 0]);
            // The router receives each super-packet as one packet. The kernel also counts it as one.
            let s = info("r1").unwrap().statistics;
            assert_eq!(number(&mut r, "one", "count"), s.rx_packets - before);
            assert!(s.rx_bytes / s.rx_packets > 3000);
            for e in ["one", "two"] {
                assert_eq!(drops(&r, e, Reason::BadOffload) + drops(&r, e, Reason::Truncated), 0);
            }
            assert_eq!(number(&mut r, "one", "count"), number(&mut r, "two_out", "count"));
        }
    });
}

const LENGTH: usize = 8 << 20;

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 1000) as u8).collect()
}
fn hash(n: usize) -> u64 {
    sum(&bytes(n))
}
fn sum(data: &[u8]) -> u64 {
    data.iter().fold(14_695_981_039_346_656_037, |h, b| (h ^ u64::from(*b)).wrapping_mul(1_099_511_628_211))
}

#[test]
#[ignore = "run by another test, on a host"]
fn tcp_server() {
    let (mut s, _) = TcpListener::bind("0.0.0.0:5001").unwrap().accept().unwrap();
    let mut data = Vec::new();
    s.read_to_end(&mut data).unwrap();
    println!("received {} {}", data.len(), sum(&data));
}

#[test]
#[ignore = "run by another test, on a host"]
fn tcp_client() {
    let mut connected = None;
    until("the server listens", || {
        connected = TcpStream::connect("10.0.0.2:5001").ok();
        connected.is_some()
    });
    let mut s = connected.unwrap();
    s.write_all(&bytes(LENGTH)).unwrap();
    s.shutdown(std::net::Shutdown::Write).unwrap();
    // The other end closes the connection when it has received all bytes.
    let _ = s.read(&mut [0; 1]);
}

fn frame(n: u32, len: usize) -> Vec<u8> {
    let mut f = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb5], &n.to_be_bytes()].concat();
    f.resize(len.max(f.len()), 7);
    f
}
fn send(frames: &[Vec<u8>]) {
    let mut s = PacketSender::open("va").unwrap();
    assert_eq!(s.send(frames.iter().map(|f| Outgoing::plain(f))).count, frames.len());
}

#[test]
fn devices_that_vanish_are_picked_up_again() {
    inside("devices_that_vanish_are_picked_up_again", || {
        pair();
        let (mut r, messages) = during("f :: FromDevice(vb) -> Print(got, 0) -> Discard;", 1, |log| {
            let got = || log.lines().iter().filter(|l| l.starts_with("got")).count();
            let back = || log.lines().iter().filter(|l| l.contains("device is back")).count();
            send(&[frame(1, 60)]);
            until("the first frame", || got() == 1);
            run("ip link set vb down");
            until("a message", || log.len() == 2);
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(log.len(), 2, "told once");
            run("ip link set vb up");
            until("it is back", || back() == 1);
            send(&[frame(2, 60)]);
            until("the second frame", || got() == 2);
            run("ip link del va");
            until("a message", || log.lines().len() == 5);
            pair();
            until("another device of that name", || back() == 2);
            send(&[frame(3, 60), frame(4, 60)]);
            until("the last frames", || got() == 4);
        });
        assert_eq!((number(&mut r, "f", "count"), number(&mut r, "f", "losses")), (4, 2));
        assert_eq!(
            messages[1],
            "f :: FromDevice: vb: device is down; packets are received again when it is back"
        );
    });
}

/// Sends 1,000 frames by a ToDevice with these further arguments, while its device goes down and comes back. Checks that
/// all frames arrive. Returns the messages, which are two.
fn send_while_down(options: &str) -> Vec<String> {
    let router = format!(
        "s :: RatedSource(DATA \"\\<ffffffffffff 020000000009 88b5>.................................................\",
            RATE 2000, LIMIT 1000) -> q :: Queue(2000) -> t :: ToDevice(va{options});
        t [0] -> sent :: Counter -> Discard; t [1] -> failed :: Counter -> Discard;"
    );
    let mut sink =
        PacketSocket::open("vb", &PacketOptions { protocol: 0x88b5, ..Default::default() }).unwrap();
    let mut received = 0;
    let (mut r, messages) = during(&router, 1, |log| {
        until("some frames", || {
            received += sink.receive(64, |_| {});
            received > 100
        });
        run("ip link set va down");
        until("a message", || log.len() == 1);
        std::thread::sleep(Duration::from_millis(300));
        run("ip link set va up");
        until("all frames", || {
            received += sink.receive(64, |_| {});
            received >= 1000
        });
    });
    assert_eq!((number(&mut r, "sent", "count"), number(&mut r, "failed", "count")), (1000, 0));
    assert_eq!((received, number(&mut r, "t", "count")), (1000, 1000));
    assert_eq!(messages.len(), 2, "{messages:?}");
    messages
}

#[test]
fn nothing_is_lost_or_overtakes_while_a_device_is_down() {
    inside("nothing_is_lost_or_overtakes_while_a_device_is_down", || {
        pair();
        let messages = send_while_down("");
        assert_eq!(info("vb").unwrap().statistics.rx_packets, 1000);
        assert_eq!(messages[0], "t :: ToDevice: va: device is down; packets are sent again when it is back");
    });
}

#[test]
fn packets_that_can_never_be_sent_leave_by_output_1() {
    inside("packets_that_can_never_be_sent_leave_by_output_1", || {
        pair();
        let router = "InfiniteSource(LENGTH 2000, LIMIT 3) -> q :: Queue -> t :: ToDevice(va);
            InfiniteSource(LENGTH 5, LIMIT 2) -> q; InfiniteSource(LENGTH 100, LIMIT 4) -> q;
            t [0] -> sent :: Counter -> Discard; t [1] -> failed :: Counter -> Discard;";
        let (mut r, messages) = during_calls(router, 1, |_, remote| {
            let count = |element| remote.read(Some(element), "count", "").unwrap();
            until("all have left", || (count("sent"), count("failed")) == ("4".into(), "5".into()));
        });
        assert_eq!((number(&mut r, "sent", "count"), number(&mut r, "failed", "count")), (4, 5));
        assert_eq!(info("va").unwrap().statistics.tx_packets, 4);
        assert!(messages.iter().any(|m| m.contains("a packet of 2000 bytes cannot be sent")), "{messages:?}");
    });
}

#[test]
fn arguments_of_from_device() {
    inside("arguments_of_from_device", || {
        pair();
        let tagged = |id: u8| {
            let mut f = frame(u32::from(id), 60);
            f.splice(12..12, [0x81, 0, 0, id]);
            f
        };
        let mut ip = Vec::new();
        etherparse::PacketBuilder::ethernet2([2; 6], [0xff; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
            .udp(1, 53)
            .write(&mut ip, &[9; 100])
            .unwrap();
        let mut other = frame(9, 60);
        other[0] = 2;
        let frames = [frame(1, 60), tagged(5), tagged(6), ip.clone(), other];
        for (config, want) in [
            // A veth device also delivers frames for other stations; FromDevice annotates them as such.
            ("", vec![60, 64, 64, 142, 60]),
            ("PROMISC true", vec![60, 64, 64, 142, 60]),
            ("PROTOCOL 0x0800", vec![142]),
            ("METHOD PCAP, BPF_FILTER \"vlan 5\"", vec![64]),
            ("BPF_FILTER \"vlan\"", vec![64, 64]),
            ("BPF_FILTER \"udp port dns and host 10.0.0.2\"", vec![142]),
            ("BPF_FILTER \"not vlan and not ip\"", vec![60, 60]),
            ("SNAPLEN 50", vec![50; 5]),
            ("FORCE_IP true", vec![142]),
            (
                "HEADROOM 100, BURST 8, METHOD LINUX, TIMESTAMP false, CAPTURE PACKET, ENCAP ETHER",
                vec![60, 64, 64, 142, 60],
            ),
        ] {
            let comma = if config.is_empty() { "" } else { ", " };
            let (mut r, messages) =
                during(&format!("f :: FromDevice(vb{comma}{config}) -> Print(x, 0) -> Discard;"), 1, |log| {
                    send(&frames);
                    until("frames", || log.len() >= want.len());
                    std::thread::sleep(Duration::from_millis(20));
                });
            let lengths: Vec<usize> =
                messages.iter().map(|m| m.split_whitespace().last().unwrap().parse().unwrap()).collect();
            assert_eq!(lengths, want, "{config}");
            assert_eq!(number(&mut r, "f", "count"), want.len() as u64);
            if config.starts_with("FORCE_IP") {
                assert_eq!(drops(&r, "f", Reason::NotIp), 4);
            }
        }
    });
}

#[test]
fn errors_say_what_to_do() {
    inside("errors_say_what_to_do", || {
        pair();
        for (text, wanted) in [
            ("FromDevice(eth9) -> Discard;", vec!["eth9: no such device", "devices here: lo, va, vb"]),
            ("Idle -> ToDevice(eth9);", vec!["eth9: no such device", "devices here: lo, va, vb"]),
            (
                "a :: FromDevice(va) -> Discard; b :: FromDevice(va) -> Discard;",
                vec!["is already used by 'a :: FromDevice'", "Tee"],
            ),
            (
                "FromDevice(va, BPF_FILTER \"tcp prot\") -> Discard;",
                vec!["BPF_FILTER:", "'tcp' has no addresses"],
            ),
            ("FromDevice(va, ENCAP IP) -> Discard;", vec!["va: its link type is ETHER, not IP"]),
            ("FromDevice(va, SNAPLEN 13) -> Discard;", vec!["SNAPLEN: must be between 14 and 65535"]),
            ("FromDevice(va, METHOD LINX) -> Discard;", vec!["unknown method 'LINX'", "LINUX"]),
            (
                "FromDevice(va, METHOD XDP, BPF_FILTER arp) -> Discard;",
                vec!["BPF_FILTER does not go with METHOD XDP", "IPClassifier"],
            ),
            ("FromDevice(va, METHOD XDP, PROTOCOL 0x0800) -> Discard;", vec!["PROTOCOL does not go with"]),
            ("FromDevice(va, METHOD XDP, OUTBOUND true) -> Discard;", vec!["OUTBOUND does not go with"]),
            ("FromDevice(va, METHOD XDP, HEADROOM 287) -> Discard;", vec!["such a HEADROOM does not", "286"]),
            ("FromDevice(va, BUSY_POLL true) -> Discard;", vec!["BUSY_POLL needs METHOD XDP"]),
            (
                "a :: FromDevice(va, METHOD XDP) -> Discard; FromDevice(va, PROTOCOL 2) -> Discard;",
                vec!["device 'va' is already used by 'a :: FromDevice' with METHOD XDP", "the same METHOD"],
            ),
            ("FromDevice(a/b) -> Discard;", vec!["'a/b' is no name for a device"]),
            ("Idle -> ToHost(fake);", vec!["no FromHost element for 'fake'"]),
            (
                "FromHost(x) -> Discard; KernelTap(10.0.0.1/24, DEVNAME x) -> Discard;",
                vec!["host device 'x' is already used by 'FromHost@1 :: FromHost'"],
            ),
            ("KernelFilter(drop va);", vec!["expected 'drop dev DEVICE'"]),
            ("KernelFilter(drop dev vx);", vec!["vx: no such device"]),
            ("KernelTap(10.0.0.1/24, MTU 20) -> Discard;", vec!["MTU: must be between 68 and 65000"]),
        ] {
            let error = try_router(text, real(1).0).err().unwrap_or_else(|| panic!("{text}: no error"));
            for w in wanted {
                assert!(error.contains(w), "{text}: {w} in {error}");
            }
        }
        // Two elements may use the same device if their filters or directions differ.
        router(
            "FromDevice(va, BPF_FILTER ip) -> Queue -> ToDevice(va); FromDevice(va, BPF_FILTER arp) -> Queue -> ToDevice(va);",
            real(1).0,
        );
    });
}

#[test]
fn the_host_speaks_through_tun_and_tap() {
    inside("the_host_speaks_through_tun_and_tap", || {
        if !has_tun() {
            return;
        }
        run("ip link set lo up");
        for queue in ["", "Queue -> "] {
            let router = format!(
                "t :: KernelTun(10.5.0.1/24, DEVNAME mine, MTU 1400) -> CheckIPHeader -> ICMPPingResponder -> {queue} t;"
            );
            let (mut r, messages) = during(&router, 1, |_| {
                let out = run("ping -c 3 -l 3 -i 60 10.5.0.9");
                assert!(out.contains("3 received"), "{out}");
                assert_eq!(info("mine").unwrap().mtu, 1400);
            });
            // The host may send IPv6 packets of its own.
            assert!(messages.iter().all(|m| m.contains("bad IP version")), "{messages:?}");
            assert!(number(&mut r, "t", "packets") >= 3 && number(&mut r, "t", "selected_calls") > 0);
            assert_eq!(value(&mut r, "t", "dev_name"), "mine");
            drop(r);
            assert!(info("mine").is_err(), "the device goes with the router");
        }
        for (from, to) in [
            ("FromHost(fake, 10.6.0.1/24, ETHER 2:0:0:0:0:1)", "ToHost(fake)"),
            ("tap :: KernelTap(10.6.0.1/24, ETHER 2:0:0:0:0:1, DEVNAME fake)", "tap"),
        ] {
            let router = format!(
                "{from} -> c :: Classifier(12/0806 20/0001, 12/0800, -); c [2] -> Discard;
                 c [0] -> ARPResponder(10.6.0.9 2:0:0:0:0:9) -> out :: Null -> {to};
                 c [1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder
                    -> EtherEncap(0x0800, 2:0:0:0:0:9, 2:0:0:0:0:1) -> out;"
            );
            let (_, messages) = during(&router, 1, |_| {
                let out = run("ping -c 3 -l 3 -i 60 10.6.0.9");
                assert!(out.contains("3 received") && !out.contains("DUP"), "{out}");
            });
            assert_eq!(messages, [""; 0]);
        }
    });
}

#[test]
fn the_host_can_be_kept_out() {
    inside("the_host_can_be_kept_out", || {
        let h = add_host(1, "10.0.0.2/24");
        run("ip address add 10.0.0.1/24 dev r1");
        assert!(h.run("ping -c 1 -W 60 10.0.0.1").contains("1 received"));
        for text in [
            "f :: FromDevice(r1, SNIFFER false) -> Discard;",
            "KernelFilter(drop dev r1); f :: FromDevice(r1) -> Discard;",
        ] {
            if let Err(e) = try_router(text, real(1).0)
                && e.contains("no support for")
            {
                return println!("SKIP: {e}");
            }
            let (mut r, _) = during(text, 1, |_| {
                h.run("sh -c '! ping -c 1 -W 1 10.0.0.1'");
            });
            r.cleanup();
            assert!(number(&mut r, "f", "count") > 0);
            assert!(
                h.run("ping -c 1 -W 60 10.0.0.1").contains("1 received"),
                "the filter went with the router"
            );
        }
    });
}

#[test]
fn an_idle_router_with_devices_sleeps() {
    inside("an_idle_router_with_devices_sleeps", || {
        if !has_tun() {
            return;
        }
        pair();
        let router =
            "FromDevice(va) -> Queue -> ToDevice(vb); KernelTap(10.9.0.1/24) -> Queue -> ToDevice(va);";
        let (r, _) = during(router, 1, |_| {
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/tap0/disable_ipv6", "1");
            std::thread::sleep(Duration::from_millis(500));
        });
        // Frames that the kernel sends by itself take some rounds of the run loop. Polling would take thousands.
        let rounds = r.shared().rounds();
        assert!((1..=FEW_ROUNDS).contains(&rounds), "{rounds} rounds");
    });
}

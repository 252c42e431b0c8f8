// SPDX-License-Identifier: MIT OR Apache-2.0
//! A NAT gateway: many hosts behind one address, with conf/nat-gateway.click and `castanet new nat`.

use crate::net::{castanet, lab};
use castanet_lab::frames::{Ip, icmp_in, ip_in};
use castanet_lab::{Host, Lab, Process, Router};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

/// Inside are hosts a and c and the server s. Outside is host b, which has a second, remote address. The gateway
/// connects both sides.
struct Nat {
    a: Host,
    c: Host,
    s: Host,
    b: Host,
    r: Router,
    _lab: Lab,
}

/// Creates the hosts and their links. Host b has no route to the inside network, so it can only answer
/// translated packets.
fn hosts(lab: &Lab) -> ([Host; 4], Host) {
    let [a, c, s, b, r] = ["a", "c", "s", "b", "r"].map(|name| lab.host(name));
    lab.lan(&[(&a, "eth0"), (&c, "eth0"), (&s, "eth0"), (&r, "eth0")]);
    lab.link((&b, "eth0"), (&r, "eth1"));
    for (host, own) in [(&a, "10.0.0.2/24"), (&c, "10.0.0.3/24"), (&s, "10.0.0.80/24")] {
        host.address("eth0", own);
        host.route("default", "10.0.0.1");
    }
    b.address("eth0", "192.0.2.1/24");
    b.ip("addr add 198.51.100.7/32 dev lo");
    for host in [&a, &c, &s, &b] {
        host.sysctl("net.ipv4.icmp_ratelimit", 0);
    }
    ([a, c, s, b], r)
}

impl Nat {
    /// Creates the network, with conf/nat-gateway.click on the gateway.
    fn new() -> Option<Nat> {
        Nat::with(&[])
    }

    /// Like [`Nat::new`], with further options for the command.
    fn with(options: &[&str]) -> Option<Nat> {
        let lab = lab()?;
        let ([a, c, s, b], r) = hosts(&lab);
        let conf = castanet_tests::binary::root().join("conf/nat-gateway.click");
        let words = [options, &[conf.to_str().unwrap_or_default()]].concat();
        let r = Router::run(r, castanet(), &words, 2);
        // After a device gets a carrier, the kernel drops packets for a short time. The pings wait until this is
        // over, and fill the neighbour caches.
        for host in [&a, &c, &s] {
            host.run("ping -c 1 -i 0.1 -w 100 198.51.100.7").good();
        }
        Some(Nat { a, c, s, b, r, _lab: lab })
    }

    /// Stops the gateway, which must have reported no error. Queue overflows are normal, because TCP probes for
    /// bandwidth.
    fn end(self) {
        let ended = self.r.stop();
        let fine = |line: &str| line.ends_with("queue :: Queue: overflow");
        assert!(ended.as_ref().is_some_and(|o| o.ok() && o.stderr.lines().all(fine)), "{ended:?}");
    }
}

/// Runs an iperf3 server for one client, and returns the client's report. Words are separated by spaces.
fn iperf(server: &Host, serves: &str, client: &Host, asks: &str) -> serde_json::Value {
    let mut serving = server.spawn(&format!("iperf3 -s -1 --forceflush {serves}"));
    serving.wait_for("listening", PATIENCE);
    let said = client.run(&format!("iperf3 -J {asks}")).good();
    assert!(serving.wait(PATIENCE).ok());
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"))
}

/// Returns the number of bytes received when the sender finished. Bytes that are still in the sender's socket
/// buffers are missing, so senders of a few megabytes limit these buffers (`-w`).
fn received(report: &serde_json::Value) -> u64 {
    let bytes = report.pointer("/end/sum_received/bytes").and_then(serde_json::Value::as_u64);
    bytes.unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn many_hosts_ping_with_one_address() {
    let Some(nat) = Nat::new() else { return };
    let mut outside = nat.b.wire("eth0");
    for (host, to) in [(&nat.a, "192.0.2.1"), (&nat.a, "198.51.100.7"), (&nat.c, "198.51.100.7")] {
        let text = host.ping(2, to);
        assert!(!text.contains("DUP"), "{to}: {text}");
    }
    // Fragments in both directions.
    let text = nat.c.ping(2, "-s 4000 198.51.100.7");
    assert!(text.contains("4008 bytes from 198.51.100.7"), "{text}");
    // The gateway answers on both of its addresses, to both sides.
    for (host, to) in [(&nat.a, "10.0.0.1"), (&nat.a, "192.0.2.2"), (&nat.b, "192.0.2.2")] {
        let text = host.run(&format!("ping -c 1 -w 100 {to}")).good();
        assert!(text.contains("1 received") && text.contains(&format!("from {to}")), "{to}: {text}");
    }
    // Packets outside never have an inside address.
    let seen: Vec<_> =
        outside.rest(Duration::from_millis(300)).iter().filter_map(|f| ip_in(&f.bytes)).collect();
    assert!(seen.len() > 10 && seen.iter().all(|ip| ip.from.to_string() == "192.0.2.2"), "{seen:?}");
    nat.end();
}

#[test]
fn two_hosts_with_one_identifier_are_told_apart() {
    let Some(nat) = Nat::new() else { return };
    let (mut a, mut c) = (nat.a.wire("eth0"), nat.c.wire("eth0"));
    let gateway = nat.r.host.ether("eth0");
    for (host, wire, from) in [(&nat.a, &mut a, "10.0.0.2"), (&nat.c, &mut c, "10.0.0.3")] {
        let ask = Ip::icmp(from, "198.51.100.7", 8, 0, [0x12, 0x34, 0, 1], from.as_bytes());
        wire.send(&castanet_lab::frames::ethernet(gateway, host.ether("eth0"), 0x0800, &ask.bytes()));
    }
    for (wire, to) in [(&mut a, "10.0.0.2"), (&mut c, "10.0.0.3")] {
        let reply = wire.expect("reply", |f| icmp_in(&f.bytes).filter(|m| m.kind == (0, 0)));
        assert_eq!((reply.ip.to.to_string(), reply.rest), (to.into(), [0x12, 0x34, 0, 1]));
        assert_eq!(reply.payload, to.as_bytes());
    }
    nat.end();
}

#[test]
fn errors_find_their_way_through_the_translation() {
    let Some(nat) = Nat::new() else { return };
    // traceroute recognises its probes by the packets that ICMP errors quote. The errors come from the gateway
    // itself and from outside.
    let text = nat.a.run("traceroute -n -q 1 -w 30,0,0 198.51.100.7").good();
    assert!(text.contains(" 1  10.0.0.1 ") && text.contains(" 2  198.51.100.7 "), "{text}");
    // The source address of an error for a packet from outside is the address that the packet was sent to.
    nat.b.run("ip route add 10.0.0.0/24 via 192.0.2.2").good();
    let (mut b, gateway) = (nat.b.wire("eth0"), nat.r.host.ether("eth1"));
    let frame = |ip: &Ip| castanet_lab::frames::ethernet(gateway, [2, 0, 0, 0, 5, 1], 0x0800, &ip.bytes());
    // Packets sent directly to a host inside, or with an inside source, are dropped.
    let (mut a, mut s) = (nat.a.wire("eth0"), nat.s.wire("eth0"));
    b.send_all(&[
        frame(&Ip::udp("192.0.2.1", "10.0.0.2", b"straight")),
        frame(&Ip::udp("10.0.0.3", "192.0.2.2", b"lie")),
        frame(&Ip::udp("192.0.2.1", "192.0.2.2", b"to a port that is closed")),
    ]);
    let error = b.expect("error", |f| icmp_in(&f.bytes));
    assert_eq!((error.kind, error.ip.from.to_string()), ((3, 3), "192.0.2.2".into()));
    for wire in [&mut a, &mut s] {
        let came = wire.rest(Duration::from_millis(300));
        assert!(came.iter().all(|f| ip_in(&f.bytes).is_none()), "{came:?}");
    }
    nat.end();
}

#[test]
fn tcp_and_udp_go_through() {
    let Some(nat) = Nat::new() else { return };
    for asks in ["-w 128K -n 10M", "-w 128K -n 10M -R", "-w 128K -n 8M -P 8"] {
        let got = received(&iperf(&nat.b, "", &nat.a, &format!("-c 198.51.100.7 {asks}")));
        assert!(got >= 1_000_000, "{asks}: {got}");
    }
    // The server is bound to an address, because otherwise it would answer from the address nearest to the
    // gateway.
    let report = iperf(&nat.b, "-B 198.51.100.7", &nat.c, "-c 198.51.100.7 -u -b 10M -t 1 -l 1000");
    let count = |name| report.pointer(&format!("/end/sum/{name}")).and_then(serde_json::Value::as_u64);
    let (sent, lost) = (count("packets"), count("lost_packets"));
    // The number of packets lost depends on the load of the machine.
    assert!(sent.zip(lost).is_some_and(|(sent, lost)| lost < sent), "{report}");
    nat.end();
}

#[test]
fn forwarded_ports_serve_both_sides() {
    let Some(nat) = Nat::new() else { return };
    // A client outside, and a client inside. Both connect to the outer address, and the server answers
    // through the gateway.
    for client in [&nat.b, &nat.a] {
        let mut at_server = nat.s.wire("eth0");
        let got = received(&iperf(&nat.s, "-p 80", client, "-c 192.0.2.2 -p 80 -w 128K -n 5M"));
        assert!(got >= 1_000_000, "{}: {got}", client.name());
        let peer = at_server.expect("segment", |f| ip_in(&f.bytes).filter(|ip| ip.header.protocol.0 == 6));
        let seen = if client.name() == "b" { "192.0.2.1" } else { "192.0.2.2" };
        assert_eq!((peer.from.to_string(), peer.to.to_string()), (seen.into(), "10.0.0.80".into()));
    }
    // A port that is not forwarded is closed, and the client is refused at once.
    let refused = nat.b.run("iperf3 -c 192.0.2.2 -p 81 -n 1K --connect-timeout 5000");
    assert!(!refused.ok() && refused.stderr.contains("refused"), "{refused:?}");
    nat.end();
}

#[test]
fn two_workers_share_the_flows() {
    // Each device belongs to its own worker, so one worker creates flows that the other looks up.
    let Some(nat) = Nat::with(&["-j", "2"]) else { return };
    for asks in ["-w 128K -n 5M", "-w 128K -n 5M -R", "-w 128K -n 5M -P 4"] {
        let got = received(&iperf(&nat.b, "", &nat.a, &format!("-c 198.51.100.7 {asks}")));
        assert!(got >= 1_000_000, "{asks}: {got}");
    }
    let got = received(&iperf(&nat.s, "-p 80", &nat.c, "-c 192.0.2.2 -p 80 -w 128K -n 5M"));
    assert!(got >= 1_000_000, "{got}");
    let text = nat.c.ping(3, "-s 4000 198.51.100.7");
    assert!(!text.contains("DUP"), "{text}");
    nat.end();
}

#[test]
fn ftp_goes_through_in_every_mode() {
    let Some(nat) = Nat::new() else { return };
    let mut serving: Process = nat.b.spawn("castanet-lab ftp-server");
    serving.wait_for("ready\n", PATIENCE);
    // Several commands on one connection: the gateway must also translate the commands that follow a command
    // whose length it has changed.
    let got = nat.c.run("castanet-lab ftp-client 198.51.100.7 PORT PORT EPRT PASV EPRT EPSV PORT").good();
    assert_eq!(got, "2100000 bytes\n");
    let served = serving.wait(PATIENCE).good();
    // The server must see the gateway's address.
    assert!(served.contains("from 192.0.2.2\n"), "{served}");
    assert_eq!(served.matches("\nPORT 192,0,2,2,").count(), 3, "{served}");
    assert_eq!(served.matches("\nEPRT |1|192.0.2.2|").count(), 2, "{served}");
    nat.end();
}

#[test]
fn ftp_commands_that_point_elsewhere_are_refused() {
    let Some(nat) = Nat::new() else { return };
    for (command, passes) in [
        ("EPRT |1|10.0.0.2|4000|", true),
        ("PORT 10,0,0,3,15,160", false),
        ("PORT 192,0,2,1,15,160", false),
        ("PORT 10,0,0,2,0,25", false),
        ("EPRT |1|192.0.2.1|4000|", false),
        ("EPRT |2|::1|4000|", false),
    ] {
        let mut serving: Process = nat.b.spawn("castanet-lab ftp-server");
        serving.wait_for("ready\n", PATIENCE);
        let said = nat.a.run(&format!("castanet-lab ftp-say 198.51.100.7 1500 {command}")).good();
        assert_eq!(said.starts_with("200"), passes, "{command}: {said}");
        assert_eq!(said == "no answer\n", !passes, "{command}: {said}");
        if passes {
            serving.wait_for("EPRT", PATIENCE);
        }
        let heard = serving.stdout();
        assert_eq!(heard.contains("EPRT") || heard.contains("PORT"), passes, "{command}: {heard}");
    }
    nat.end();
}

/// Returns the number of TCP segments and UDP datagrams that a host received with wrong checksums.
fn wrong_checksums(host: &Host) -> u64 {
    let text = host.run("nstat -asz TcpInCsumErrors UdpInCsumErrors").good();
    text.lines().filter_map(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

/// Sends a stream through the gateway, with and without offloads. With the defaults of Linux, super-packets cross the
/// gateway. If devices do not offload, the kernel completes the checksums that the gateway rewrote, and the receiver
/// verifies them. In both cases, the gateway's queues drop no packet.
#[test]
fn a_stream_crosses_with_its_offloads() {
    for checked in [false, true] {
        let Some(lab) = lab() else { return };
        let ([a, c, s, b], r) = hosts(&lab);
        let conf = castanet_tests::binary::root().join("conf/nat-gateway.click");
        let drops = ["lan/queue.drops", "wan/queue.drops", "errors.drops"];
        let words =
            [&["-q", conf.to_str().unwrap_or_default()][..], &drops.map(|d| ["-h", d]).concat()].concat();
        let r = Router::run(r, castanet(), &words, 2);
        let all = [&a, &b, &c, &s];
        if checked {
            for device in ["eth0", "eth1"] {
                r.host.run(&format!("ethtool -K {device} tx off")).good();
            }
            for host in all {
                host.run("ethtool -K eth0 rx off").good();
            }
        }
        a.run("ping -c 1 -i 0.1 -w 100 198.51.100.7").good();
        let counts = || [&a, &b].map(|h| ["rx/bytes", "rx/packets"].map(|n| h.statistic("eth0", n)));
        let before = counts();
        // Each block has 256 kB.
        let blocks = 64;
        let mut server = b.spawn(&format!("castanet-lab stream-server 5000 {blocks}"));
        server.wait_for("ready", PATIENCE);
        a.run(&format!("castanet-lab stream 198.51.100.7 5000 {blocks}")).good();
        server.wait(PATIENCE).good();
        for (old, new) in before.iter().zip(counts()) {
            // The average packet size includes acknowledgements, which are short.
            let size = (new[0] - old[0]) as f64 / (new[1] - old[1]).max(1) as f64;
            assert!(if checked { size < 1600.0 } else { size > 3000.0 }, "{size} bytes a packet");
        }
        let report = iperf(&b, "-B 198.51.100.7", &a, "-c 198.51.100.7 -u -b 10M -t 1 -l 1000");
        let lost = report.pointer("/end/sum/lost_packets").and_then(serde_json::Value::as_u64);
        assert!(lost.is_some_and(|n| n < 600), "{report}");
        for host in all {
            assert_eq!(wrong_checksums(host), 0, "{}", host.name());
        }
        let ended = r.stop();
        let said = ended.as_ref().map(|o| o.stdout.lines().filter(|l| *l == "0").count());
        assert!(
            ended.as_ref().is_some_and(|o| o.ok() && o.stderr.is_empty()) && said == Some(3),
            "{ended:?}"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic of common programs.

use crate::net::{Net, QUIET, both, castanet, hosts, lab, ours, ports};
use castanet_lab::frames::icmp_in;
use castanet_lab::{Router, frames};
use std::collections::HashSet;
use std::time::Duration;

#[test]
fn ping_crosses_without_duplicates() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let mut seen = net.a.wire("eth0");
        let mut asked = net.b.wire("eth0");
        let text = net.a.ping(5, "10.0.1.2");
        assert!(text.contains("ttl=63") && !text.contains("DUP"), "{kind:?}: {text}");
        for (wire, kind) in [(&mut seen, (0, 0)), (&mut asked, (8, 0))] {
            let messages: Vec<_> = wire.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).collect();
            assert!(
                messages.iter().all(|m| m.kind == kind && m.ip.header.time_to_live == 63),
                "{messages:?}"
            );
            let sequence: HashSet<_> = messages.iter().map(|m| m.rest).collect();
            assert_eq!((messages.len(), sequence.len()), (5, 5), "each once");
        }
    }
}

#[test]
fn ping_to_each_address_of_the_router() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        for host in [&net.a, &net.b] {
            for address in ["10.0.0.1", "10.0.1.1"] {
                let text = host.ping(3, address);
                assert!(!text.contains("DUP"), "{kind:?}: {text}");
                assert_eq!(text.matches(&format!("64 bytes from {address}: icmp_seq=")).count(), 3, "{text}");
            }
        }
    }
}

#[test]
fn a_shield_keeps_the_kernel_out_of_it() {
    // The kernel of the router's host has the same addresses as Castanet, and also forwards. So packets and
    // replies are duplicated, unless `--shield` hides the packets from the kernel.
    for (further, once) in [(&[][..], false), (&["--shield"], true)] {
        let Some(lab) = lab() else { return };
        let (a, r, b) = hosts(&lab);
        for (device, address) in [("eth0", "10.0.0.1/24"), ("eth1", "10.0.1.1/24")] {
            r.address(device, address);
        }
        r.sysctl("net.ipv4.ip_forward", 1);
        let text = castanet_lab::router::configuration(&r, castanet(), &ports(1500, 1500), &[], further);
        let router = Router::run(r, castanet(), &["-e", &text], 2);
        a.run("ping -c 1 -W 60 10.0.1.2").good();
        for (address, kind) in [("10.0.1.2", (8, 0)), ("10.0.0.1", (0, 0))] {
            let mut wire = if kind.0 == 8 { b.wire("eth0") } else { a.wire("eth0") };
            a.run(&format!("ping -c 1 -W 60 {address}")).good();
            let is_copy = |f: &castanet_lab::Frame| icmp_in(&f.bytes).filter(|m| m.kind == kind).map(drop);
            wire.expect("copy", is_copy);
            if once {
                assert_eq!(wire.rest(QUIET).iter().filter_map(is_copy).count(), 0, "{address}: a second one");
            } else {
                wire.expect("second copy", is_copy);
            }
        }
        drop(router);
    }
}

/// Returns the addresses in the output of traceroute, one per hop.
fn hops(text: &str) -> Vec<&str> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect()
}

#[test]
fn traceroute_shows_the_way() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        for how in ["", "-I"] {
            let text = net.a.run(&format!("traceroute -n -q 1 -w 30,0,0 {how} 10.0.1.2")).good();
            assert_eq!(hops(&text), ["10.0.0.1", "10.0.1.2"], "{kind:?}: {text}");
        }
        let text = net.b.run("traceroute -n -q 1 -w 30,0,0 10.0.0.1").good();
        assert_eq!(hops(&text).len(), 1, "{kind:?}: {text}");
    }
}

#[test]
fn a_network_behind_a_second_router() {
    for kind in both() {
        let Some(lab) = lab() else { return };
        let (a, r, b) = hosts(&lab);
        let c = lab.host("c");
        lab.link((&b, "eth1"), (&c, "eth0"));
        b.address("eth1", "10.9.0.1/24");
        b.sysctl("net.ipv4.ip_forward", 1);
        c.address("eth0", "10.9.0.2/24");
        c.route("default", "10.9.0.1");
        let _r = Router::start(r, kind, &ports(1500, 1500), &[("10.9.0.0/16", "10.0.1.2")]);
        let text = a.run("traceroute -n -q 1 -w 30,0,0 10.9.0.2").good();
        assert_eq!(hops(&text), ["10.0.0.1", "10.0.1.2", "10.9.0.2"], "{kind:?}: {text}");
        let text = c.ping(2, "10.0.0.2");
        assert!(text.contains("ttl=62"), "{kind:?}: {text}");
    }
}

/// Reads a number from iperf3's JSON report.
fn number(report: &str, pointer: &str) -> f64 {
    let report: serde_json::Value = serde_json::from_str(report).unwrap_or_default();
    report
        .pointer(pointer)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("{pointer}: {report}"))
}

#[test]
fn iperf3_by_tcp() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let mut server = net.b.spawn("iperf3 -s -1 --forceflush");
        server.wait_for("listening", Duration::from_secs(200));
        let report = net.a.run("iperf3 -c 10.0.1.2 -w 128K -n 8M -J").good();
        let (sent, received) =
            (number(&report, "/end/sum_sent/bytes"), number(&report, "/end/sum_received/bytes"));
        // The client ends before its last bytes have arrived, so the report may show fewer bytes received than sent.
        assert!(sent >= 8e6 && received >= 4e6, "{kind:?}: {report}");
        assert!(server.wait(Duration::from_secs(200)).ok());
    }
}

#[test]
fn iperf3_by_udp() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let mut server = net.b.spawn("iperf3 -s -1 --forceflush");
        server.wait_for("listening", Duration::from_secs(200));
        let report = net.a.run("iperf3 -c 10.0.1.2 -u -b 2M -l 1000 -t 1 -J").good();
        let (packets, lost) = (number(&report, "/end/sum/packets"), number(&report, "/end/sum/lost_packets"));
        assert!(packets > 200.0 && lost == 0.0, "{kind:?}: {lost} of {packets} lost");
        assert!(server.wait(Duration::from_secs(200)).ok());
    }
}

#[test]
fn checksums_are_complete_or_marked() {
    let Some(net) = Net::new(ours()) else { return };
    let (_, mut b) = net.wires();
    // Host a sends packets with partial checksums, and no hardware completes them. The packet must arrive with a
    // correct checksum, or marked as partial.
    let mut command = net.a.command("bash");
    command.args(["-c", "echo -n hello > /dev/udp/10.0.1.2/2000"]);
    castanet_lab::Process::start(command).wait(Duration::from_secs(200)).good();
    b.expect("datagram", |f| {
        let ip = frames::ip_in(&f.bytes).filter(|ip| ip.header.protocol.0 == 17)?;
        let udp = etherparse::UdpHeaderSlice::from_slice(&ip.payload).ok()?.to_header();
        let right = udp.calc_checksum_ipv4(&ip.header, ip.payload.get(8..)?).ok()?;
        assert_eq!(ip.payload.get(8..), Some(&b"hello"[..]));
        assert!(f.partial || udp.checksum == right, "{ip:?}");
        Some(())
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests behaviour of rewriters that configurations rely on: protocols, full tables, streams, new specifications.

use super::*;
use crate::nat::icmp_ping_rewriter::IcmpPingRewriter;
use crate::nat::icmp_rewriter::IcmpRewriter;
use crate::nat::ip_rewriter::IpRewriter;
use crate::nat::tcp_rewriter::TcpRewriter;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::kit::Kit;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const N: [u8; 4] = [9, 9, 9, 9];
const SECOND: i64 = 1_000_000_000;

fn shown(out: &[(usize, Packet)]) -> Vec<String> {
    out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect()
}

#[test]
fn tcp_through_udp_rewriter() {
    let config = "pattern 9.9.9.9 1024-65535# - - 0 1, UDP_TIMEOUT 77";
    let mut kit = Kit::<UdpRewriter>::with_ports(config, 1, 2).unwrap();
    let segment = || tcp((A, 10), (B, 20), "A", 1, 1, b"x");
    assert_eq!(shown(&kit.push(0, [segment()])), ["0 9.9.9.9:1024 > 2.0.0.2:20"]);
    // Both protocols share one flow.
    assert_eq!(shown(&kit.push(0, [udp(A, 10, B, 20)])), ["0 9.9.9.9:1024 > 2.0.0.2:20"]);
    assert_eq!(kit.read("table_size").unwrap(), "2");
    let table = kit.read("table").unwrap();
    assert!(table.lines().count() == 2 && table.lines().all(|l| l.ends_with("exp77")), "{table}");
    assert_eq!(
        shown(&kit.push(0, [tcp((B, 20), (N, 1024), "R", 1, 1, b""), udp(B, 20, N, 1024)])),
        ["1 2.0.0.2:20 > 1.0.0.1:10"; 2]
    );
    // A TCP reset does not close a flow of UDPRewriter.
    assert!(kit.read("table").unwrap().contains("exp77"));
}

#[test]
fn errors_about_tcp_that_udp_rewriter_has_rewritten() {
    let mut rig = Rig::new(&[("rw", "UDPRewriter"), ("icmp", "ICMPRewriter")]);
    let mut rw: UdpRewriter = rig.build("rw", "pattern 9.9.9.9 1024-65535# - - 0 1", (1, 2)).unwrap();
    let mut icmp: IcmpRewriter = rig.build("icmp", "rw", (1, 2)).unwrap();
    rig.init("rw", &mut rw).unwrap();
    rig.init("icmp", &mut icmp).unwrap();
    for p in [tcp((A, 10), (B, 20), "A", 1, 1, b"x"), udp(A, 10, B, 20)] {
        let sent = rig.push("rw", &mut rw, 0, vec![p]).pop().unwrap().1;
        let mut data = Vec::new();
        let kind =
            etherparse::Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Host);
        PacketBuilder::ipv4(B, N, 64).icmpv4(kind).write(&mut data, sent.data()).unwrap();
        let out = rig.push("icmp", &mut icmp, 0, vec![ip(&data)]);
        assert_eq!(
            out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect::<Vec<_>>(),
            ["0 2.0.0.2 > 1.0.0.1 icmp 3"]
        );
        assert_eq!(out[0].1.data()[28 + 12..28 + 16], A);
        assert_eq!(out[0].1.data()[28 + 20..28 + 22], [0, 10]);
    }
}

#[test]
fn udp_through_tcp_rewriter() {
    let mut kit = Kit::<TcpRewriter>::with_ports("pattern 9.9.9.9 1024-65535# - - 0 1", 1, 2).unwrap();
    assert!(kit.push(0, [udp(A, 10, B, 20)]).is_empty());
    assert_eq!((kit.dropped(Reason::NotRewritable), kit.read("table_size").unwrap().as_str()), (1, "0"));
    for word in ["nochange", "pass", "passthrough"] {
        let mut kit = Kit::<TcpRewriter>::with_ports(&format!("{word} 1"), 1, 2).unwrap();
        assert_eq!(shown(&kit.push(0, [udp(A, 10, B, 20)])), ["1 1.0.0.1:10 > 2.0.0.2:20"]);
        assert_eq!(kit.read("table_size").unwrap(), "0");
    }
}

/// When the table is full, the flow that would time out first is evicted. If that would be the new flow itself
/// (which is possible without a guarantee), the new flow is refused.
#[test]
fn a_new_flow_may_be_the_one_that_finds_no_room() {
    let config = |more: &str| format!("pattern 9.9.9.9 1024-65535# - - 0 1, CAPACITY 10{more}");
    let fill = |kit: &mut Kit<TcpRewriter>| {
        for i in 0..10u16 {
            let (a, n) = ((A, 100 + i), (N, 1024 + i));
            kit.at(i64::from(i) * SECOND);
            kit.push(0, [tcp(a, (B, 80), "S", 1, 1, b""), tcp(a, (B, 80), "A", 2, 1, b"x")]);
            kit.push(0, [tcp((B, 80), n, "A", 1, 3, b"y")]);
        }
        kit.at(60 * SECOND);
    };
    let mut kit = Kit::<TcpRewriter>::with_ports(&config(", TCP_GUARANTEE 0"), 1, 2).unwrap();
    fill(&mut kit);
    assert!(kit.push(0, [tcp((A, 500), (B, 80), "S", 1, 1, b"")]).is_empty());
    assert_eq!(kit.dropped(Reason::TableFull), 1);
    assert_eq!((kit.read("size").unwrap(), kit.read("mapping_failures").unwrap()), ("10".into(), "1".into()));
    // A reset flow times out before the new flow would, so the reset flow is evicted.
    kit.push(0, [tcp((A, 103), (B, 80), "R", 1, 1, b"")]);
    assert_eq!(kit.push(0, [tcp((A, 501), (B, 80), "S", 1, 1, b"")]).len(), 1);
    let table = kit.read("table").unwrap();
    assert!(table.contains("(1.0.0.1, 501,") && !table.contains("(1.0.0.1, 103,"), "{table}");
    // A flow that would time out at the same time as the new flow is also evicted to make room.
    assert_eq!(kit.push(0, [tcp((A, 502), (B, 80), "S", 1, 1, b"")]).len(), 1);
    assert!(!kit.read("table").unwrap().contains("(1.0.0.1, 501,"));
    // A new flow with a guarantee is accepted, and the oldest other flow makes room.
    let mut kit = Kit::<TcpRewriter>::with_ports(&config(""), 1, 2).unwrap();
    fill(&mut kit);
    assert_eq!(kit.push(0, [tcp((A, 500), (B, 80), "S", 1, 1, b"")]).len(), 1);
    let table = kit.read("table").unwrap();
    assert!(table.contains("(1.0.0.1, 500,") && !table.contains("(1.0.0.1, 100,"), "{table}");
}

#[test]
fn three_packets_with_one_each_way_stream() {
    let config = "pattern 9.9.9.9 1024-65535# - - 0 1, UDP_TIMEOUT 30, UDP_STREAMING_TIMEOUT 60";
    let (there, back) = (|| udp(A, 10, B, 20), || udp(B, 20, N, 1024));
    for (way, want) in
        [("ff", 30), ("fff", 30), ("fr", 30), ("frr", 60), ("frf", 60), ("ffr", 60), ("fffffr", 60)]
    {
        let mut kit = Kit::<IpRewriter>::with_ports(config, 1, 2).unwrap();
        for c in way.chars() {
            assert_eq!(kit.push(0, [if c == 'f' { there() } else { back() }]).len(), 1);
        }
        let table = kit.read("udp_table").unwrap();
        assert!(table.lines().all(|l| l.ends_with(&format!("exp{want}"))), "{way}: {table}");
    }
}

#[test]
fn a_new_specification_forgets_the_flows_of_its_input() {
    let config = "pattern 9.9.9.9 1024-65535# - - 0 1, pattern 8.8.8.8 1024-65535# - - 0 1";
    let mut kit = Kit::<IpRewriter>::with_ports(config, 2, 2).unwrap();
    assert_eq!(kit.push(0, [udp(A, 10, B, 20)]).len() + kit.push(1, [udp(A, 11, B, 20)]).len(), 2);
    assert_eq!(kit.read("pattern0").unwrap(), "9.9.9.9 1024-65535 - - [1]");
    assert_eq!(kit.read("patterns").unwrap(), "9.9.9.9 1024-65535 - - [1]\n8.8.8.8 1024-65535 - - [1]\n");
    kit.write("pattern0", "pattern 7.7.7.7 5-6? - 99 0 1").unwrap();
    assert_eq!(kit.read("table_size").unwrap(), "2");
    assert_eq!(kit.read("patterns").unwrap(), "7.7.7.7 5-6 - 99\n8.8.8.8 1024-65535 - - [1]\n");
    assert!(
        kit.push(0, [udp(B, 20, N, 1024)]).iter().all(|(_, p)| show(p).starts_with("7.7.7.7:")),
        "no reply any more"
    );
    // A write that fails changes nothing.
    assert!(kit.write("pattern1", "pattern 7.7.7.7 5-6 - - 0 9").is_err());
    assert_eq!(kit.read("pattern1").unwrap(), "8.8.8.8 1024-65535 - - [1]");
    for (spec, want) in [("drop", "<drop>"), ("keep 0 1", "<keep>"), ("nochange 0", "<nochange>")] {
        kit.write("pattern1", spec).unwrap();
        assert_eq!(kit.read("pattern1").unwrap(), want);
    }
}

/// Where both directions of a flow look the same, the first packet is forward and all later ones are replies.
#[test]
fn a_flow_that_answers_itself() {
    let mut kit = Kit::<UdpRewriter>::with_ports("keep 0 1", 1, 2).unwrap();
    let own = || udp(A, 10, A, 10);
    assert_eq!(shown(&kit.push(0, [own()])), ["0 1.0.0.1:10 > 1.0.0.1:10"]);
    assert_eq!(shown(&kit.push(0, [own(), own()])), ["1 1.0.0.1:10 > 1.0.0.1:10"; 2]);
    assert_eq!(kit.read("size").unwrap(), "1");
    kit.write("clear", "").unwrap();
    assert_eq!((kit.read("size").unwrap(), kit.read("table_size").unwrap()), ("0".into(), "0".into()));
    assert_eq!(shown(&kit.push(0, [own()])), ["0 1.0.0.1:10 > 1.0.0.1:10"]);
}

/// An echo reply whose bytes are all zero has the checksum 0xffff.
#[test]
fn a_ping_of_zeros() {
    let echo = |from, to, kind: fn(u16, u16) -> etherparse::Icmpv4Type, id| {
        let mut data = Vec::new();
        PacketBuilder::ipv4(from, to, 64).icmpv4(kind(id, 0)).write(&mut data, &[0; 8]).unwrap();
        ip(&data)
    };
    let request = |id, seq| etherparse::Icmpv4Type::EchoRequest(etherparse::IcmpEchoHeader { id, seq });
    let reply = |id, seq| etherparse::Icmpv4Type::EchoReply(etherparse::IcmpEchoHeader { id, seq });
    let mut kit = Kit::<IcmpPingRewriter>::with_ports("pattern 9.9.9.9 1000-1000 - - 0 1", 1, 2).unwrap();
    assert_eq!(kit.push(0, [echo(A, B, request, 0)]).len(), 1);
    let out = kit.push(0, [echo(B, N, reply, 1000)]);
    assert_eq!(shown(&out), ["1 2.0.0.2 > 1.0.0.1 icmp 0"]);
    assert_eq!(out[0].1.data()[20..28], [0, 0, 0xff, 0xff, 0, 0, 0, 0]);
}

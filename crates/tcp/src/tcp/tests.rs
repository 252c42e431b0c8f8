// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPStack alone: what it takes, and what it drops for which reason.
#![allow(clippy::unwrap_used)]

use super::tcp_stack::TcpStack;
use castanet_element::kit::{Kit, packet};
use castanet_element::packet::Packet;
use castanet_element::spec::Reason;
use castanet_wire::icmp::{self, IcmpHeader};
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::{self, TcpHeader, flag};

/// A segment without data, from port 1000 to port 80.
fn segment(src: [u8; 4], dst: [u8; 4], flags: u8, change: impl Fn(&mut Vec<u8>)) -> Packet {
    let mut s = vec![0; 20];
    s[..4].copy_from_slice(&[3, 232, 0, 80]);
    (s[12], s[13]) = (5 << 4, flags);
    let [src, dst] = [src, dst].map(u32::from_be_bytes);
    tcp::set_checksum(src, dst, &mut s);
    let mut ip = Ipv4Header::new(6, src, dst, 40, 64).to_bytes().to_vec();
    ip.extend(s);
    change(&mut ip);
    let mut p = packet(&ip);
    p.set_network_header(0, 20);
    p
}

const PEER: [u8; 4] = [10, 0, 0, 9];
const OURS: [u8; 4] = [10, 0, 0, 2];

#[test]
fn packets_that_are_not_for_the_stack() {
    type Change = fn(&mut Vec<u8>);
    let nothing: Change = |_| ();
    let cases: [([u8; 4], [u8; 4], Change, Reason); 12] = [
        (PEER, [10, 0, 0, 3], nothing, Reason::NotAnswered),
        (PEER, [224, 0, 0, 1], nothing, Reason::NotAnswered),
        (PEER, [255, 255, 255, 255], nothing, Reason::NotAnswered),
        (PEER, [10, 0, 0, 255], nothing, Reason::NotAnswered),
        (PEER, OURS, |p| p[9] = 17, Reason::NotAnswered),
        (PEER, OURS, |p| p[6] = 0x20, Reason::NotAnswered),
        (PEER, OURS, |p| p[16 + 20] ^= 1, Reason::BadTransport),
        (PEER, OURS, |p| p[3] = 30, Reason::BadTransport),
        (PEER, OURS, |p| p[0] = 0x65, Reason::NoIpHeader),
        ([224, 0, 0, 1], OURS, nothing, Reason::BadSource),
        ([255, 255, 255, 255], OURS, nothing, Reason::BadSource),
        ([0, 0, 0, 0], OURS, nothing, Reason::BadSource),
    ];
    for (n, (src, dst, change, reason)) in cases.into_iter().enumerate() {
        let mut kit = Kit::<TcpStack>::new("10.0.0.1 10.0.0.2").unwrap();
        let out = kit.push(0, [segment(src, dst, flag::SYN, change)]);
        assert_eq!((out.len(), kit.dropped(reason), kit.all_dropped()), (0, 1, 1), "{n}");
        let mut kit = Kit::<TcpStack>::with_ports("10.0.0.1 10.0.0.2", 1, 2).unwrap();
        let out = kit.push(0, [segment(src, dst, flag::SYN, change)]);
        let passed = out.iter().filter(|o| o.0 == 1).count();
        assert_eq!(passed, usize::from(reason == Reason::NotAnswered), "{n}");
    }
    // Without a marked header.
    let mut kit = Kit::<TcpStack>::new("10.0.0.2").unwrap();
    kit.push(0, [packet(&[0; 40])]);
    assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
}

/// An ICMP message about a segment from `src` to the peer.
fn about(kind: u8, src: [u8; 4], change: impl Fn(&mut Vec<u8>)) -> Packet {
    let [router, ours] = [[10, 0, 0, 99], OURS].map(u32::from_be_bytes);
    let quoted = segment(src, PEER, flag::SYN, |_| ());
    let mut message = IcmpHeader::new(kind, 1, 0).to_bytes().to_vec();
    message.extend(&quoted.data()[..28]);
    change(&mut message);
    icmp::set_checksum(&mut message);
    let ip = Ipv4Header::new(1, router, ours, 20 + message.len() as u16, 64);
    let mut p = packet(&[&ip.to_bytes()[..], &message].concat());
    p.set_network_header(0, 20);
    p
}

/// Only errors about TCP segments of the stack are taken. Those that are about no connection are dropped.
#[test]
fn icmp_messages_that_are_not_for_the_stack() {
    let other = Reason::NotAnswered;
    let cut_off = |m: &mut Vec<u8>| m.truncate(35);
    let bad = |mut p: Packet, at: usize| {
        p.data_mut()[at] ^= 1;
        p
    };
    for (n, (p, reason)) in [
        (about(8, OURS, |_| ()), other),
        (about(5, OURS, |_| ()), other),
        (about(3, [10, 0, 0, 3], |_| ()), other),
        (about(3, OURS, |m| m[8 + 9] = 17), other),
        (about(3, OURS, cut_off), other),
        (bad(about(3, OURS, |_| ()), 16), other),
        (about(3, OURS, |_| ()), Reason::StaleError),
        (about(4, OURS, |_| ()), Reason::StaleError),
        (about(11, OURS, |_| ()), Reason::StaleError),
        (bad(about(3, OURS, |_| ()), 24), Reason::BadTransport),
        (bad(about(3, OURS, |_| ()), 47), Reason::BadTransport),
    ]
    .into_iter()
    .enumerate()
    {
        let mut kit = Kit::<TcpStack>::with_ports("10.0.0.1 10.0.0.2", 1, 2).unwrap();
        let out = kit.push(0, [p]);
        assert_eq!(out.iter().filter(|o| o.0 == 1).count(), usize::from(reason == other), "{n}");
        let dropped = u64::from(reason != other);
        assert_eq!((kit.dropped(reason), kit.all_dropped()), (dropped, dropped), "{n}");
        assert_eq!(kit.read("received").unwrap(), "0");
    }
}

/// Nothing listens, so a SYN to either address is answered by a RST (RFC 9293, section 3.10.7.1).
#[test]
fn closed_ports_answer_by_a_reset() {
    for ours in [[10, 0, 0, 1], OURS] {
        let mut kit = Kit::<TcpStack>::new("10.0.0.1 10.0.0.2, TTL 7").unwrap();
        let out =
            kit.push(0, [segment(PEER, ours, flag::SYN, |_| ()), segment(PEER, ours, flag::RST, |_| ())]);
        let [(0, answer)] = &out[..] else { panic!("{out:?}") };
        let ip = Ipv4Header::checked(answer.data(), true).unwrap();
        assert_eq!((ip.src.get(), ip.dst.get()), (u32::from_be_bytes(ours), u32::from_be_bytes(PEER)));
        assert_eq!(
            (ip.ttl, answer.dst_ip(), answer.network_offset()),
            (7, u32::from_be_bytes(PEER), Some(0))
        );
        let segment = answer.transport().unwrap();
        assert!(tcp::checksum_ok(ip.src.get(), ip.dst.get(), segment));
        let header = TcpHeader::from_prefix(segment).unwrap();
        assert_eq!((header.flags, header.ack.get()), (flag::RST | flag::ACK, 1));
        assert_eq!((kit.read("received").unwrap(), kit.read("sent").unwrap()), ("2".into(), "1".into()));
        assert_eq!((kit.read("strays").unwrap(), kit.read("count").unwrap()), ("2".into(), "0".into()));
    }
}

/// RFC 9293, section 3.9.2 (MUST-50): IP options, here two that TCP does not know and a record route, do not matter.
#[test]
fn ip_options_are_skipped() {
    let mut kit = Kit::<TcpStack>::new("10.0.0.2").unwrap();
    let options = [1, 0x94, 4, 0, 0, 7, 3, 4, 0x1e, 3, 0, 0];
    let mut p = segment(PEER, OURS, flag::SYN, |p| {
        p.splice(20..20, options);
        (p[0], p[3]) = (0x48, 52);
    });
    p.set_network_header(0, 32);
    let out = kit.push(0, [p]);
    let [(0, answer)] = &out[..] else { panic!("{out:?}") };
    let header = TcpHeader::from_prefix(answer.transport().unwrap()).unwrap();
    assert_eq!((header.flags, header.ack.get()), (flag::RST | flag::ACK, 1));
}

/// RFC 9293, section 3.9.2.1: a segment whose source route has ended here is taken, unless SOURCEROUTES is false. RFC 1122, section 3.2.1.8: one
/// whose route leads on is not for this host.
#[test]
fn source_routes_are_taken_where_they_end() {
    let along = |pointer: u8| {
        let mut p = segment(PEER, OURS, flag::SYN, |p| {
            p.splice(20..20, [1, 131, 11, pointer, 10, 0, 9, 1, 10, 0, 9, 2]);
            (p[0], p[3]) = (0x48, 52);
        });
        p.set_network_header(0, 32);
        p
    };
    for (config, pointer, reason) in [
        ("10.0.0.2", 4, Some(Reason::NotAnswered)),
        ("10.0.0.2", 8, Some(Reason::NotAnswered)),
        ("10.0.0.2", 12, None),
        ("10.0.0.2, SOURCEROUTES false", 12, Some(Reason::SourceRoute)),
        ("10.0.0.2, SOURCEROUTES false", 8, Some(Reason::NotAnswered)),
    ] {
        let mut kit = Kit::<TcpStack>::new(config).unwrap();
        let out = kit.push(0, [along(pointer)]);
        assert_eq!(
            (out.len(), kit.all_dropped()),
            (usize::from(reason.is_none()), u64::from(reason.is_some()))
        );
        assert_eq!(reason.map(|r| kit.dropped(r)), reason.map(|_| 1), "{config} {pointer}");
        assert_eq!(kit.read("routed").unwrap(), u32::from(reason.is_none()).to_string());
    }
}

#[test]
fn wrong_arguments_and_handler_values() {
    for config in [
        "",
        "\"\"",
        "10.0.0.1, CONNECTIONS 0",
        "10.0.0.1, LISTEN 7",
        "10.0.0.1, LISTEN 7 nobody",
        "10.0.0.1, MEMORY 5",
        "10.0.0.1, DSCP 64",
        "10.0.0.1, ECN ask",
    ] {
        assert!(Kit::<TcpStack>::new(config).is_err(), "{config}");
    }
    let mut kit = Kit::<TcpStack>::new("10.0.0.1").unwrap();
    for (handler, value) in [
        ("listen", "7"),
        ("listen", "7 nobody"),
        ("unlisten", "7"),
        ("connect", "10.0.0.2 nobody"),
        ("connect", "10.0.0.2:7@10.0.0.3 nobody"),
        ("dscp", "10.0.0.1:7 10.0.0.2:7 10"),
        ("dscp", "10.0.0.1:7 10.0.0.2:7 64"),
        ("dscp", "10"),
        ("close", "10.0.0.1:7"),
        ("abort", "10.0.0.1:7 10.0.0.2:7"),
    ] {
        assert!(kit.write(handler, value).is_err(), "{handler} {value}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of ICMPRewriter: errors about forward packets and replies, and packets that stay unchanged.

use super::*;
use crate::nat::icmp_ping_rewriter::IcmpPingRewriter;
use crate::nat::icmp_rewriter::IcmpRewriter;
use crate::nat::ip_addr_rewriter::IpAddrRewriter;
use crate::nat::ip_rewriter::IpRewriter;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const ROUTER: [u8; 4] = [5, 5, 5, 5];

/// A destination-unreachable error from `by` that quotes `n` bytes of a packet.
fn error(by: [u8; 4], about: &[u8], n: usize) -> Packet {
    let to: [u8; 4] = about[12..16].try_into().unwrap();
    let mut data = Vec::new();
    let kind = etherparse::Icmpv4Type::Unknown { type_u8: 3, code_u8: 1, bytes5to8: [0; 4] };
    PacketBuilder::ipv4(by, to, 64).icmpv4(kind).write(&mut data, &about[..n.min(about.len())]).unwrap();
    ip(&data)
}

/// The quoted packet.
fn quoted(p: &Packet) -> &[u8] {
    &p.data()[28..]
}

#[test]
fn errors_about_forward_packets_and_replies() {
    let mut rig = Rig::new(&[("icmp", "ICMPRewriter"), ("rw", "IPRewriter"), ("ping", "ICMPPingRewriter")]);
    let mut icmp: IcmpRewriter = rig.build("icmp", "rw ping:5", (1, 2)).unwrap();
    let mut rw: IpRewriter = rig.build("rw", "pattern 9.9.9.9 1024-2000# 3.0.0.3 - 0 1", (1, 2)).unwrap();
    let mut ping: IcmpPingRewriter = rig.build("ping", "pattern 9.9.9.9 1024-2000# - - 0 1", (1, 2)).unwrap();
    rig.init("icmp", &mut icmp).unwrap();
    rig.init("rw", &mut rw).unwrap();
    rig.init("ping", &mut ping).unwrap();
    for original in [udp(A, 10, B, 20), tcp((A, 11), (B, 80), "SA", 1, 9, b"data")] {
        let bytes = original.data().to_vec();
        let sent = rig.push("rw", &mut rw, 0, vec![original]).remove(0).1;
        for n in [28, 32, 40, 100] {
            let (out, p) = rig.push("icmp", &mut icmp, 0, vec![error(ROUTER, sent.data(), n)]).remove(0);
            assert_eq!((out, show(&p)), (0, "5.5.5.5 > 1.0.0.1 icmp 3".into()));
            assert_eq!(quoted(&p), &bytes[..n.min(bytes.len())], "as it was sent, {n} bytes");
            assert_eq!(p.dst_addr().octets(), A);
        }
        // An error from the receiver itself gets a new source: the address that the sender wrote to.
        let (_, p) = rig.push("icmp", &mut icmp, 0, vec![error([3, 0, 0, 3], sent.data(), 28)]).remove(0);
        assert_eq!(show(&p), "2.0.0.2 > 1.0.0.1 icmp 3");
        // The inside host sends an error about a reply.
        let reply = match bytes[9] {
            17 => udp([3, 0, 0, 3], 20, [9, 9, 9, 9], 1024),
            _ => tcp(([3, 0, 0, 3], 80), ([9, 9, 9, 9], 1025), "SA", 1, 9, b"data"),
        };
        let before = reply.data().to_vec();
        let got = rig.push("rw", &mut rw, 0, vec![reply]).remove(0).1;
        let (_, p) = rig.push("icmp", &mut icmp, 0, vec![error(A, got.data(), 28)]).remove(0);
        assert_eq!((show(&p).as_str(), quoted(&p)), ("9.9.9.9 > 3.0.0.3 icmp 3", &before[..28]));
    }
    let mut data = Vec::new();
    PacketBuilder::ipv4(A, B, 9).icmpv4_echo_request(77, 3).write(&mut data, b"abc").unwrap();
    let sent = rig.push("ping", &mut ping, 0, vec![ip(&data)]).remove(0).1;
    assert_ne!(sent.data(), data);
    let out = rig
        .with("icmp", 8, |cx| icmp.push(0, &mut [error(ROUTER, sent.data(), 28)].into_iter().collect(), cx))
        .1;
    let (port, p) = &out[0];
    // The output of the flow (1) plus the offset (5).
    assert_eq!((*port, show(p), quoted(p)), (6, "5.5.5.5 > 1.0.0.1 icmp 3".into(), &data[..28]));
}

#[test]
fn addresses_alone() {
    let mut rig = Rig::new(&[("icmp", "ICMPRewriter"), ("rw", "IPAddrRewriter")]);
    let mut icmp: IcmpRewriter = rig.build("icmp", "rw", (1, 2)).unwrap();
    let mut rw: IpAddrRewriter = rig.build("rw", "pattern 9.9.9.9 - 0 1", (1, 2)).unwrap();
    rig.init("rw", &mut rw).unwrap();
    rig.init("icmp", &mut icmp).unwrap();
    let original = udp(A, 10, B, 20);
    let bytes = original.data().to_vec();
    let sent = rig.push("rw", &mut rw, 0, vec![original]).remove(0).1;
    let (out, p) = rig.push("icmp", &mut icmp, 0, vec![error(ROUTER, sent.data(), 28)]).remove(0);
    assert_eq!((out, show(&p).as_str(), quoted(&p)), (0, "5.5.5.5 > 1.0.0.1 icmp 3", &bytes[..28]));
    let got = rig.push("rw", &mut rw, 0, vec![udp(B, 20, [9, 9, 9, 9], 10)]).remove(0).1;
    let (_, p) = rig.push("icmp", &mut icmp, 0, vec![error(A, got.data(), 28)]).remove(0);
    assert_eq!(
        (show(&p).as_str(), quoted(&p)),
        ("9.9.9.9 > 2.0.0.2 icmp 3", &udp(B, 20, [9, 9, 9, 9], 10).data()[..28])
    );
}

#[test]
fn others() {
    let mut rig = Rig::new(&[("icmp", "ICMPRewriter"), ("rw", "IPRewriter"), ("q", "Queue")]);
    let mut icmp: IcmpRewriter = rig.build("icmp", "rw, DST_ANNO false", (1, 2)).unwrap();
    let mut rw: IpRewriter = rig.build("rw", "pattern 9.9.9.9 1024# - - 0 1", (1, 2)).unwrap();
    rig.init("rw", &mut rw).unwrap();
    rig.init("icmp", &mut icmp).unwrap();
    let sent = rig.push("rw", &mut rw, 0, vec![udp(A, 10, B, 20)]).remove(0).1;
    let good = error(ROUTER, sent.data(), 28);
    // These packets leave unchanged by output 1: an echo request, truncated errors, fragments of errors,
    // errors that quote an unknown packet, and errors that do not go to the quoted packet's sender.
    let mut unknown = vec![error(ROUTER, udp(A, 10, B, 20).data(), 28)];
    let mut elsewhere = good.data().to_vec();
    elsewhere[19] ^= 1;
    unknown.push(ip(&elsewhere));
    let mut fragment = good.data().to_vec();
    fragment[6] = 0x20;
    unknown.push(ip(&fragment));
    let mut echo = good.data().to_vec();
    echo[20] = 8;
    unknown.push(ip(&echo));
    for n in 20..56 {
        unknown.push(ip(&good.data()[..n]));
    }
    for p in unknown {
        let before = p.data().to_vec();
        let out = rig.push("icmp", &mut icmp, 0, vec![p]);
        assert_eq!((out[0].0, out[0].1.data()), (1, &before[..]));
    }
    let out = rig.push("icmp", &mut icmp, 0, vec![udp(A, 1, B, 1), packet(good.data()), good]);
    assert_eq!((out.len(), out[0].0, out[0].1.dst_ip()), (1, 0, 0));
    assert_eq!((rig.dropped("icmp", Reason::NotRewritable), rig.dropped("icmp", Reason::NoIpHeader)), (1, 1));
    for bad in ["", "q", "nobody", "rw:x", "rw:70000"] {
        assert!(rig.build::<IcmpRewriter>("icmp", bad, (1, 2)).is_err(), "{bad}");
    }
}

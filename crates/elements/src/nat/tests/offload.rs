// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests super-packets and partial checksums: rewriting a packet and completing its offloads give the same bytes in
//! either order.

use super::*;
use crate::device::offload::finish;
use crate::nat::{ip_addr_pair_rewriter, ip_addr_rewriter, ip_rewriter, tcp_rewriter, udp_rewriter};
use castanet_packet::Offload;
use castanet_wire::{checksum, tcp, udp};

/// The sum of the pseudo-header of an IPv4 packet without options, as a sending host leaves it in the checksum field.
fn pseudo(net: &[u8], header: usize) -> u16 {
    let length = u16::try_from(net.len() - header).unwrap().to_be_bytes();
    let words = [&net[12..20], &[0, net[9]], &length].concat();
    checksum::sum(&words)
}

/// Makes a packet with a partial checksum, behind `before` bytes. If `size` is not 0, it is a super-packet
/// whose segments have `size` bytes of payload.
pub fn unfinished(net: &[u8], before: usize, size: u16) -> Packet {
    let header = usize::from(net[0] & 15) * 4;
    let mut net = net.to_vec();
    // Kinds of super-packets in virtio 1.2: 1 is TCP over IPv4, and 5 is UDP whose payload is cut into
    // datagrams.
    let (field, sum, kind) = match net[9] {
        6 => (16, pseudo(&net, header), 1),
        17 => (6, pseudo(&net, header), 5),
        _ => (2, 0, 0),
    };
    net[header + field..header + field + 2].copy_from_slice(&sum.to_be_bytes());
    let mut p = packet(&[&vec![0xee; before][..], &net].concat());
    p.set_network_header(before, header);
    let segments = (kind != 0 && size != 0).then_some((kind, size));
    p.set_offload(Some(Offload { checksum: Some(((before + header) as u16, field as u16)), segments }));
    p
}

fn finished(packets: Vec<Packet>) -> Vec<Packet> {
    let mut all = Batch::new();
    for p in packets {
        finish(p, &mut all).unwrap();
    }
    all.drain().collect()
}

/// Returns the bytes of packets. Except in UDP, checksums of 0 and of all ones mean the same (RFC 1071).
/// Devices send all ones, so these are changed to 0 here.
pub fn bytes(packets: &[Packet]) -> Vec<Vec<u8>> {
    let each = packets.iter().map(|p| {
        let mut net = p.network().unwrap().to_vec();
        let at = usize::from(net[0] & 15) * 4 + if net[9] == 6 { 16 } else { 2 };
        if net[9] != 17 && net[at..at + 2] == [0xff; 2] {
            net[at..at + 2].copy_from_slice(&[0; 2]);
        }
        show(&ip(&net));
        net
    });
    each.collect()
}

fn any_packet(random: &mut Random, from: ([u8; 4], u16), to: ([u8; 4], u16), proto: u8) -> Vec<u8> {
    let payload: Vec<u8> = (0..random.below(4000)).map(|_| random.below(256) as u8).collect();
    let mut h = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber(proto), from.0, to.0).unwrap();
    h.identification = random.below(65_536) as u16;
    let options = vec![1; random.below(3) as usize * 4];
    h.options = options[..].try_into().unwrap();
    let b = PacketBuilder::ip(etherparse::IpHeaders::Ipv4(h, Default::default()));
    let mut data = Vec::new();
    match proto {
        6 => {
            let seq = random.below(1 << 32) as u32;
            let options = vec![1; random.below(4) as usize * 4];
            let t = b.tcp(from.1, to.1, seq, 1000).ack(random.below(1 << 32) as u32);
            t.options_raw(&options).unwrap().write(&mut data, &payload).unwrap();
        }
        17 => b.udp(from.1, to.1).write(&mut data, &payload).unwrap(),
        _ => {
            let kind = etherparse::Icmpv4Type::DestinationUnreachable(
                etherparse::icmpv4::DestUnreachableHeader::Port,
            );
            let mut quoted = Vec::new();
            PacketBuilder::ipv4(to.0, from.0, 60).udp(to.1, from.1).write(&mut quoted, b"quoted").unwrap();
            b.icmpv4(kind).write(&mut data, &quoted).unwrap();
        }
    }
    data
}

fn compare<T: Build + Element + Lifecycle>(class: &'static str, pattern: &str, protocols: &[u8]) {
    let mut rig = Rig::new(&[("rw", class)]);
    let mut rw: T = rig.build("rw", pattern, (1, 2)).unwrap();
    rig.init("rw", &mut rw).unwrap();
    let mut random = Random::new(7, class);
    let (mut split, mut zeros) = (0, 0);
    for _ in 0..600 {
        let proto = protocols[random.below(protocols.len() as u64) as usize];
        let host = ([10, 0, 0, 1 + random.below(5) as u8], 1 + random.below(9) as u16);
        let far = ([2, 0, 0, 1 + random.below(2) as u8], 80);
        let mut net = any_packet(&mut random, host, far, proto);
        // Half of the packets are replies to a flow.
        if random.below(2) == 0 {
            let sent = rig.push("rw", &mut rw, 0, vec![ip(&net)]).pop().unwrap().1;
            let sent = sent.network().unwrap();
            let at = usize::from(sent[0] & 15) * 4;
            let addr = |n: usize| <[u8; 4]>::try_from(&sent[n..n + 4]).unwrap();
            let port = |n: usize| u16::from_be_bytes([sent[at + n], sent[at + n + 1]]);
            let (back_from, back_to) = ((addr(16), port(2)), (addr(12), port(0)));
            net = any_packet(&mut random, back_from, back_to, proto);
        }
        let before = [0, 14][random.below(2) as usize];
        let size = [0, 1 + random.below(1460) as u16][random.below(2) as usize];
        if proto == 17 && size == 0 {
            let sum = match random.below(2) {
                0 => udp_sum(&net),
                _ => udp_sum(rig.push("rw", &mut rw, 0, vec![ip(&net)])[0].1.data()),
            };
            aim_at_zero(&mut net, sum);
        }
        let first = finished(vec![unfinished(&net, before, size)]);
        let first = rig.push("rw", &mut rw, 0, first);
        let last = rig.push("rw", &mut rw, 0, vec![unfinished(&net, before, size)]);
        assert_eq!(last.len(), 1, "a super-packet stays whole");
        assert_eq!(last[0].0, first[0].0, "output");
        let first: Vec<_> = first.into_iter().map(|(_, p)| p).collect();
        let last = finished(last.into_iter().map(|(_, p)| p).collect());
        split += usize::from(last.len() > 1);
        let (first, last) = (bytes(&first), bytes(&last));
        zeros += first.iter().filter(|p| p[9] == 17 && udp_sum(p) == u16::MAX).count();
        assert_eq!(first, last, "{class}");
        for p in &last {
            let (src, dst) = (u32::from_be_bytes(p[12..16].try_into().unwrap()), &p[16..20]);
            let dst = u32::from_be_bytes(dst.try_into().unwrap());
            let rest = &p[usize::from(p[0] & 15) * 4..];
            assert!(p[9] != 6 || tcp::checksum_ok(src, dst, rest));
            assert!(p[9] != 17 || udp::checksum_ok(src, dst, rest));
        }
    }
    assert!(split > 50, "{class}: {split} super-packets");
    assert!(!protocols.contains(&17) || zeros > 10, "{class}: {zeros} sums of 0");
}

fn udp_sum(net: &[u8]) -> u16 {
    let at = usize::from(net[0] & 15) * 4 + 6;
    u16::from_be_bytes([net[at], net[at + 1]])
}

/// Changes the payload so that a checksum that was `sum` becomes 0, which is sent as all ones.
fn aim_at_zero(net: &mut [u8], sum: u16) {
    let at = usize::from(net[0] & 15) * 4 + 8;
    if let Some(word) = net.get_mut(at..at + 2) {
        let new = u32::from(u16::from_be_bytes([word[0], word[1]])) + u32::from(sum);
        word.copy_from_slice(&((new & 0xffff) as u16 + (new >> 16) as u16).to_be_bytes());
    }
}

#[test]
fn the_order_of_rewriting_and_completing_does_not_matter() {
    // If the address does not change, sums of 0 must stay as they are.
    for pattern in ["pattern 9.9.9.9 1024-65535 - - 0 1", "pattern - 1024-65535 - - 0 1", "keep 0 1"] {
        compare::<ip_rewriter::IpRewriter>("IPRewriter", pattern, &[6, 17]);
        compare::<tcp_rewriter::TcpRewriter>("TCPRewriter", pattern, &[6]);
        compare::<udp_rewriter::UdpRewriter>("UDPRewriter", pattern, &[17]);
    }
    let addresses = "pattern 9.9.9.1-9.9.9.90 - 0 1";
    compare::<ip_addr_rewriter::IpAddrRewriter>("IPAddrRewriter", addresses, &[6, 17, 1]);
    compare::<ip_addr_pair_rewriter::IpAddrPairRewriter>("IPAddrPairRewriter", addresses, &[6, 17, 1]);
}

#[test]
fn a_refused_super_packet_counts_as_its_segments() {
    let mut rig = Rig::new(&[("rw", "TCPRewriter")]);
    let mut rw: tcp_rewriter::TcpRewriter = rig.build("rw", "drop", (1, 2)).unwrap();
    rig.init("rw", &mut rw).unwrap();
    let whole = tcp(([1, 0, 0, 1], 5), ([2, 0, 0, 2], 6), "A", 1, 1, &[7; 1000]);
    assert!(rig.push("rw", &mut rw, 0, vec![unfinished(whole.data(), 0, 100), whole]).is_empty());
    assert_eq!(rig.read("rw", &mut rw, "mapping_failures"), "11");
    assert_eq!(rig.dropped("rw", Reason::NoMapping), 2);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares segments with another packet parser.
#![allow(clippy::unwrap_used)]
use super::*;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// A super-packet: TCP or UDP, over IPv4 or IPv6, with or without VLAN tag.
fn frame(v6: bool, udp: bool, tagged: bool, data: &[u8], flags: u8) -> Vec<u8> {
    let b = PacketBuilder::ethernet2([1; 6], [2; 6]);
    let ip = |b: etherparse::PacketBuilderStep<etherparse::Ethernet2Header>| {
        if v6 { b.ipv6([3; 16], [4; 16], 60) } else { b.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 60) }
    };
    let mut out = Vec::new();
    if udp {
        ip(b).udp(7, 8).write(&mut out, data).unwrap();
    } else {
        let mut tcp = etherparse::TcpHeader::new(7, 8, 0xffff_fff0, 500);
        tcp.set_options_raw(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        tcp.acknowledgment_number = 77;
        tcp.ack = true;
        ip(b).tcp_header(tcp).write(&mut out, data).unwrap();
        let t = if v6 { 54 } else { 34 };
        out[t + 13] |= flags;
    }
    if !v6 {
        out[18..20].copy_from_slice(&0xfffeu16.to_be_bytes());
    }
    if tagged {
        out.splice(12..12, [0x81, 0, 0, 5]);
    }
    out
}

fn vnet(v6: bool, udp: bool, tagged: bool, size: u16) -> VnetHeader {
    VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        gso_type: match (v6, udp) {
            (_, true) => VnetHeader::UDP,
            (true, _) => VnetHeader::TCP6,
            _ => VnetHeader::TCP4,
        },
        gso_size: size,
        header_len: 0,
        checksum_start: if v6 { 54 } else { 34 } + if tagged { 4 } else { 0 },
        checksum_offset: if udp { 6 } else { 16 },
    }
}

fn all(s: &Segments<'_>) -> Vec<Vec<u8>> {
    (0..s.count())
        .map(|i| {
            let mut out = vec![0xaa; s.len_of(i)];
            assert!(s.write(i, &mut out));
            out
        })
        .collect()
}

/// Checks segments with another parser. Returns the reassembled payload.
fn check(segments: &[Vec<u8>], size: usize, flags: u8) -> Vec<u8> {
    let mut data = Vec::new();
    for (i, bytes) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        let p = SlicedPacket::from_ethernet(bytes).unwrap();
        if let Some(NetSlice::Ipv4(ip)) = &p.net {
            let h = ip.header();
            assert_eq!(h.to_header().calc_header_checksum(), h.header_checksum());
            assert_eq!(h.identification(), 0xfffeu16.wrapping_add(i as u16));
        }
        let part = match (&p.net, p.transport.unwrap()) {
            (Some(net), TransportSlice::Tcp(t)) => {
                assert_eq!(t.sequence_number(), 0xffff_fff0u32.wrapping_add((i * size) as u32));
                assert_eq!(t.acknowledgment_number(), 77);
                assert_eq!(t.options(), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
                let had = |bit: u8| flags & bit != 0;
                assert_eq!((t.fin(), t.psh()), (had(FIN) && last, had(PSH) && last));
                assert_eq!((t.cwr(), t.ack()), (had(CWR) && i == 0, true));
                let header = t.to_header();
                let sum = match net {
                    NetSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), t.payload()),
                    NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), t.payload()),
                    _ => panic!("no IP"),
                };
                assert_eq!(sum.unwrap(), t.checksum());
                t.payload().to_vec()
            }
            (Some(net), TransportSlice::Udp(u)) => {
                let header = u.to_header();
                assert_eq!(usize::from(header.length), 8 + u.payload().len());
                let sum = match net {
                    NetSlice::Ipv4(ip) => header.calc_checksum_ipv4(&ip.header().to_header(), u.payload()),
                    NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), u.payload()),
                    _ => panic!("no IP"),
                };
                assert_eq!(sum.unwrap(), u.checksum());
                u.payload().to_vec()
            }
            _ => panic!("not TCP or UDP"),
        };
        assert!(if last { part.len() <= size } else { part.len() == size });
        data.extend(part);
    }
    data
}

#[test]
fn segments_are_whole_packets() {
    let flags = FIN | PSH | CWR;
    for (v6, udp, tagged) in (0..8).map(|n| (n & 1 != 0, n & 2 != 0, n & 4 != 0)) {
        for (len, size, count) in [
            (1, 1, 1),
            (100, 1448, 1),
            (1448, 1448, 1),
            (1449, 1448, 2),
            (60_000, 1448, 42),
            (10, 1, 10),
            (0, 9, 1),
        ] {
            let data = payload(len);
            let frame = frame(v6, udp, tagged, &data, flags);
            let s = Segments::new(&frame, &vnet(v6, udp, tagged, size), Start::Ethernet).unwrap();
            assert_eq!(s.count(), count, "{v6} {udp} {tagged} {len} {size}");
            assert_eq!(check(&all(&s), usize::from(size), flags), data);
            // The segments are the same without the hint for the transport header and with padding after the
            // packet.
            let bare = VnetHeader { flags: 0, ..vnet(v6, udp, tagged, size) };
            let padded = [&frame[..], &[0xee; 5]].concat();
            let t = Segments::new(&padded, &bare, Start::Ethernet).unwrap();
            assert_eq!(all(&t), all(&s));
        }
    }
}

/// Only UDP sends a computed checksum of zero as all ones (RFC 768).
#[test]
fn a_checksum_of_zero_is_all_ones_in_udp_only() {
    for udp in [false, true] {
        let mut data = payload(200);
        data[98..100].fill(0);
        let field = if udp { 40..42 } else { 50..52 };
        let f = frame(false, udp, false, &data, 0);
        let vnet = vnet(false, udp, false, 100);
        let first = all(&Segments::new(&f, &vnet, Start::Ethernet).unwrap()).swap_remove(0);
        // The last word of the first segment becomes the checksum that this segment had with zero in this word. So the
        // checksum of the segment is now zero.
        data[98..100].copy_from_slice(&first[field.clone()]);
        let f = frame(false, udp, false, &data, 0);
        let segments = all(&Segments::new(&f, &vnet, Start::Ethernet).unwrap());
        assert_eq!(segments[0][field], if udp { [0xff; 2] } else { [0; 2] });
        assert_eq!(check(&segments, 100, 0), data);
    }
}

#[test]
fn without_link_header() {
    let data = payload(5000);
    let frame = frame(false, false, false, &data, PSH);
    let v = VnetHeader { checksum_start: 20, ..vnet(false, false, false, 1000) };
    let s = Segments::new(&frame[14..], &v, Start::Ip).unwrap();
    let with: Vec<Vec<u8>> = all(&s).iter().map(|p| [&frame[..14], p].concat()).collect();
    assert_eq!(check(&with, 1000, PSH), data);
}

#[test]
fn udp_without_checksum_stays_without() {
    let mut f = frame(false, true, false, &payload(30), 0);
    f[40..42].copy_from_slice(&[0, 0]);
    let v = VnetHeader { flags: 0, ..vnet(false, true, false, 20) };
    for s in all(&Segments::new(&f, &v, Start::Ethernet).unwrap()) {
        assert_eq!(&s[40..42], [0, 0]);
    }
}

#[test]
fn contradictions_are_errors() {
    let f = frame(false, false, false, &payload(3000), 0);
    let good = vnet(false, false, false, 1000);
    let table = [
        (VnetHeader { gso_size: 0, ..good }, BadOffload::Size),
        (VnetHeader { gso_type: VnetHeader::UDP_FRAGMENTS, ..good }, BadOffload::Kind),
        (VnetHeader { gso_type: 99, ..good }, BadOffload::Kind),
        (VnetHeader { gso_type: 0, ..good }, BadOffload::Kind),
        (VnetHeader { gso_type: VnetHeader::TCP6, ..good }, BadOffload::Headers),
        (VnetHeader { gso_type: VnetHeader::UDP, ..good }, BadOffload::Headers),
        (VnetHeader { checksum_offset: 6, ..good }, BadOffload::Headers),
        (VnetHeader { checksum_start: 33, ..good }, BadOffload::Headers),
        (VnetHeader { checksum_start: 54, ..good }, BadOffload::Headers),
        (VnetHeader { checksum_start: u16::MAX, ..good }, BadOffload::Headers),
    ];
    for (v, error) in table {
        assert_eq!(Segments::new(&f, &v, Start::Ethernet).unwrap_err(), error, "{v:?}");
    }
    assert!(
        Segments::new(
            &f,
            &VnetHeader { gso_type: VnetHeader::TCP4 | VnetHeader::ECN, ..good },
            Start::Ethernet
        )
        .is_ok()
    );
    // Headers truncated at any byte.
    for len in 0..66 {
        assert_eq!(
            Segments::new(&f[..len], &good, Start::Ethernet).unwrap_err(),
            BadOffload::Headers,
            "{len}"
        );
    }
    let s = Segments::new(&f, &good, Start::Ethernet).unwrap();
    assert!(!s.write(0, &mut [0; 10]) && !s.write(3, &mut [0; 66]));
}

proptest! {
    #[test]
    fn nothing_panics(mut f: Vec<u8>, flags: u8, kind in 0u8..8, size: u16, start: u16, offset in 0u16..20, v6: bool, at in 0usize..70, byte: u8) {
        let v = VnetHeader { flags, gso_type: kind, gso_size: size, header_len: 0, checksum_start: start, checksum_offset: offset };
        let mut like = frame(v6, kind & 1 != 0, false, &payload(200), flags);
        like[at] = byte;
        f.truncate(2000);
        for (f, v) in [(&f, v), (&like, v), (&like, VnetHeader { gso_size: size % 100, ..vnet(v6, kind & 1 != 0, false, 1) })] {
            for start in [Start::Ethernet, Start::Ip] {
                if let Ok(s) = Segments::new(f, &v, start) {
                    prop_assert!(s.count() <= f.len().max(1));
                    all(&s);
                }
            }
        }
    }
}

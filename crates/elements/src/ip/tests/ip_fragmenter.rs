// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPFragmenter.
#![allow(clippy::unwrap_used)]

use super::*;
use castanet_element::Seed;
use castanet_element::kit::{Kit, packet};
use castanet_packet::Offload;

struct Ip<'a> {
    options: &'a [u8],
    data: usize,
    dont: bool,
    more: bool,
    offset: u16,
}

const PLAIN: Ip<'_> = Ip { options: &[], data: 0, dont: false, more: false, offset: 0 };

impl Ip<'_> {
    fn packet(&self) -> Packet {
        let mut h = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, [1, 0, 0, 1], [2, 0, 0, 2])
            .unwrap();
        h.options = self.options.try_into().unwrap();
        h.total_len = u16::try_from(h.header_len() + self.data).unwrap();
        h.identification = 77;
        h.dont_fragment = self.dont;
        h.more_fragments = self.more;
        h.fragment_offset = (self.offset / 8).try_into().unwrap();
        h.header_checksum = h.calc_header_checksum();
        let mut bytes = h.to_bytes().to_vec();
        bytes.extend((0..self.data).map(|i| (i % 251) as u8));
        let mut p = packet(&bytes);
        p.set_network_header(0, h.header_len());
        p.set_paint(5);
        p
    }
}

fn headers(out: &[(usize, Packet)]) -> Vec<(etherparse::Ipv4Header, Vec<u8>)> {
    out.iter()
        .map(|(port, p)| {
            assert_eq!((*port, p.paint(), p.network_offset()), (0, 5, Some(0)));
            let (h, data) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
            assert_eq!(h.calc_header_checksum(), h.header_checksum);
            assert_eq!((usize::from(h.total_len), p.network_header_length()), (p.len(), h.header_len()));
            (h, data.to_vec())
        })
        .collect()
}

#[test]
fn new_identifications_are_secrets_unless_a_seed_is_given() {
    let ids = |seed| {
        let mut k = Kit::<IpFragmenter>::with_seed("576, HONOR_DF false", seed).unwrap();
        let packets = [(); 3].map(|()| Ip { data: 1000, dont: true, ..PLAIN }.packet());
        let ids: Vec<_> = headers(&k.act(packets)).iter().map(|h| h.0.identification).collect();
        assert!(ids.len() == 6 && ids[0] == ids[1] && ids[2] == ids[3], "{ids:?}");
        ids
    };
    assert_eq!(ids(Seed::Fixed(1)), ids(Seed::Fixed(1)));
    assert_ne!(ids(Seed::Fixed(1)), ids(Seed::Fixed(2)));
    let drawn: std::collections::HashSet<_> = (0..64).map(|_| ids(Seed::System)).collect();
    assert!(drawn.len() >= 32, "{drawn:?}");
}

#[test]
fn fragments_carry_everything_once() {
    for (mtu, data, options, more, offset) in [
        (60, 68, &[1, 7, 3, 4, 148, 4, 0, 0, 1, 1, 1, 0][..], false, 0),
        (28, 100, &[], false, 0),
        (68, 1480, &[], true, 0),
        (576, 1480, &[], false, 1480),
        (577, 1481, &[7, 3, 4, 0], true, 800),
        (1500, 9000, &[], false, 0),
    ] {
        let mut kit = Kit::<IpFragmenter>::new(&mtu.to_string()).unwrap();
        let ip = Ip { options, data, more, offset, ..PLAIN };
        let before = ip.packet().data().to_vec();
        let out = kit.act([ip.packet()]);
        let got = headers(&out);
        assert_eq!(kit.read("fragments").unwrap(), got.len().to_string());
        let mut at = 0;
        for (i, (h, piece)) in got.iter().enumerate() {
            let last = i + 1 == got.len();
            assert!(usize::from(h.total_len) <= mtu && (last || piece.len() % 8 == 0));
            assert!(last || usize::from(h.total_len) + 8 > mtu, "as large as fits");
            assert_eq!(usize::from(h.fragment_offset.value()) * 8, usize::from(offset) + at);
            assert_eq!((h.more_fragments, h.dont_fragment), (!last || more, false));
            assert_eq!((h.identification, h.time_to_live, h.source), (77, 64, [1, 0, 0, 1]));
            assert_eq!(piece[..], before[20 + options.len() + at..][..piece.len()]);
            assert!(i > 0 || h.options[..] == *options);
            assert!(
                i == 0
                    || h.options[..]
                        == options.get(4..8).map_or(vec![], |o| if o[0] == 148 {
                            o.to_vec()
                        } else {
                            vec![]
                        })
            );
            at += piece.len();
        }
        assert_eq!(at, data);
    }
}

#[test]
fn the_lengths_of_an_example() {
    // The header has 32 bytes. Of its 12 bytes of options, later fragments copy 4.
    let options = &[148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 1];
    let mut kit = Kit::<IpFragmenter>::new("60").unwrap();
    let out = kit.act([Ip { options, data: 68, ..PLAIN }.packet()]);
    assert_eq!(out.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), [56, 56, 36]);
    assert!(out.iter().skip(1).all(|(_, p)| p.headroom() == 28));
}

#[test]
fn what_fits_passes() {
    for batch in [1usize, 2, 32] {
        let mut kit = Kit::<IpFragmenter>::new("100").unwrap();
        let out = kit.act((0..batch).map(|i| Ip { data: 80 - i % 3, dont: true, ..PLAIN }.packet()));
        assert_eq!(out.len(), batch);
        let out = kit.act([Ip { data: 80, ..PLAIN }.packet(), Ip { data: 81, ..PLAIN }.packet()]);
        assert_eq!(out.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), [100, 100, 21]);
        assert_eq!(kit.read("fragments").unwrap(), "2");
    }
    // Padding is cut off.
    let mut kit = Kit::<IpFragmenter>::new("100").unwrap();
    let mut p = Ip { data: 50, ..PLAIN }.packet();
    assert!(p.put(200));
    assert_eq!(kit.act([p])[0].1.len(), 70);
}

#[test]
fn what_must_not_be_fragmented() {
    let long = || Ip { data: 80, dont: true, ..PLAIN }.packet();
    for outputs in [1, 2] {
        let mut kit = Kit::<IpFragmenter>::with_ports("60", 1, outputs).unwrap();
        let data = long().data().to_vec();
        let out = kit.act((0..7).map(|_| long()));
        assert!(out.iter().all(|(port, p)| *port == 1 && p.data() == data));
        assert_eq!(
            (out.len(), kit.dropped(Reason::MustFragment)),
            if outputs == 2 { (7, 0) } else { (0, 7) }
        );
        assert_eq!(kit.read("drops").unwrap(), "7");
        assert_eq!(kit.messages(), vec!["IPFragmenter(60) DF 1.0.0.1 2.0.0.2 len=100"; 5]);
    }
    let mut kit = Kit::<IpFragmenter>::new("60, true, true").unwrap();
    kit.act((0..7).map(|_| long()));
    assert_eq!(kit.messages().len(), 7);

    let mut kit = Kit::<IpFragmenter>::new("60, false").unwrap();
    let out = kit.act([long(), long()]);
    let got = headers(&out);
    assert_eq!(got.len(), 4);
    assert!(got.iter().all(|(h, _)| !h.dont_fragment));
    let ids: Vec<_> = got.iter().map(|(h, _)| h.identification).collect();
    assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2], "{ids:?}");
}

#[test]
fn no_room_and_no_header() {
    // An MTU of 27 bytes has space for a header and less than 8 bytes of data.
    let mut kit = Kit::<IpFragmenter>::with_ports("27", 1, 2).unwrap();
    assert_eq!(kit.act([Ip { data: 80, ..PLAIN }.packet()])[0].0, 1);
    for len in 0..60 {
        let mut kit = Kit::<IpFragmenter>::with_ports("8", 1, 2).unwrap();
        let mut p = packet(&vec![0x4f; len]);
        p.set_network_header(0, 60);
        let out = kit.act([p, packet(&vec![0x4f; len])]);
        assert_eq!((out.len(), out[0].0), (1, usize::from(len > 8)));
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }
    // The total length is less than the header length.
    let mut data = vec![0; 40];
    (data[0], data[3]) = (0x45, 19);
    let mut p = packet(&data);
    p.set_network_header(0, 20);
    let mut kit = Kit::<IpFragmenter>::with_ports("30", 1, 2).unwrap();
    assert_eq!(kit.act([p])[0].0, 1);
}

#[test]
fn arguments() {
    assert_eq!(Kit::<IpFragmenter>::new("7").err().unwrap(), ["MTU: must be at least 8"]);
    assert!(Kit::<IpFragmenter>::new("").is_err());
    assert!(Kit::<IpFragmenter>::new("100, HEADROOM 100000").is_err());
    let mut kit = Kit::<IpFragmenter>::new("28, HEADROOM 90").unwrap();
    let out = kit.act([Ip { data: 16, ..PLAIN }.packet()]);
    assert_eq!(out[1].1.headroom(), 90);
}

/// A TCP super-packet with 250 bytes of payload, in segments of 100 bytes, with its Ethernet header stripped.
fn super_packet(dont: bool) -> Packet {
    let payload: Vec<u8> = (0..250u16).map(|i| i as u8).collect();
    let mut data = Vec::new();
    let mut header =
        etherparse::Ipv4Header::new(0, 9, etherparse::ip_number::TCP, [1, 0, 0, 1], [2, 0, 0, 2]).unwrap();
    header.dont_fragment = dont;
    etherparse::PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
        .tcp(1, 2, 3, 4)
        .write(&mut data, &payload)
        .unwrap();
    let mut p = packet(&data);
    p.set_network_header(0, 20);
    p.set_offload(Some(Offload { checksum: Some((20, 16)), segments: Some((1, 100)) }));
    p
}

#[test]
fn super_packets_are_judged_by_their_segments() {
    // Each segment has up to 140 bytes.
    let mut kit = Kit::<IpFragmenter>::new("140").unwrap();
    let out = kit.act([super_packet(true)]);
    assert_eq!((out.len(), out[0].1.len()), (1, 290));
    assert!(out[0].1.offload().is_some());
    let mut kit = Kit::<IpFragmenter>::with_ports("139", 1, 2).unwrap();
    let out = kit.act([super_packet(true)]);
    assert_eq!((out.len(), out[0].0), (1, 1));
    assert_eq!(kit.read("drops").unwrap(), "3");
    let out = kit.act([super_packet(false), super_packet(false)]);
    // Each super-packet has three segments: two of 140 bytes, each cut into fragments of 132 and 28 bytes, and a last
    // one of 90 bytes.
    let lengths: Vec<usize> = out.iter().map(|o| o.1.len()).collect();
    assert_eq!(lengths, [132, 28, 132, 28, 90, 132, 28, 132, 28, 90]);
    assert!(out.iter().all(|o| o.0 == 0 && o.1.offload().is_none()));
    // Fragments are in order: offsets count up within a segment, and identifications count up from segment to
    // segment.
    let ids: Vec<u16> = out.iter().map(|o| u16::from_be_bytes([o.1.data()[4], o.1.data()[5]])).collect();
    assert_eq!(ids[..5], [ids[0], ids[0], ids[0] + 1, ids[0] + 1, ids[0] + 2]);
    let offsets: Vec<u8> = out.iter().map(|o| o.1.data()[7]).collect();
    assert_eq!(offsets[..5], [0, 14, 0, 14, 0]);
}

#[test]
fn fragments_beyond_the_longest_packet_are_refused() {
    // The header, the data before this fragment, and its own data may have at most 65,535 bytes together. Without the
    // check, the piece after offset 65,528 would get offset 0.
    for (offset, data, fits) in [
        (64_984, 530, true),
        (64_984, 531, true),
        (64_984, 532, false),
        (64_984, 1400, false),
        (65_400, 115, true),
        (65_400, 116, false),
        (65_528, 100, false),
    ] {
        for more in [false, true] {
            let ip = Ip { data, offset, more, ..PLAIN };
            let mut kit = Kit::<IpFragmenter>::new("68").unwrap();
            let out = kit.act([ip.packet()]);
            assert_eq!(kit.dropped(Reason::BadFragment), u64::from(!fits), "{offset} {data}");
            let mut next = usize::from(offset);
            for (h, payload) in headers(&out) {
                assert_eq!(usize::from(h.fragment_offset.byte_offset()), next);
                next += payload.len();
            }
            assert_eq!(next - usize::from(offset), if fits { data } else { 0 });
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPReassembler: fragments made by IPFragmenter, hostile fragments, timeouts and the memory limit.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::ip::ip_fragmenter::IpFragmenter;
use castanet_element::kit::{Kit, packet};

fn marked(data: &[u8]) -> Packet {
    let mut p = packet(data);
    p.set_network_header(0, usize::from(data.first().map_or(0, |b| b & 15)) * 4);
    p
}

/// A fragment with identification `id`. It carries bytes `start..end` of a packet with the data 0, 1, 2, ...
fn fragment(id: u16, start: u16, end: u16, more: bool) -> Packet {
    marked(&bytes(id, start, end, more))
}

fn bytes(id: u16, start: u16, end: u16, more: bool) -> Vec<u8> {
    let mut h = Ipv4Header::new(17, 0x0100_0001, 0x0200_0002, 20 + (end - start), 64);
    h.id.set(id);
    h.set_fragment(start, more, false);
    h.set_checksum20();
    h.as_array().iter().copied().chain((start..end).map(|i| i as u8)).collect()
}

fn kit(config: &str) -> Kit<IpReassembler> {
    Kit::with_ports(config, 1, 2).unwrap()
}

/// Pushes packets. Checks the whole packets that leave, and returns them. No other packets may leave.
fn wholes(kit: &mut Kit<IpReassembler>, packets: Vec<Packet>) -> Vec<Vec<u8>> {
    let out = kit.push(0, packets);
    assert!(out.iter().all(|o| o.0 == 0));
    for (_, p) in &out {
        let (h, rest) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
        assert_eq!((h.calc_header_checksum(), h.more_fragments), (h.header_checksum, false));
        assert_eq!((h.fragment_offset.value(), usize::from(h.total_len)), (0, h.header_len() + rest.len()));
    }
    out.iter().map(|(_, p)| p.data().to_vec()).collect()
}

/// Returns the counts in `dump`: fragments seen, good, failed and bad.
fn counts(kit: &mut Kit<IpReassembler>) -> [u64; 4] {
    let dump = kit.read("dump").unwrap();
    let mut numbers = dump.lines().map_while(|l| l.split_once(":")?.1.trim().parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or(99))
}

#[test]
fn what_the_fragmenter_cuts_becomes_whole_in_any_order() {
    let mut random = Random::new(7, "order");
    for len in [1u16, 8, 9, 100, 555, 3000] {
        for mtu in [68, 100, 576, 1500] {
            let mut data = bytes(9, 0, len, false);
            // The packet has two options. The later fragments carry a copy of the first option, but not the second.
            data.splice(20..20, [148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0]);
            data[0] = 0x48;
            data[2..4].copy_from_slice(&(32 + len).to_be_bytes());
            let sum = castanet_wire::checksum::ipv4_header_checksum(&data[..32]);
            data[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut cut = Kit::<IpFragmenter>::new(&mtu.to_string()).unwrap();
            let mut p = marked(&data);
            p.set_paint(7);
            let mut pieces: Vec<Packet> = cut.act([p]).into_iter().map(|o| o.1).collect();
            for i in (1..pieces.len()).rev() {
                pieces.swap(i, random.below(i as u64 + 1) as usize);
            }
            let n = pieces.len() as u64;
            let mut kit = kit("");
            // Add padding, as on short Ethernet frames. The reassembler cuts it off.
            for p in &mut pieces {
                p.put(5);
            }
            let whole = n == 1;
            let out = kit.push(0, pieces);
            assert_eq!((out.len(), out[0].0, out[0].1.paint()), (1, 0, 7));
            assert_eq!(&out[0].1.data()[..data.len()], &data[..], "{len} bytes, MTU {mtu}");
            assert_eq!(out[0].1.len(), data.len() + if whole { 5 } else { 0 });
            assert_eq!(out[0].1.network_header_length(), 32);
            assert_eq!(kit.dropped(Reason::Consumed), n - 1);
            assert_eq!(counts(&mut kit), if whole { [0; 4] } else { [n, 1, 0, 0] });
            assert_eq!((kit.element.charged, kit.element.order.len()), (0, 0));
        }
    }
}

#[test]
fn several_at_once_and_the_longest_fragment() {
    let mut kit = kit("MAX_MTU_ANNO VLAN");
    let mut order = Vec::new();
    for (start, end, more) in [(0, 16, true), (40, 48, false), (16, 40, true)] {
        order.extend((0..50).map(|id| fragment(id, start, end, more)));
    }
    let out = kit.push(0, order);
    assert_eq!(out.len(), 50);
    for (id, (_, p)) in (0..).zip(&out) {
        let mut want = bytes(id, 0, 48, false);
        want[4..6].copy_from_slice(&u16::to_be_bytes(id));
        assert_eq!((p.data(), p.anno::<2>(20)), (&want[..], 44u16.to_ne_bytes()));
    }
    assert!(Kit::<IpReassembler>::new("MAX_MTU_ANNO PAINT").is_err());
    // Fragments with another protocol, source or destination belong to another packet.
    for at in [9, 15, 19] {
        let mut other = bytes(1, 8, 16, false);
        other[at] ^= 1;
        assert!(wholes(&mut kit, vec![fragment(1, 0, 8, true), marked(&other)]).is_empty());
        assert_eq!(wholes(&mut kit, vec![fragment(1, 8, 16, false)]).len(), 1);
    }
}

#[test]
fn hostile_fragments() {
    let whole = |p: Vec<Packet>| {
        let mut kit = kit("");
        let n = p.len() as u64;
        let out = wholes(&mut kit, p).len();
        let held: usize = kit.element.datagrams.values().map(|d| d.pieces().len()).sum();
        assert_eq!(n, out as u64 + kit.all_dropped() + held as u64);
        (out, held, counts(&mut kit)[2], counts(&mut kit)[3])
    };
    let f = |start, end, more| fragment(1, start, end, more);
    let mut other_data = bytes(1, 0, 16, true);
    other_data[25] ^= 1;
    let with = |mut b: Vec<u8>, changes: &[(usize, u8)]| {
        for &(i, v) in changes {
            b[i] = v;
        }
        marked(&b)
    };
    // The numbers of whole packets, fragments held, failed packets and bad fragments.
    type Fate = (usize, usize, u64, u64);
    let table: Vec<(&str, Vec<Packet>, Fate)> = vec![
        ("repeated", vec![f(0, 16, true), f(0, 16, true), f(16, 17, false)], (1, 0, 0, 0)),
        ("last repeated", vec![f(16, 17, false), f(16, 17, false), f(0, 16, true)], (1, 0, 0, 0)),
        ("same place, other data", vec![f(0, 16, true), marked(&other_data), f(16, 17, false)], (0, 0, 1, 2)),
        (
            "same place, no longer the last",
            vec![f(8, 16, false), f(8, 16, true), f(0, 8, true)],
            (0, 0, 1, 2),
        ),
        ("overlap by one unit", vec![f(0, 16, true), f(8, 24, false), f(16, 24, false)], (0, 0, 1, 2)),
        ("overlap from below", vec![f(8, 24, false), f(0, 16, true), f(0, 8, true)], (0, 0, 1, 2)),
        ("covers another", vec![f(8, 16, true), f(0, 24, true)], (0, 0, 1, 1)),
        ("inside another", vec![f(0, 24, true), f(8, 16, true)], (0, 0, 1, 1)),
        ("two ends", vec![f(8, 16, false), f(16, 24, false)], (0, 0, 1, 1)),
        ("two ends, shorter", vec![f(16, 24, false), f(8, 16, false)], (0, 0, 1, 1)),
        ("more behind the end", vec![f(8, 16, false), f(16, 24, true)], (0, 0, 1, 1)),
        ("end before what is there", vec![f(16, 24, true), f(0, 8, true), f(8, 12, false)], (0, 0, 1, 1)),
        ("no multiple of 8", vec![f(0, 12, true)], (0, 0, 0, 1)),
        ("nothing in it", vec![f(8, 8, false), f(0, 0, true)], (0, 0, 0, 2)),
        ("shorter than it says", vec![with(bytes(1, 0, 8, true), &[(3, 29)])], (0, 0, 0, 1)),
        ("shorter than its header", vec![with(bytes(1, 0, 8, true), &[(3, 19)])], (0, 0, 0, 1)),
        ("header of 16 bytes", vec![with(bytes(1, 0, 8, true), &[(0, 0x44)])], (0, 0, 0, 1)),
        ("header as long as all", vec![with(bytes(1, 0, 40, true), &[(0, 0x4f)])], (0, 0, 0, 1)),
        ("beyond 65535", vec![f(65_528, 65_535, false)], (0, 0, 0, 1)),
        ("at the end of the longest", vec![f(65_512, 65_515, false)], (0, 1, 0, 0)),
        ("a hole", vec![f(0, 8, true), f(16, 24, false)], (0, 2, 0, 0)),
        (
            "congestion",
            vec![with(bytes(1, 0, 8, true), &[(1, 2)]), with(bytes(1, 8, 9, false), &[(1, 3)])],
            (1, 0, 0, 0),
        ),
        ("congestion without ECN", vec![f(0, 8, true), with(bytes(1, 8, 9, false), &[(1, 3)])], (0, 0, 1, 0)),
    ];
    for (what, packets, want) in table {
        assert_eq!(whole(packets), want, "{what}");
    }
    // Without options, a packet with 65515 bytes of data has the greatest length. With a header of 24 bytes, this data
    // does not fit.
    for (options, good) in [(0u16, 1), (4, 0)] {
        let mut first = bytes(1, 0, 8 + options, true);
        (first[0], first[3]) = (0x45 + (options / 4) as u8, 28 + options as u8);
        first[20..20 + usize::from(options)].fill(1);
        let mut all = vec![marked(&first)];
        all.extend((0..66).map(|i| f(8 + i * 992, 8 + (i + 1) * 992, true)));
        all.push(f(65_480, 65_515, false));
        let mut kit = kit("HIMEM 1000000");
        assert_eq!(wholes(&mut kit, all).len(), good);
        assert_eq!(counts(&mut kit)[1..3], [good as u64, 1 - good as u64]);
    }
}

#[test]
fn congestion_marks_come_together() {
    let tos = |id, start, end, more, tos| {
        let mut b = bytes(id, start, end, more);
        b[1] = tos;
        marked(&b)
    };
    let mut kit = kit("");
    let out = wholes(&mut kit, vec![tos(1, 0, 8, true, 0xb9), tos(1, 8, 9, false, 0xbb)]);
    assert_eq!(out[0][1], 0xbb);
    let out = wholes(&mut kit, vec![tos(2, 0, 8, true, 2), tos(2, 8, 9, false, 0)]);
    assert_eq!(out[0][1], 2);
}

#[test]
fn time() {
    // By the clock, a datagram times out 30 s after its last accepted fragment.
    let mut kit = kit("");
    let second = 1_000_000_000;
    kit.push(0, [fragment(1, 0, 8, true)]);
    kit.at(20 * second);
    kit.push(0, [fragment(1, 16, 24, true), fragment(2, 8, 16, false)]);
    kit.at(25 * second);
    kit.push(0, [fragment(1, 0, 8, true)]);
    assert!(kit.expire().unwrap().is_empty(), "set for the first fragment, which was not the last");
    let out = kit.expire().unwrap();
    assert_eq!(
        out.iter().map(|(port, p)| (*port, p.data().to_vec())).collect::<Vec<_>>(),
        [(1, bytes(1, 0, 8, true)), (1, bytes(1, 16, 24, true)), (1, bytes(2, 8, 16, false)),]
    );
    assert_eq!((kit.next_timer(), counts(&mut kit)), (None, [4, 0, 2, 0]));
    let mut kit = Kit::<IpReassembler>::new("").unwrap();
    kit.push(0, [fragment(1, 0, 8, true)]);
    assert!(kit.expire().unwrap().is_empty());
    assert_eq!(kit.dropped(Reason::ReassemblyTimeout), 1);

    // By timestamps, a datagram also times out when a later packet has a timestamp at least 30 s after its last
    // fragment, even if that packet is whole.
    let at = |mut p: Packet, s: i64| {
        p.set_timestamp(s * second);
        p
    };
    let last = |id| fragment(id, 8, 16, false);
    assert!(kit.push(0, [at(fragment(1, 0, 8, true), 100), at(last(2), 110)]).is_empty());
    assert_eq!(kit.push(0, [at(last(1), 129)]).len(), 1);
    assert!(kit.push(0, [at(fragment(3, 0, 8, true), 139)]).is_empty());
    // The last search for datagrams that timed out was at 139 s, so the next one is at 149 s.
    for (s, dropped) in [(140, 1), (148, 1), (149, 2)] {
        assert_eq!(kit.push(0, [at(marked(&bytes(9, 0, 9, false)), s)]).len(), 1);
        assert_eq!(kit.dropped(Reason::ReassemblyTimeout), dropped, "at {s}");
    }
    assert!(kit.push(0, [at(fragment(2, 0, 8, true), 150)]).is_empty(), "its other half is gone");
    // Packets without timestamps are not treated as very old.
    kit.push(0, [fragment(4, 0, 8, true)]);
    kit.push(0, [at(fragment(5, 0, 8, true), 151)]);
    assert_eq!(kit.push(0, [last(4)]).len(), 1);
}

#[test]
fn suspects_are_shunned_until_their_time_is_over() {
    let mut kit = kit("");
    kit.push(0, [fragment(1, 0, 16, true), fragment(1, 8, 24, true)]);
    for _ in 0..3 {
        assert!(kit.push(0, [fragment(1, 0, 8, true), fragment(1, 8, 16, false)]).is_empty());
    }
    assert_eq!(kit.read("dump").unwrap().lines().last(), Some(" (1.0.0.1, 0, 2.0.0.2, 0) 1"));
    assert!(kit.expire().unwrap().is_empty());
    assert_eq!((counts(&mut kit), kit.element.charged), ([8, 0, 1, 7], 0));
    assert_eq!(kit.push(0, [fragment(1, 0, 8, true), fragment(1, 8, 16, false)]).len(), 1);
}

#[test]
fn room() {
    // Seven fragments of 2048 bytes and their entries fit. The eighth pushes out the three oldest, so five remain.
    let mut kit = kit("HIMEM 16200");
    for id in 0..7 {
        assert!(kit.push(0, [fragment(id, 0, 8, true)]).is_empty());
    }
    let out = kit.push(0, [fragment(7, 0, 8, true)]);
    assert_eq!(
        out.iter().map(|(port, p)| (*port, p.data()[5])).collect::<Vec<_>>(),
        [(1, 0), (1, 1), (1, 2)]
    );
    assert_eq!(wholes(&mut kit, (3..8).map(|id| fragment(id, 8, 9, false)).collect()).len(), 5);
    assert_eq!(kit.element.charged, 0);
    // A flood: memory stays bounded and every fragment is accounted for.
    let mut kit = Kit::<IpReassembler>::new("HIMEM 50000").unwrap();
    let (mut random, mut left) = (Random::new(3, "flood"), 0);
    for n in 1..=5000u64 {
        let (id, start) = (random.below(300) as u16, random.below(40) as u16 * 8);
        let out =
            kit.push(0, [fragment(id, start, start + 8 * (1 + random.below(3) as u16), random.below(4) > 0)]);
        left += out.len() as u64;
        let e = &kit.element;
        assert!(e.charged <= 50_000 && e.datagrams.len() == e.order.len());
        let held: usize = e.datagrams.values().map(|d| d.pieces().len()).sum();
        let charged = held as u64 * BUFFER + e.datagrams.len() as u64 * ENTRY;
        assert_eq!((e.charged, n), (charged, held as u64 + kit.all_dropped() + left));
    }
    assert!(kit.dropped(Reason::ReassemblyFull) > 1000);
    kit.cleanup().unwrap();
    assert!(kit.dropped(Reason::Stopped) > 0 && kit.element.charged == 0 && kit.element.datagrams.is_empty());
}

#[test]
fn as_a_map_of_bytes_says() {
    // Fragments without overlap come in random order, and some are missing. The packet is whole exactly when every byte
    // has come.
    let mut random = Random::new(5, "map");
    for _ in 0..300 {
        let (mut cuts, mut at) = (vec![0u16], 0);
        while at < 200 {
            at += 8 * (1 + random.below(6) as u16);
            cuts.push(at);
        }
        let end = at - random.below(8) as u16;
        if let Some(last) = cuts.last_mut() {
            *last = end;
        }
        let mut pieces: Vec<(u16, u16)> = cuts.windows(2).map(|w| (w[0], w[1])).collect();
        for i in (1..pieces.len()).rev() {
            pieces.swap(i, random.below(i as u64 + 1) as usize);
        }
        if random.below(3) == 0 {
            pieces.pop();
        }
        let have: usize = pieces.iter().map(|p| usize::from(p.1 - p.0)).sum();
        let mut kit = kit("");
        let packets = pieces.iter().map(|&(a, b)| fragment(1, a, b, b != end)).collect();
        let out = wholes(&mut kit, packets);
        let want = if have == usize::from(end) { vec![bytes(1, 0, end, false)] } else { Vec::new() };
        assert_eq!(out, want);
    }
}

#[test]
fn stripped_cut_and_unmarked() {
    for n in 0..60 {
        let whole = bytes(1, 0, 40, true);
        let mut kit = Kit::<IpReassembler>::new("").unwrap();
        kit.push(0, [marked(&whole[..n.min(whole.len())]), packet(&whole)]);
        assert_eq!(kit.dropped(Reason::NoIpHeader), if n < 20 { 2 } else { 1 }, "{n}");
        assert_eq!(kit.dropped(Reason::BadFragment), u64::from((20..60).contains(&n)), "{n}");
    }
    let mut kit = Kit::<IpReassembler>::new("").unwrap();
    for strip in [20, 24, 28] {
        let (mut a, mut b) = (fragment(1, 0, 8, true), fragment(1, 8, 16, false));
        assert!(a.strip(strip) && b.strip(strip));
        let out = kit.push(0, [b, a]);
        assert_eq!(out[0].1.network().unwrap(), &bytes(1, 0, 16, false)[..]);
    }
}

#[test]
fn pulled() {
    let mut kit = kit("");
    for p in [
        fragment(1, 0, 8, true),
        fragment(2, 0, 8, true),
        fragment(1, 8, 9, false),
        marked(&bytes(3, 0, 5, false)),
    ] {
        kit.supply(0, p);
    }
    let out = kit.pull(0, 1);
    assert_eq!((out.len(), out[0].data()), (1, &bytes(1, 0, 9, false)[..]));
    kit.supply(0, fragment(4, 0, 8, true));
    assert_eq!((kit.pull(0, 5).len(), kit.pull(0, 5).len()), (1, 0));
    kit.supply(0, fragment(2, 8, 16, false));
    assert_eq!(kit.pull(0, 5)[0].data(), &bytes(2, 0, 16, false)[..]);
}

/// Whole super-packets pass unchanged. A partial checksum of a fragment is completed. A fragment that claims to be a
/// super-packet is dropped.
#[test]
fn offloads_pass_with_whole_packets() {
    use castanet_packet::Offload;
    let mut kit = kit("");
    let offload = Offload { checksum: Some((20, 6)), segments: Some((5, 100)) };
    // A whole packet also passes while fragments wait.
    for id in [1, 2] {
        let mut p = marked(&bytes(id, 0, 999, false));
        p.set_offload(Some(offload));
        let out = kit.push(0, [p, fragment(9, 8, 16, true)]);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].1.offload(), Some(offload));
    }
    let mut bad = fragment(3, 0, 80, true);
    bad.set_offload(Some(offload));
    assert_eq!((kit.push(0, [bad]).len(), kit.dropped(Reason::BadOffload)), (0, 1));
    let mut first = fragment(4, 0, 80, true);
    first.set_offload(Some(Offload { segments: None, ..offload }));
    let out = kit.push(0, [first, fragment(4, 80, 100, false)]);
    let whole = &out[0].1;
    assert_eq!((whole.len(), whole.has_offload()), (120, false));
    // Before the checksum was completed, its field held the bytes 6 and 7. The sum over the data of the first fragment
    // is now their complement.
    assert_eq!(castanet_wire::checksum::sum(&whole.data()[20..100]), !u16::from_be_bytes([6, 7]));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the model accepts a correct router and rejects every wrong one.
#![allow(clippy::unwrap_used)]
use std::net::Ipv4Addr;

use super::fate::{Due, Fate, IcmpError};
use super::masked::Fields;
use super::router::{ADDRESS, MAC};
use super::*;
use crate::trace::{self, Ipv4, Random, arp, checksum, ether};

const A: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 5);
const B: Ipv4Addr = Ipv4Addr::new(2, 0, 0, 7);
const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

fn seen(data: Vec<u8>) -> Seen {
    Seen { time_ns: 5, data }
}

/// Builds an ARP reply from a host to the router.
fn reply(interface: usize, host: Ipv4Addr, mac: [u8; 6]) -> Seen {
    seen(ether(MAC[interface], mac, 0x0806, &arp(2, mac, host, MAC[interface], ADDRESS[interface])))
}

fn query(interface: usize, host: Ipv4Addr) -> Seen {
    seen(ether([0xff; 6], MAC[interface], 0x0806, &arp(1, MAC[interface], ADDRESS[interface], [0; 6], host)))
}

/// Returns evidence in which both hosts are known. The packets from A arrive on eth0.
fn from_a(packets: &[Vec<u8>]) -> Evidence {
    let mut evidence = Evidence::default();
    evidence.arrived[0].push(reply(0, A, MAC_A));
    evidence.arrived[1].push(reply(1, B, MAC_B));
    evidence.arrived[0].extend(packets.iter().map(|packet| seen(ether(MAC[0], MAC_A, 0x0800, packet))));
    evidence
}

fn udp(ttl: u8, size: usize) -> Ipv4 {
    Ipv4::udp(A, B, 77, (1, 2), &vec![0x55; size]).ttl(ttl)
}

fn fate_of(packet: &[u8]) -> Fate {
    fates(&from_a(&[packet.to_vec()])).all[0].pop().unwrap()
}

/// Both packets and their checksums are written by hand.
#[test]
fn a_packet_written_by_hand() {
    let arrived = [
        0x45, 0, 0, 0x1d, 0, 0x4d, 0, 0, 0x40, 0x11, 0x77, 0x78, 1, 0, 0, 5, 2, 0, 0, 7, //
        0, 1, 0, 2, 0, 9, 0, 0, 0x61, 0, 0, 0,
    ];
    let sent = [
        0x45, 0, 0, 0x1d, 0, 0x4d, 0, 0, 0x3f, 0x11, 0x78, 0x78, 1, 0, 0, 5, 2, 0, 0, 7, //
        0, 1, 0, 2, 0, 9, 0, 0, 0x61,
    ];
    let mut evidence = from_a(&[arrived.to_vec()]);
    evidence.sent[1].push(seen(ether(MAC_B, MAC[1], 0x0800, &sent)));
    let report = check(&evidence);
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.fates["forwarded"], 1);
    assert_eq!(report.fates.values().sum::<u64>(), 3);
}

#[test]
fn violations_are_named() {
    type Change = fn(&mut Evidence);
    let good = |evidence: &mut Evidence, n: usize, size: usize| {
        let packet =
            Ipv4::udp(A, B, 70 + u16::try_from(n).unwrap(), (1, 2), &vec![0x55; size]).ttl(63).bytes();
        evidence.sent[1].push(seen(ether(MAC_B, MAC[1], 0x0800, &packet)));
    };
    let cases: [(&str, Change); 12] = [
        ("was not forwarded", |e| drop(e.sent[1].pop())),
        ("sent twice", |e| e.sent[1].push(e.sent[1][0].clone())),
        ("byte 8 is 0x40 instead of 0x3f", |e| {
            e.sent[1][0].data = e.arrived[0][1].data.clone();
            e.sent[1][0].data[..6].copy_from_slice(&MAC_B);
            e.sent[1][0].data[6..12].copy_from_slice(&MAC[1]);
        }),
        ("not the Ethernet address of 2.0.0.7", |e| e.sent[1][0].data[5] ^= 1),
        ("not the router's Ethernet address", |e| e.sent[1][0].data[11] ^= 1),
        ("wrong header checksum", |e| e.sent[1][0].data[24] ^= 1),
        ("is 0x54 instead of 0x55", |e| *e.sent[1][0].data.last_mut().unwrap() ^= 1),
        ("instead of", |e| e.sent[1][0].data.push(0)),
        ("was overtaken", |e| e.sent[1].swap(0, 1)),
        ("time stamp changed", |e| e.sent[1][0].time_ns += 1),
        ("2.0.0.9 was asked for 1 times, for 0 packets", |e| {
            e.sent[1].push(query(1, Ipv4Addr::new(2, 0, 0, 9)))
        }),
        ("is not due to the host", |e| e.host.push(seen(e.sent[1][0].data[14..].to_vec()))),
    ];
    let mut right = from_a(&[
        Ipv4::udp(A, B, 70, (1, 2), &[0x55; 20]).bytes(),
        Ipv4::udp(A, B, 71, (1, 2), &[0x55; 30]).bytes(),
    ]);
    good(&mut right, 0, 20);
    good(&mut right, 1, 30);
    assert_eq!(check(&right).violations, Vec::<String>::new());
    for (text, change) in cases {
        let mut wrong = right.clone();
        change(&mut wrong);
        let violations = check(&wrong).violations;
        assert!(violations.iter().any(|violation| violation.contains(text)), "{text}: {violations:?}");
    }
}

#[test]
fn next_hops_are_asked_for() {
    // Without an ARP reply no packet is sent, but a request is required.
    let mut evidence = from_a(&[udp(64, 1).bytes()]);
    evidence.arrived[1].clear();
    assert!(check(&evidence).violations[0].contains("2.0.0.7, which was never asked for"));
    evidence.sent[1].push(query(1, B));
    let report = check(&evidence);
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.fates["held for ARP forever"], 1);
    // A packet to a host on the incoming network arrives before that host's ARP reply. The router must send a
    // request before it sends the packet.
    let c = Ipv4Addr::new(1, 0, 0, 9);
    let mut evidence = from_a(&[Ipv4::udp(A, c, 1, (1, 2), &[]).bytes()]);
    evidence.arrived[0].push(reply(0, c, [2, 0, 0, 0, 0, 0xc]));
    let Fates { all, .. } = fates(&evidence);
    let ideal = |due: &Due| seen(frame_of(due, &fates(&evidence).neighbours).pop().unwrap());
    let [redirect, packet] = [0, 1].map(|n| ideal(&all[0][1].due[n]));
    for (frames, fault) in [
        (vec![query(0, c), redirect.clone(), packet.clone()], None),
        (vec![redirect.clone(), packet.clone()], Some("before it was asked for")),
        (vec![redirect, packet, query(0, c)], Some("before it was asked for")),
    ] {
        evidence.sent[0] = frames;
        let violations = check(&evidence).violations;
        match fault {
            None => assert_eq!(violations, Vec::<String>::new()),
            Some(text) => assert!(violations[0].contains(text)),
        }
    }
    // If a packet from the other interface goes to the same host, a request is still required, but the other worker
    // may send it late.
    let packet = Ipv4::udp(B, c, 1, (1, 2), &[]);
    evidence.arrived[1].push(seen(ether(MAC[1], MAC_B, 0x0800, &packet.bytes())));
    let Fates { all, .. } = fates(&evidence);
    let other = all[1].iter().flat_map(|fate| &fate.due).next().unwrap();
    let other = seen(frame_of(other, &fates(&evidence).neighbours).pop().unwrap());
    let late = evidence.sent[0].pop().unwrap();
    evidence.sent[0].push(other);
    assert!(check(&evidence).violations[0].contains("before it was asked for"));
    evidence.sent[0].push(late);
    assert_eq!(check(&evidence).violations, Vec::<String>::new());
}

#[test]
fn each_fate() {
    let rr = |pointer: u8| [7, 11, pointer, 9, 9, 9, 9, 0, 0, 0, 0];
    let ts = |pointer: u8, flags: u8| [68, 12, pointer, flags, 1, 2, 3, 4, 0, 0, 0, 0];
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("forwarded", udp(2, 4).bytes()),
        ("answered: time exceeded", udp(1, 4).bytes()),
        ("answered: time exceeded", udp(0, 4).bytes()),
        ("forwarded", udp(9, 1472).df().bytes()),
        ("answered: fragmentation needed", udp(9, 1473).df().bytes()),
        ("forwarded in fragments", udp(9, 1473).bytes()),
        ("answered: time exceeded", udp(1, 1473).df().bytes()),
        ("forwarded", udp(9, 4).options(&rr(4)).bytes()),
        ("forwarded", udp(9, 4).options(&rr(12)).bytes()),
        ("answered: parameter problem", udp(9, 4).options(&rr(3)).bytes()),
        ("answered: parameter problem", udp(1, 4).options(&rr(10)).bytes()),
        ("forwarded", udp(9, 4).options(&ts(5, 0)).bytes()),
        ("forwarded", udp(9, 4).options(&ts(13, 0xe1)).bytes()),
        ("answered: parameter problem", udp(9, 4).options(&ts(13, 0xf1)).bytes()),
        ("answered: parameter problem", udp(9, 4).options(&ts(4, 0)).bytes()),
        ("dropped: time exceeded, no error about it", udp(1, 4).fragment(3, true).bytes()),
        (
            "dropped: time exceeded, no error about it",
            Ipv4::icmp(A, B, 1, (11, 0), [0; 4], &[0x45; 28]).ttl(1).bytes(),
        ),
        ("answered: time exceeded", Ipv4::icmp(A, B, 1, (8, 0), [0; 4], &[]).ttl(1).bytes()),
        ("given to the host", Ipv4::udp(A, ADDRESS[1], 1, (1, 2), &[]).ttl(0).bytes()),
        ("given to the host", Ipv4::udp(Ipv4Addr::UNSPECIFIED, ADDRESS[0], 1, (1, 2), &[]).bytes()),
        ("dropped: invalid source address", Ipv4::udp(Ipv4Addr::UNSPECIFIED, B, 1, (1, 2), &[]).bytes()),
        ("dropped: invalid source address", Ipv4::udp(Ipv4Addr::LOCALHOST, B, 1, (1, 2), &[]).bytes()),
        ("dropped: invalid destination address", Ipv4::udp(A, [239, 0, 0, 1].into(), 1, (1, 2), &[]).bytes()),
        ("answered: network unreachable", Ipv4::udp(A, [5, 0, 0, 1].into(), 1, (1, 2), &[]).bytes()),
        ("held for ARP forever", Ipv4::udp(A, [3, 0, 0, 1].into(), 1, (1, 2), &[]).bytes()),
        ("forwarded to the incoming interface", Ipv4::udp(A, A, 1, (1, 2), &[]).bytes()),
        ("dropped: shorter than an IP header", udp(9, 4).bytes()[..19].to_vec()),
        ("dropped: wrong IP length", udp(9, 4).bytes()[..31].to_vec()),
    ];
    for (label, packet) in cases {
        assert_eq!(fate_of(&packet).label, label, "{packet:02x?}");
    }
}

#[test]
fn options_are_filled_in() {
    let filled = |options: &[u8]| match fate_of(&udp(9, 0).options(options).bytes()).due.remove(0) {
        Due::Packet { want, .. } => (want.bytes[20..20 + options.len()].to_vec(), want.stamps),
        other => panic!("{other:?}"),
    };
    let (route, stamps) = filled(&[1, 7, 7, 4, 0, 0, 0, 0]);
    assert_eq!((&route[..], &stamps[..]), (&[1, 7, 7, 8, 2, 0, 0, 1][..], &[][..]));
    let (stamp, stamps) = filled(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((&stamp[..], &stamps[..]), (&[68, 12, 13, 1, 2, 0, 0, 1, 0, 0, 0, 0][..], &[28][..]));
    let (stamp, stamps) = filled(&[68, 12, 5, 3, 1, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!((&stamp[..4], &stamps[..]), (&[68, 12, 13, 3][..], &[28][..]));
    let (stamp, stamps) = filled(&[68, 12, 5, 3, 9, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!((&stamp[..4], &stamps[..]), (&[68, 12, 5, 3][..], &[][..]));
    let (stamp, _) = filled(&[68, 8, 9, 0x20, 0, 0, 0, 0]);
    assert_eq!(stamp[3], 0x30);
    assert_eq!(
        options::copied(&[1, 7, 7, 8, 2, 0, 0, 7, 1, 131, 7, 8, 2, 0, 0, 7]),
        [131, 7, 8, 2, 0, 0, 7, 0]
    );
}

/// Builds the bytes of an error as the router must build them.
fn error_packet(error: &IcmpError, own: Ipv4Addr) -> Vec<u8> {
    Ipv4::icmp(own, error.to, 4242, error.kind, error.rest[0], &with_checksum(&error.quote.bytes))
        .ttl(199)
        .bytes()
}

fn with_checksum(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[10..12].fill(0);
    let header = usize::from(packet[0] & 15) * 4;
    let sum = checksum(&[&packet[..header]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Fragments a packet according to RFC 791, section 3.2.
fn fragments_of(packet: &[u8]) -> Vec<Vec<u8>> {
    let whole = Fields::of(packet).unwrap();
    let (mut done, mut pieces) = (0, Vec::new());
    while done < whole.payload().len() {
        let options = if done == 0 { whole.options().to_vec() } else { options::copied(whole.options()) };
        let room = (1500 - 20 - options.len()) / 8 * 8;
        let end = (done + room).min(whole.payload().len());
        let piece = Ipv4 {
            tos: packet[1],
            id: whole.id(),
            df: false,
            mf: end < whole.payload().len() || whole.more_fragments(),
            offset: u16::try_from((whole.fragment_offset() + done) / 8).unwrap(),
            ttl: whole.ttl(),
            protocol: whole.protocol(),
            src: whole.src(),
            dst: whole.dst(),
            options,
            payload: whole.payload()[done..end].to_vec(),
        };
        pieces.push(piece.bytes());
        done = end;
    }
    pieces
}

/// Builds the frames that fulfil an expected result.
fn frame_of(due: &Due, neighbours: &Neighbours) -> Vec<Vec<u8>> {
    match due {
        Due::Host { packet } => vec![packet.clone()],
        Due::ArpReply { frame, .. } => vec![frame.clone()],
        Due::Error { out, hop, error } => {
            vec![ether(neighbours[&(*out, *hop)], MAC[*out], 0x0800, &error_packet(error, ADDRESS[*out]))]
        }
        Due::Packet { out, hop, want } => {
            let pieces = if want.bytes.len() > 1500 {
                fragments_of(&want.bytes)
            } else {
                vec![with_checksum(&want.bytes)]
            };
            pieces.iter().map(|piece| ether(neighbours[&(*out, *hop)], MAC[*out], 0x0800, piece)).collect()
        }
    }
}

/// Returns what a perfect router would send for every `each`-th frame of the stored traces and for all ARP
/// replies in them.
fn perfect(each: usize) -> Evidence {
    let mut evidence = Evidence {
        arrived: trace::ip_router(trace::SEED).interfaces.map(|frames| {
            let frames = frames.into_iter().map(|frame| Seen { time_ns: frame.time_ns, data: frame.data });
            let numbered = frames.enumerate();
            numbered
                .filter(|(n, frame)| n % each == 0 || fate::learned(&frame.data).is_some())
                .map(|(_, frame)| frame)
                .collect()
        }),
        ..Evidence::default()
    };
    let Fates { neighbours, all, .. } = fates(&evidence);
    let known = neighbours.keys().copied();
    let held = all.iter().flatten().flat_map(|fate| fate.held.iter().copied());
    let mut asked: Vec<_> = known.chain(held).collect();
    asked.sort();
    asked.dedup();
    let used = |hop: (usize, Ipv4Addr)| {
        all.iter().flatten().any(|fate| {
            fate.held.contains(&hop)
                || fate.due.iter().any(|due| {
                    matches!(due, Due::Packet { out, hop: h, .. } | Due::Error { out, hop: h, .. } if (*out, *h) == hop)
                })
        })
    };
    for (out, hop) in asked.into_iter().filter(|hop| used(*hop)) {
        evidence.sent[out].push(query(out, hop));
    }
    for (interface, fates) in all.iter().enumerate() {
        for (position, fate) in fates.iter().enumerate() {
            let time_ns = evidence.arrived[interface][position].time_ns;
            for due in &fate.due {
                let frames = frame_of(due, &neighbours).into_iter().map(|data| Seen { time_ns, data });
                match due {
                    Due::Host { .. } => evidence.host.extend(frames),
                    Due::Packet { out, .. } | Due::Error { out, .. } | Due::ArpReply { out, .. } => {
                        evidence.sent[*out].extend(frames);
                    }
                }
            }
        }
    }
    evidence
}

#[test]
fn a_perfect_run_has_no_violations_and_shows_everything() {
    let evidence = perfect(1);
    let report = check(&evidence);
    assert!(report.violations.is_empty(), "{report}");
    let arrived: usize = evidence.arrived.iter().map(Vec::len).sum();
    assert_eq!(report.fates.values().sum::<u64>(), arrived as u64);
    let written = evidence.host.len() + evidence.sent.iter().map(Vec::len).sum::<usize>();
    assert_eq!(report.sent.values().sum::<u64>(), written as u64);
    // The traces contain every possible fate. If they change, INSTA_UPDATE=always updates the stored numbers.
    insta::assert_snapshot!(report);
}

/// Every single error in a run is detected.
#[test]
fn every_damage_is_noticed() {
    let perfect = perfect(17);
    let mut random = Random::new(9);
    for n in 0..160 {
        let mut damaged = perfect.clone();
        let which = random.below(3);
        let frames = if which < 2 { &mut damaged.sent[which] } else { &mut damaged.host };
        let at = random.below(frames.len());
        let what = match n % 4 {
            0 => {
                let removed = frames.remove(at);
                // The number of ARP requests may vary, so a missing request is not always an error.
                if is_query(&removed.data) {
                    continue;
                }
                "removed"
            }
            1 => {
                let twice = frames[at].clone();
                let to = random.below(frames.len());
                frames.insert(to, twice);
                "doubled"
            }
            2 => {
                let length = frames[at].data.len();
                frames[at].data.truncate(random.below(length));
                "cut"
            }
            _ => {
                let byte = random.below(frames[at].data.len());
                if is_query(&frames[at].data) && (32..38).contains(&byte) {
                    continue;
                }
                frames[at].data[byte] ^= 1 << random.below(8);
                "changed"
            }
        };
        if n % 4 == 1 && is_query(&perfect.sent.get(which).map_or(&perfect.host, |sent| sent)[at].data) {
            continue;
        }
        assert!(!check(&damaged).violations.is_empty(), "{what}: frame {at} of output {which}");
    }
}

fn is_query(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 6]) && frame.get(20..22) == Some(&[0, 1])
}

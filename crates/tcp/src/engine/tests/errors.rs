// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors and path MTU discovery.

use super::*;
use crate::engine::invariants::check;
use castanet_wire::ipv4::DONT_FRAGMENT;

/// The largest packets that passed a network are no larger than its links, and each byte arrives.
#[test]
fn segments_fit_the_narrowest_link() {
    for (seed, mtu, narrower) in [(1, 1300, 1300), (2, 1006, 576), (3, 1499, 700), (4, 500, 500), (5, 68, 68)]
    {
        for faults in [[0, 0, 0, 0], [5, 2, 3, 40]] {
            let users = [0, 1]
                .map(|n| User(Arc::new(Mutex::new(Data { write: bytes(150_000, n), read: Vec::new() }))));
            let path_mtu = |n| Settings { path_mtu: true, ..settings(n) };
            let ends = [0, 1].map(|n| engine(n, path_mtu(n), users[n].clone()));
            let mut n = Network::new(ends, seed, faults);
            n.mtu = mtu;
            n.connect();
            n.run(1);
            n.mtu = narrower;
            n.run(3_000);
            for end in 0..2 {
                let (read, written) = (&users[end].0.lock().read, &users[1 - end].0.lock().write);
                assert!(read == written, "mtu {mtu}, end {end}: {} of {}", read.len(), written.len());
                let e = &n.ends[end];
                assert_eq!((e.size(), e.memory(), e.counts.finished.get()), (0, 0, 1));
                assert!(e.counts.size_errors.get() > 0, "{mtu} {:?}", e.counts);
            }
        }
    }
}

/// A connection with a segment of 1460 bytes in flight, the segment, and the flow.
fn in_flight(settings: Settings, user: &User) -> (Engine, Vec<u8>, Flow, i64) {
    let mut e = engine(0, settings, user.clone());
    let now = 1_000_000_000_000;
    e.pass_time(now);
    let flow = e.connect(None, SocketAddrV4::new(address(1), 80), 0, now).unwrap();
    let syn = packets(&mut e).remove(0);
    let mut s = vec![0; 24];
    s[..4].copy_from_slice(&[syn[22], syn[23], syn[20], syn[21]]);
    s[4..8].copy_from_slice(&7_000u32.to_be_bytes());
    s[8..12].copy_from_slice(&header(&syn).seq.get().wrapping_add(1).to_be_bytes());
    (s[12], s[13]) = (6 << 4, tcp::flag::SYN | tcp::flag::ACK);
    s[14..16].copy_from_slice(&60_000u16.to_be_bytes());
    s[20..].copy_from_slice(&[2, 4, 5, 180]);
    e.input(flow, &mut s, now).unwrap();
    let segment = packets(&mut e).into_iter().find(|p| p.len() == 1500).unwrap();
    (e, segment, flow, now)
}

fn writer(n: usize) -> User {
    User(Arc::new(Mutex::new(Data { write: bytes(n, 1), read: Vec::new() })))
}

/// RFC 1191: the segment is sent again at once, smaller, and the congestion window stays as it is. A hot swap keeps the size.
#[test]
fn a_segment_that_is_too_large_is_sent_again() {
    let user = writer(100_000);
    let (mut e, segment, flow, now) = in_flight(Settings { path_mtu: true, ..settings(0) }, &user);
    assert_eq!(Ipv4Header::from_prefix(&segment).unwrap().fragment.get(), DONT_FRAGMENT);
    let cwnd = |e: &Engine| e.tcb(e.find(flow).unwrap()).cwnd.get();
    let before = cwnd(&e);
    assert_eq!(give(&mut e, &icmp_about(&segment, 3, 4, 1000), now), Ok(()));
    let again = packets(&mut e);
    assert_eq!((again[0].len(), header(&again[0]).seq.get()), (1000, header(&segment).seq.get()));
    assert!(again.iter().all(|p| p.len() <= 1000 && Ipv4Header::from_prefix(p).unwrap().dont_fragment()));
    // All that was in flight is sent again.
    let sent: usize = again.iter().map(|p| p.len() - 40).sum();
    assert_eq!((sent, cwnd(&e)), (3 * 1460, before));
    assert_eq!(give(&mut e, &icmp_about(&segment, 3, 4, 1000), now), Err(Reason::StaleError));
    assert_eq!((e.counts.size_errors.get(), e.counts.soft_errors.get()), (1, 0));

    let mut new = engine(0, settings(0), user.clone());
    new.take_over(&mut e, now);
    (1..=4).for_each(|tick| new.pass_time(now + tick * 500_000_000));
    let again = packets(&mut new);
    assert!(!again.is_empty(), "the timeout resends the first segment");
    assert!(again.iter().all(|p| p.len() == 1000 && Ipv4Header::from_prefix(p).unwrap().dont_fragment()));
    // A claim that needs a timeout moves as well: the old size has arrived, then a smaller one is claimed.
    let ack = header(&again[0]).seq.get().wrapping_add(960);
    let mut s = vec![0; 20];
    s[..4].copy_from_slice(&[again[0][22], again[0][23], again[0][20], again[0][21]]);
    s[4..8].copy_from_slice(&7_001u32.to_be_bytes());
    s[8..12].copy_from_slice(&ack.to_be_bytes());
    (s[12], s[13]) = (5 << 4, tcp::flag::ACK);
    s[14..16].copy_from_slice(&60_000u16.to_be_bytes());
    let now = now + 2_000_000_000;
    new.input(flow, &mut s, now).unwrap();
    let next = packets(&mut new).remove(0);
    assert_eq!((next.len(), header(&next).seq.get()), (1000, ack));
    assert_eq!(give(&mut new, &icmp_about(&next, 3, 4, 700), now), Ok(()));
    assert!(packets(&mut new).is_empty(), "it waits for a timeout");
    let mut third = engine(0, settings(0), user);
    third.take_over(&mut new, now);
    (1..20).for_each(|tick| third.pass_time(now + tick * 500_000_000));
    let again = packets(&mut third);
    assert!(
        !again.is_empty() && again.iter().all(|p| p.len() == 700),
        "{:?}",
        again.iter().map(Vec::len).collect::<Vec<_>>()
    );
    check(&third);
}

/// Without path MTU discovery packets may be fragmented, and the same error is a soft one.
#[test]
fn without_path_mtu_discovery_packets_may_be_fragmented() {
    let (mut e, segment, _, now) = in_flight(settings(0), &writer(5_000));
    assert_eq!(Ipv4Header::from_prefix(&segment).unwrap().fragment.get(), 0);
    assert_eq!(give(&mut e, &icmp_about(&segment, 3, 4, 1000), now), Ok(()));
    assert!(packets(&mut e).is_empty());
    assert_eq!((e.counts.size_errors.get(), e.counts.soft_errors.get()), (0, 1));
}

/// Errors of each kind are counted, and those about another segment or connection are dropped.
#[test]
fn errors_are_counted() {
    let (mut e, segment, flow, now) = in_flight(settings(0), &writer(5_000));
    for (kind, code) in [(3, 0), (3, 1), (3, 2), (3, 3), (3, 5), (3, 13), (11, 0), (11, 1), (12, 0)] {
        assert_eq!(give(&mut e, &icmp_about(&segment, kind, code, 0), now), Ok(()), "{kind} {code}");
    }
    assert_eq!(give(&mut e, &icmp_about(&segment, 4, 0, 0), now), Ok(()));
    for (at, reason) in [
        (20, Reason::StaleError),
        (23, Reason::StaleError),
        (24, Reason::StaleError),
        (9, Reason::NotAnswered),
    ] {
        let mut other = segment.clone();
        other[at] ^= 0x40;
        assert_eq!(give(&mut e, &icmp_about(&other, 3, 1, 0), now), Err(reason), "{at}");
    }
    let counts = e.counts;
    assert_eq!((counts.soft_errors.get(), counts.hard_errors.get(), counts.quenches.get()), (9, 0, 1));
    // The user learns why, once the connection times out.
    assert_eq!(e.connections()[0].flow, flow);
    (1..1_000).for_each(|tick| e.pass_time(now + tick * 500_000_000));
    assert_eq!((e.size(), e.counts.unreachable.get(), e.counts.timed_out.get()), (0, 1, 0));

    // RFC 5927, section 5.2: hard errors end an attempt, and that only if they quote its SYN.
    let mut e = engine(0, settings(0), User::default());
    let flow = e.connect(None, SocketAddrV4::new(address(1), 80), 0, now).unwrap();
    let syn = packets(&mut e).remove(0);
    let mut forged = syn.clone();
    forged[27] ^= 1;
    assert_eq!(give(&mut e, &icmp_about(&forged, 3, 3, 0), now), Err(Reason::StaleError));
    assert_eq!((e.size(), e.connections()[0].flow), (1, flow));
    assert_eq!(give(&mut e, &icmp_about(&syn, 3, 3, 0), now), Ok(()));
    assert_eq!((e.size(), e.counts.refused.get(), e.counts.hard_errors.get()), (0, 1, 1));
    // So does one about the answer to a SYN.
    let mut e = engine(0, settings(0), User::default());
    let mut s = syn[20..].to_vec();
    s[..4].copy_from_slice(&[3, 232, 0, 80]);
    let end = |n, port| SocketAddrV4::new(address(n), port);
    e.input(Flow { local: end(0, 80), remote: end(1, 1000) }, &mut s, now).unwrap();
    let answer = packets(&mut e).remove(0);
    assert_eq!(give(&mut e, &icmp_about(&answer, 3, 3, 0), now), Ok(()));
    assert_eq!((e.size(), e.half_open(), e.counts.hard_errors.get()), (0, 0, 1));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Floods, full tables, and little memory.

use super::*;

/// A SYN from a port and an address, with a segment size.
fn syn(port: u16, host: u8) -> Vec<u8> {
    segment(port, host, tcp::flag::SYN, 1000, 0, &[2, 4, 5, 180])
}

/// A segment to port 80 of engine 1. `rest` is options in whole words, or data.
pub(super) fn segment(port: u16, host: u8, flags: u8, seq: u32, ack: u32, rest: &[u8]) -> Vec<u8> {
    let options = if flags & tcp::flag::SYN != 0 { rest.len() } else { 0 };
    let mut s = vec![0; 20 + rest.len()];
    s[..2].copy_from_slice(&port.to_be_bytes());
    s[2..4].copy_from_slice(&80u16.to_be_bytes());
    s[4..8].copy_from_slice(&seq.to_be_bytes());
    s[8..12].copy_from_slice(&ack.to_be_bytes());
    s[12] = (((20 + options) / 4) << 4) as u8;
    s[13] = flags;
    s[14..16].copy_from_slice(&60_000u16.to_be_bytes());
    s[20..].copy_from_slice(rest);
    let src = Ipv4Addr::new(10, 9, 0, host).to_bits();
    let dst = address(1).to_bits();
    tcp::set_checksum(src, dst, &mut s);
    let ip = Ipv4Header::new(6, src, dst, 20 + s.len() as u16, 64);
    [&ip.to_bytes()[..], &s].concat()
}

/// RFC 4987: a flood of SYNs takes no memory, and connections are opened nevertheless.
#[test]
fn a_flood_of_syns_is_survived() {
    let user = User::default();
    user.0.lock().write = b"welcome".to_vec();
    let mut e = engine(1, settings(1), user.clone());
    let now = 1_000_000_000_000;
    e.pass_time(now);
    for n in 0..20_000u32 {
        give(&mut e, &syn(n as u16, (n >> 16) as u8), now).unwrap();
    }
    assert_eq!((e.size(), e.half_open(), e.counts.cookies.get()), (10, 10, 19_990));
    assert_eq!(packets(&mut e).len(), 20_000, "each SYN is answered");

    // An honest host completes its handshake by the cookie, and its data is there.
    give(&mut e, &syn(7, 200), now).unwrap();
    let answer = header(&packets(&mut e)[0]);
    assert_eq!((answer.flags, answer.ack.get()), (tcp::flag::SYN | tcp::flag::ACK, 1001));
    let seq = answer.seq.get().wrapping_add(1);
    // One that guesses does not.
    give(&mut e, &segment(8, 200, tcp::flag::ACK, 1001, seq, b""), now).unwrap();
    assert_eq!(header(&packets(&mut e)[0]).flags, tcp::flag::RST);
    give(&mut e, &segment(7, 200, tcp::flag::ACK, 1001, seq, b"hello"), now + 1_000_000_000).unwrap();
    assert_eq!((e.size(), e.half_open()), (11, 10));
    assert_eq!(user.0.lock().read, b"hello");
    let sent = packets(&mut e);
    assert!(sent.iter().any(|p| p.ends_with(b"welcome")), "{sent:?}");
    assert_eq!(header(&sent[0]).seq.get(), seq);

    // The half-open connections end by themselves, and nothing is left of them.
    for second in 0..2_000 {
        e.pass_time(now + second * 500_000_000);
    }
    assert_eq!((e.size(), e.half_open()), (0, 0), "{:?}", e.connections());
    // An acknowledgement long after the flood is no answer to a cookie.
    give(&mut e, &segment(7, 200, tcp::flag::ACK, 1001, seq, b""), now + 2_000 * 500_000_000).unwrap();
    assert_eq!(e.counts.cookies_accepted.get(), 1);
}

/// A full table refuses new connections, but one in TIME-WAIT gives way.
#[test]
fn a_full_table_makes_room_by_time_wait() {
    let full = |n| Settings { connections: 3, ..settings(n) };
    let ends = [engine(0, settings(0), User::default()), engine(1, full(1), User::default())];
    let mut n = Network::new(ends, 1, [0, 0, 0, 0]);
    for _ in 0..10 {
        n.connect();
        n.run(2);
    }
    // Engine 0 closes first, at the same time as engine 1 does: both wait.
    assert!(n.ends[1].size() <= 3);
    assert_eq!((n.ends[0].counts.opened.get(), n.ends[1].counts.opened.get()), (10, 10));

    let mut e = engine(1, full(1), User::default());
    let now = 1_000_000_000_000;
    let given: Vec<_> = (0..5).map(|p| give(&mut e, &syn(p, 1), now)).collect();
    assert_eq!(given, [Ok(()), Ok(()), Ok(()), Err(Reason::TableFull), Err(Reason::TableFull)]);
}

/// Data out of order takes at most half of the memory, data in order what there is, and no more.
#[test]
fn memory_is_bounded() {
    struct Lazy;
    impl Application for Lazy {
        fn run(&self, _: &mut Session, _: &mut Stream<'_>) {}
    }
    let small = Settings { memory: 65_536, connections: 100_000, backlog: 100_000, ..settings(1) };
    let mut e = engine(1, small, Lazy);
    let now = 1_000_000_000_000;
    let mut dropped = 0;
    for port in 1..200 {
        give(&mut e, &syn(port, 1), now).unwrap();
        let seq = header(&packets(&mut e)[0]).seq.get().wrapping_add(1);
        give(&mut e, &segment(port, 1, tcp::flag::ACK, 1001, seq, b""), now).unwrap();
        for n in [2, 4, 0, 1] {
            let data = segment(port, 1, tcp::flag::ACK, 1001 + n * 1000, seq, &[7; 1000]);
            dropped += u32::from(give(&mut e, &data, now) == Err(Reason::NoMemory));
            assert!(e.memory() <= 65_536);
        }
        packets(&mut e);
    }
    assert!(dropped > 100 && e.memory() > 60_000, "{dropped} {}", e.memory());
    let held: usize = e.connections().iter().map(|c| c.receive).sum();
    assert!(held < e.memory(), "some data is out of order");
    for c in e.connections() {
        e.with_stream(c.flow, now, |s| s.abort()).unwrap();
    }
    assert_eq!((e.size(), e.memory()), (0, 0));
}

/// 100,000 connections are open at once. Each takes little memory while it is idle.
#[test]
fn many_connections_are_open_at_once() {
    let many = Settings { connections: 100_000, backlog: 1000, ..settings(1) };
    struct Echo;
    impl Application for Echo {
        fn run(&self, _: &mut Session, stream: &mut Stream<'_>) {
            stream.echo();
        }
    }
    let mut e = engine(1, many, Echo);
    let now = 1_000_000_000_000;
    for n in 0..100_000u32 {
        let (port, host) = ((n % 50_000) as u16 + 1, (n / 50_000) as u8);
        give(&mut e, &syn(port, host), now).unwrap();
        let seq = header(&packets(&mut e)[0]).seq.get().wrapping_add(1);
        give(&mut e, &segment(port, host, tcp::flag::ACK, 1001, seq, b"ping"), now).unwrap();
        let answer = packets(&mut e);
        assert!(answer.last().is_some_and(|a| a.ends_with(b"ping")));
        give(&mut e, &segment(port, host, tcp::flag::ACK, 1005, seq.wrapping_add(4), b""), now).unwrap();
    }
    assert_eq!((e.size(), e.half_open(), e.memory(), e.counts.opened.get()), (100_000, 0, 0, 100_000));
    // What was delayed is sent, and then nothing is waited for.
    e.pass_time(now + 200_000_000);
    e.pass_time(now + 1_000_000_000);
    assert_eq!(e.next_timeout(), None);
    assert_eq!(give(&mut e, &syn(60_000, 9), now), Err(Reason::TableFull));
}

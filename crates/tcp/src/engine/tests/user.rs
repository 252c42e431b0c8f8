// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of users, and what they are told: addresses and ports, codepoints, urgent data, peers that do not answer.

use super::defence::segment;
use super::*;
use crate::engine::CallError;

/// The reports to a user, each time that it ran: the urgent bytes, and whether the peer does not answer.
type Seen = Arc<Mutex<Vec<(usize, bool)>>>;

/// Two engines whose users only note what they are told.
fn quiet() -> (Network, Seen) {
    let seen = Watcher::default();
    let runs = seen.0.clone();
    let ends = [engine(0, settings(0), seen), engine(1, settings(1), Watcher::default())];
    (Network::new(ends, 1, [0, 0, 0, 0]), runs)
}

/// Notes what it is told.
#[derive(Clone, Default)]
struct Watcher(Seen);

impl Application for Watcher {
    fn run(&self, _: &mut Session, stream: &mut Stream<'_>) {
        self.0.lock().push((stream.urgent(), stream.is_unanswered()));
    }
}

/// The first byte of each IP packet's type of service.
fn codepoints(packets: &[Vec<u8>]) -> Vec<u8> {
    packets.iter().map(|p| p[1] >> 2).collect()
}

/// RFC 9293, sections 3.9.1.1 and 3.9.2.3: the user may choose the address of this end, which otherwise is one of the stack. That of
/// the peer has to be a single host.
#[test]
fn connections_begin_at_an_address_of_the_stack() {
    let [first, second] = [address(0), address(7)];
    let mut e = engine(0, Settings { addresses: vec![first, second], ..settings(0) }, User::default());
    let peer = |ip: [u8; 4]| SocketAddrV4::new(Ipv4Addr::from(ip), 80);
    for (local, from) in [(None, first), (Some(first), first), (Some(second), second)] {
        let flow = e.connect(local, peer([10, 0, 0, 2]), 0, 0).unwrap();
        assert_eq!(*flow.local.ip(), from);
        let sent = packets(&mut e);
        assert_eq!(sent[0][12..16], from.octets());
    }
    assert_eq!(e.connect(Some(address(9)), peer([10, 0, 0, 2]), 0, 0), Err(CallError::NoAddress));
    for to in [[224, 0, 0, 1], [239, 255, 255, 255], [255, 255, 255, 255], [0, 0, 0, 0]] {
        assert_eq!(e.connect(None, peer(to), 0, 0), Err(CallError::NoHost), "{to:?}");
    }
    assert!(packets(&mut e).is_empty());
    assert_eq!(e.size(), 3);
}

/// RFC 9293, section 3.9.1.1: a port is listened on while connections of the same port are half open or open, and neither disturbs
/// the other.
#[test]
fn listening_and_connections_do_not_disturb_each_other() {
    let (mut n, _) = quiet();
    let flow = n.connect();
    n.run(1);
    // A SYN whose answer is lost.
    n.faults[0] = 100;
    n.ends[0].connect(None, SocketAddrV4::new(address(1), 80), 0, n.now).unwrap();
    let syn = packets(&mut n.ends[0]).remove(0);
    give(&mut n.ends[1], &syn, n.now).unwrap();
    packets(&mut n.ends[1]);
    let states =
        |e: &Engine| e.connections().iter().map(|c| c.state).collect::<std::collections::BTreeSet<_>>();
    let both = std::collections::BTreeSet::from(["ESTABLISHED", "SYN-RECEIVED"]);
    assert_eq!(states(&n.ends[1]), both);
    // The listener ends and comes back.
    n.ends[1].unlisten(80).unwrap();
    assert_eq!(states(&n.ends[1]), both);
    n.ends[1].listen(80, Listener { application: 0, added: false }).unwrap();
    assert_eq!(states(&n.ends[1]), both);
    n.faults[0] = 0;
    n.connect();
    n.run(10);
    assert_eq!((n.ends[1].size(), n.ends[1].half_open()), (3, 0));
    let now = n.now;
    n.ends[0].with_stream(flow, now, |s| assert_eq!(s.write(b"still here"), 10)).unwrap();
    n.run(1);
    let received: usize = n.ends[1].connections().iter().map(|c| c.receive).sum();
    assert_eq!(received, 10);
}

/// A user that closes after the peer has done so can still read all data: this end's FIN waits until it was read.
#[test]
fn data_can_be_read_after_both_ends_have_closed() {
    let (mut n, _) = quiet();
    let flow = n.connect();
    n.run(1);
    let now = n.now;
    let write_and_close = |s: &mut Stream<'_>| {
        s.write(b"last words");
        s.close();
    };
    n.ends[0].with_stream(flow, now, write_and_close).unwrap();
    n.run(1);
    let (now, peer) = (n.now, Flow { local: flow.remote, remote: flow.local });
    let close = |s: &mut Stream<'_>| {
        s.close();
        assert_eq!(s.write(b"more"), 0);
    };
    n.ends[1].with_stream(peer, now, close).unwrap();
    for expected in [&b"last "[..], b"words"] {
        n.run(100);
        assert_eq!(n.ends[1].connections()[0].state, "CLOSE-WAIT");
        let now = n.now;
        let read = |s: &mut Stream<'_>| {
            assert!(s.data().0.starts_with(expected));
            assert_eq!(s.consume(5), 5);
        };
        n.ends[1].with_stream(peer, now, read).unwrap();
    }
    n.run(100);
    assert_eq!((n.ends[0].size(), n.ends[1].size()), (0, 0));
    assert_eq!((n.ends[0].counts.finished.get(), n.ends[1].counts.finished.get()), (1, 1));
}

/// RFC 9293, section 3.9.1.7: all packets of a connection, those of the handshake included, have the codepoint of the user, who may
/// change it. The bits of ECN stay 0.
#[test]
fn packets_have_the_codepoint() {
    for super_packets in [false, true] {
        let with = |n, dscp| Settings { dscp, super_packets, no_delay: true, ..settings(n) };
        let mut ends = [(0, 46), (1, 10)].map(|(n, dscp)| engine(n, with(n, dscp), Watcher::default()));
        let now = 1_000_000_000_000;
        let peer = SocketAddrV4::new(address(1), 80);
        let flow = ends[0].connect(None, peer, 0, now).unwrap();
        for (from, dscp) in [(0, 46), (1, 10), (0, 46)] {
            let sent = packets(&mut ends[from]);
            assert_eq!(codepoints(&sent), [dscp]);
            assert_eq!(sent[0][1] & 3, 0);
            give(&mut ends[1 - from], &sent[0], now).unwrap();
        }
        for dscp in [46, 0] {
            let write = |s: &mut Stream<'_>| {
                s.set_dscp(dscp);
                s.write(b"data");
            };
            ends[0].with_stream(flow, now, write).unwrap();
            assert_eq!(codepoints(&packets(&mut ends[0])), [dscp]);
        }
        packets(&mut ends[1]);
        // A segment that belongs to no connection is answered with that of the stack.
        let mut stray = give_back(flow);
        ends[1].unlisten(80).unwrap();
        ends[1].input(stray.0, &mut stray.1, now).unwrap();
        assert_eq!(codepoints(&packets(&mut ends[1])), [10]);
    }
}

/// Segments that follow each other become one super-packet, but not if their codepoints differ.
#[test]
fn another_codepoint_begins_another_packet() {
    const ACK: u8 = tcp::flag::ACK;
    for changes in [false, true] {
        let with = Settings { dscp: 46, super_packets: true, ..settings(1) };
        let mut e = engine(1, with, Watcher::default());
        let now = 1_000_000_000_000;
        give(&mut e, &segment(7, 1, tcp::flag::SYN, 1000, 0, &[2, 4, 5, 180]), now).unwrap();
        let first = header(&packets(&mut e)[0]).seq.get().wrapping_add(1);
        give(&mut e, &segment(7, 1, ACK, 1001, first, b""), now).unwrap();
        let flow = e.connections()[0].flow;
        e.with_stream(flow, now, |s| assert_eq!(s.write(&[0; 20_000]), 20_000)).unwrap();
        if changes {
            e.with_stream(flow, now, |s| s.set_dscp(0)).unwrap();
        }
        // The congestion window has let three segments out.
        give(&mut e, &segment(7, 1, ACK, 1001, first.wrapping_add(3 * 1460), b""), now).unwrap();
        let want: &[u8] = if changes { &[46, 0] } else { &[46] };
        assert_eq!(codepoints(&packets(&mut e)), want);
    }
}

/// A segment to another port of the peer of a connection.
fn give_back(flow: Flow) -> (Flow, Vec<u8>) {
    let mut segment = vec![0; 20];
    (segment[12], segment[13]) = (5 << 4, tcp::flag::ACK);
    let local = SocketAddrV4::new(*flow.remote.ip(), 9);
    (Flow { local, remote: flow.local }, segment)
}

/// RFC 9293, sections 3.8.3 and 3.8.5: the application runs when the peer announces urgent data, and when it does not answer three
/// retransmissions, and both are counted.
#[test]
fn applications_are_told() {
    let (mut n, runs) = quiet();
    let flow = n.connect();
    n.run(1);
    let back = Flow { local: flow.remote, remote: flow.local };
    let now = n.now;
    runs.lock().clear();
    n.ends[1]
        .with_stream(back, now, |s| {
            s.write(b"all of it");
            s.mark_urgent();
        })
        .unwrap();
    n.run(1);
    assert_eq!(runs.lock().last(), Some(&(9, false)));
    assert_eq!(n.ends[0].applications()[0].tally.urgent.get(), 1);

    n.faults[0] = 100;
    runs.lock().clear();
    let now = n.now;
    n.ends[0].with_stream(flow, now, |s| assert_eq!(s.write(b"hello"), 5)).unwrap();
    n.run(30);
    assert_eq!(*runs.lock(), [(9, true)]);
    assert_eq!(n.ends[0].counts.unanswered.get(), 1);
    n.faults[0] = 0;
    n.run(60);
    assert_eq!(runs.lock().last(), Some(&(9, false)));
    assert_eq!((n.ends[0].counts.unanswered.get(), n.ends[0].counts.timed_out.get()), (1, 0));
}

/// RFC 9293, section 3.6.1 (MAY-2): a connection that takes the place of one in TIME-WAIT begins beyond the numbers of that one, however
/// fast those went. While SYNs are answered by cookies, which begin anywhere, the old one stays.
#[test]
fn a_new_connection_begins_beyond_the_old_one() {
    const ACK: u8 = tcp::flag::ACK;
    for backlog in [10, 0] {
        let user = User::default();
        user.0.lock().write = bytes(30_000, 1);
        let mut e = engine(1, settings(1), user);
        let now = 1_000_000_000_000;
        let to = |e: &mut Engine, flags, seq, ack| {
            give(e, &segment(7, 1, flags, seq, ack, b""), now).unwrap();
            packets(e)
        };
        let first = header(&to(&mut e, tcp::flag::SYN, 1000, 0)[0]).seq.get();
        let mut next = first.wrapping_add(1);
        while next != first.wrapping_add(30_002) {
            let sent = to(&mut e, ACK, 1001, next);
            let last = sent.last().unwrap();
            let data = last.len() - 20 - header(last).header_len();
            next = header(last).seq.get().wrapping_add(data as u32 + u32::from(header(last).flags & 1));
        }
        to(&mut e, ACK | tcp::flag::FIN, 1001, next);
        assert_eq!(e.connections()[0].state, "TIME-WAIT");
        e.host.settings.backlog = backlog;
        let answer = header(&to(&mut e, tcp::flag::SYN, 5000, 0)[0]);
        if backlog > 0 {
            assert_eq!((answer.flags, answer.ack.get()), (ACK | tcp::flag::SYN, 5001));
            assert_eq!(answer.seq.get(), next.wrapping_add(1 << 16));
        } else {
            assert_eq!((answer.flags, answer.ack.get()), (ACK, 1002));
        }
    }
}

/// Timers count the ticks that have begun, of which several may be late; they still come as one.
#[test]
fn timers_run_out_after_their_time() {
    const SECOND: i64 = 1_000_000_000;
    let start = 1_000 * SECOND;
    for sent in [0, 1, 499, 500, 501, 700, 1_000, 1_001, 1_300] {
        let mut e = engine(0, settings(0), User::default());
        e.pass_time(start);
        // Another connection waits for timeouts, and so those before the call are late.
        let peer = |port| SocketAddrV4::new(address(1), port);
        e.connect(None, peer(1), 0, start).unwrap();
        let begin = start + sent * 1_000_000;
        e.connect(None, peer(2), 0, begin).unwrap();
        packets(&mut e);
        let mut again = None;
        while again.is_none() {
            let next = e.next_timeout().unwrap().max(begin);
            e.pass_time(next);
            let is_it = |p: &Vec<u8>| header(p).dst_port.get() == 2;
            again = packets(&mut e).iter().any(is_it).then_some(next);
        }
        let waited = again.unwrap() - begin;
        assert!((SECOND..=SECOND * 3 / 2).contains(&waited), "{sent}: {waited}");
    }
}

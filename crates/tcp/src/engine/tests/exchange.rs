// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data is exchanged, whatever the network does.

use super::*;
use crate::protocol::Ptr;

fn user(write: Vec<u8>) -> User {
    User(Arc::new(Mutex::new(Data { write, read: Vec::new() })))
}

/// Exchanges data, and checks that each byte arrives and nothing is left.
fn exchange(seed: u64, faults: [u64; 4], sizes: [usize; 2]) {
    println!("seed {seed}, {faults:?}, {sizes:?}");
    let users = [0, 1].map(|n| user(bytes(sizes[n], 2 * seed + n as u64)));
    let ends = [0, 1].map(|n| engine(n, settings(n), users[n].clone()));
    let mut n = Network::new(ends, seed, faults);
    n.connect();
    n.run(3_000);
    for end in 0..2 {
        let (read, written) = (&users[end].0.lock().read, &users[1 - end].0.lock().write);
        assert!(read == written, "end {end}: {} of {}", read.len(), written.len());
        let e = &n.ends[end];
        assert_eq!((e.size(), e.memory(), e.half_open()), (0, 0, 0), "{:?}", e.connections());
        assert_eq!((e.counts.opened.get(), e.counts.finished.get()), (1, 1), "{:?}", e.counts);
        assert_eq!(e.next_timeout(), None, "nothing is waited for");
        let live = |n: u32| (1..n).filter(|i| e.state.tcb.at(Ptr::new(*i)).live.get()).count();
        assert_eq!(live(100), 0, "the objects of connections end with them");
    }
}

#[test]
fn a_clean_network() {
    for (seed, sizes) in
        [[0, 0], [1, 0], [0, 1], [1460, 1461], [300_000, 7], [200_000, 200_000]].into_iter().enumerate()
    {
        exchange(seed as u64, [0, 0, 0, 0], sizes);
    }
}

#[test]
fn loss_repetition_corruption_and_reordering() {
    for seed in 0..40 {
        let faults = [seed % 20, seed % 7, seed % 5, seed * 13 % 150];
        exchange(100 + seed, faults, [(seed as usize * 4379) % 90_000, (seed as usize * 2911) % 60_000]);
    }
}

/// A connection that is quiet for days waits for nothing, and its timestamps are good afterwards.
#[test]
fn a_quiet_connection_costs_no_time() {
    let users = [user(bytes(10, 1)), user(bytes(10, 2))];
    // Nobody closes.
    let ends = [0, 1].map(|n| {
        users[n].0.lock().write.push(0);
        engine(n, settings(n), Half(users[n].clone()))
    });
    let mut n = Network::new(ends, 1, [0, 0, 0, 0]);
    let flow = n.connect();
    n.run(10);
    assert_eq!((n.ends[0].next_timeout(), n.ends[1].next_timeout()), (None, None));
    assert_eq!(n.ends[0].connections()[0].state, "ESTABLISHED");
    n.run(30 * 86_400);
    let now = n.now;
    n.ends[0].with_stream(flow, now, |s| assert_eq!(s.write(b"after a month"), 13)).unwrap();
    n.run(10);
    assert!(users[1].0.lock().read.ends_with(b"after a month"));
}

/// A user that does not close.
struct Half(User);

impl Application for Half {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        session.written = session.written.min(5);
        if session.written == 0 && stream.is_connected() {
            session.written = stream.write(b"hello") as u64;
        }
        let (first, second) = stream.data();
        let read = [first, second].concat();
        self.0.0.lock().read.extend(&read);
        stream.consume(read.len());
    }
}

/// Connections move to another engine in the middle of a transfer, and back, and lose nothing.
#[test]
fn connections_move_to_another_engine() {
    let users = [0, 1].map(|n| user(bytes(400_000, n)));
    let ends = [0, 1].map(|n| engine(n, settings(n), users[n].clone()));
    let mut n = Network::new(ends, 5, [2, 1, 0, 30]);
    n.connect();
    for _ in 0..6 {
        for end in 0..2 {
            n.run(1);
            let mut new = engine(7, settings(end), users[end].clone());
            new.take_over(&mut n.ends[end], n.now);
            assert_eq!(n.ends[end].size(), 0);
            n.ends[end] = new;
        }
    }
    n.run(3_000);
    for end in 0..2 {
        assert!(users[end].0.lock().read == users[1 - end].0.lock().write);
        assert_eq!((n.ends[end].size(), n.ends[end].memory()), (0, 0));
    }
    // A connection whose application is gone is reset, and so is one whose address is gone.
    for gone in ["application", "address"] {
        let ends = [0, 1].map(|n| engine(n, settings(n), Half(users[n].clone())));
        let mut n = Network::new(ends, 5, [0, 0, 0, 0]);
        n.connect();
        n.run(1);
        let addresses = if gone == "address" { vec![address(8)] } else { vec![address(0)] };
        let mut new = engine(7, Settings { addresses, ..settings(0) }, Half(users[0].clone()));
        if gone == "application" {
            new.applications[0].name = "other".into();
        }
        new.take_over(&mut n.ends[0], n.now);
        n.ends[0] = new;
        n.run(1);
        assert_eq!((n.ends[0].size(), n.ends[1].size()), (0, 0), "{gone}");
        assert_eq!(n.ends[1].counts.reset.get(), 1);
    }
}

/// A connection to a port that nobody listens on is refused, and one to nobody times out.
#[test]
fn refusals_and_timeouts() {
    let ends = [0, 1].map(|n| engine(n, settings(n), user(vec![])));
    let mut n = Network::new(ends, 1, [0, 0, 0, 0]);
    let now = n.now;
    n.ends[0].connect(None, SocketAddrV4::new(address(1), 81), 0, now).unwrap();
    n.run(1);
    assert_eq!((n.ends[0].counts.refused.get(), n.ends[1].counts.strays.get()), (1, 1));
    n.faults[0] = 100;
    n.connect();
    n.run(1_000);
    assert_eq!((n.ends[0].counts.timed_out.get(), n.ends[0].size()), (1, 0));
}

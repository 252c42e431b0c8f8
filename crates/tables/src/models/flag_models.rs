// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of a ring with two flags, on which the threads at both ends sleep. No wake-up may be lost.
#![allow(clippy::unwrap_used)]

use loom::sync::Arc;
use loom::thread;

use super::flag::Flag;
use super::model;
use super::ring::Ring;

/// A queue between two workers: a ring with two flags, used in the same way as in queue elements.
struct Queue {
    ring: Ring<Box<usize>>,
    /// Raised while there may be an item.
    something: Flag,
    /// Raised while there may be room.
    room: Flag,
}

impl Queue {
    fn new(capacity: usize) -> Arc<Queue> {
        Arc::new(Queue { ring: Ring::new(capacity), something: Flag::new(), room: Flag::new() })
    }
    /// Called by the pusher after a push.
    fn pushed(&self) {
        if !self.something.is_up() {
            self.something.raise();
        }
    }
    /// Called by the puller after a pull.
    fn pulled(&self) {
        if !self.room.is_up() {
            self.room.raise();
        }
    }
    /// Called by the puller when it has found the ring empty. Returns whether the puller may sleep.
    fn found_nothing(&self) -> bool {
        self.something.lower();
        if !self.ring.is_empty() {
            self.something.raise();
        }
        !self.something.is_up()
    }
    /// Called by the pusher when it has found the ring full. Returns whether it may sleep.
    fn found_no_room(&self) -> bool {
        self.room.lower();
        if self.ring.len() < self.ring.capacity() {
            self.room.raise();
        }
        !self.room.is_up()
    }
}

#[test]
fn a_puller_never_sleeps_while_a_packet_waits() {
    model(3, || {
        let q = Queue::new(2);
        q.something.raise();
        let other = q.clone();
        let pusher = thread::spawn(move || {
            other.ring.push(Box::new(1)).unwrap();
            other.pushed();
        });
        let got = q.ring.pop().is_some();
        let _ = got || q.found_nothing();
        pusher.join().unwrap();
        assert!(got || q.something.is_up(), "the puller sleeps and the packet waits");
    });
}

#[test]
fn a_source_never_sleeps_while_there_is_room() {
    model(3, || {
        let q = Queue::new(2);
        q.ring.push(Box::new(1)).unwrap();
        q.ring.push(Box::new(2)).unwrap();
        // Start with the flag raised although the ring is full, as if a puller had raised it late.
        q.room.raise();
        let other = q.clone();
        let puller = thread::spawn(move || {
            other.ring.pop().unwrap();
            other.pulled();
        });
        let room = q.ring.room(1) > 0;
        let _ = room || q.found_no_room();
        puller.join().unwrap();
        assert!(room || q.room.is_up(), "the source sleeps and there is room");
    });
}

/// With a single producer, if [`Ring::room`] has returned n, the next n pushes succeed, whatever consumers do in
/// between.
#[test]
fn room_that_was_seen_stays() {
    model(3, || {
        let q = Queue::new(2);
        q.ring.push(Box::new(0)).unwrap();
        q.ring.push(Box::new(1)).unwrap();
        let other = q.clone();
        let puller = thread::spawn(move || {
            let mut got = Vec::new();
            other.ring.pop_many(2, &mut got);
        });
        for n in 0..2 {
            let room = q.ring.room(2);
            let mut items: Vec<_> = (0..room).map(|i| Box::new(n + i)).collect();
            assert_eq!(q.ring.push_many(&mut items), room);
        }
        puller.join().unwrap();
    });
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores of one worker and of several, and what hot swap leaves of them.
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};

/// A store in place of the one of a queue under test, without notifiers.
fn store(packets: Packets) -> Store {
    Store { packets, empty: None, full: None, gauge: Gauge::default() }
}
/// A class that lends its context.
fn kit() -> Kit<super::super::queue::Queue> {
    Kit::new("").unwrap()
}
fn batch(n: u8) -> Batch {
    (0..n).map(|i| packet(&[i])).collect()
}
fn firsts(batch: &Batch) -> Vec<u8> {
    batch.iter().map(|p| p.data()[0]).collect()
}

#[test]
fn replicas_work_on_one_queue() {
    let shared = Arc::new(Shared::new(3));
    let (mut a, mut b) = (store(Packets::Shared(shared.clone())), store(Packets::Shared(shared)));
    let mut kit = kit();
    kit.with(|_, cx| {
        let mut batch = batch(5);
        a.push(&mut batch, cx);
        let read = ["length", "highwater_length", "capacity", "drops"].map(|h| b.read(h));
        assert_eq!(read, ["3", "3", "3", "2"]);
        b.pull(2, &mut batch, cx);
        assert_eq!(firsts(&batch), [0, 1]);
        b.write("capacity", "0", cx).unwrap();
        assert_eq!(a.read("length"), "0");
        a.write("reset_counts", "", cx).unwrap();
        assert_eq!((b.drops(), b.highwater()), (0, 0));
    });
    assert_eq!((kit.dropped(Reason::QueueFull), kit.dropped(Reason::Cleared)), (2, 1));
    assert_eq!(kit.messages(), ["e :: Queue: overflow"]);
}

#[test]
fn hot_swap_keeps_the_oldest() {
    for shared in [false, true] {
        let new = |n| if shared { Packets::Shared(Arc::new(Shared::new(n))) } else { Packets::own(n) };
        let (mut old, mut new) = (store(new(9)), store(new(2)));
        let mut kit = kit();
        kit.with(|_, cx| {
            let mut batch = batch(3);
            old.push(&mut batch, cx);
            new.take_over(&mut old, cx);
            assert_eq!((old.len(), new.len(), new.highwater()), (0, 2, 2));
            new.pull(9, &mut batch, cx);
            assert_eq!(firsts(&batch), [0, 1]);
        });
        assert_eq!(kit.dropped(Reason::Cleared), 1);
        assert_eq!(
            kit.messages(),
            [
                "While hot-swapping state into 'e :: Queue':\n  warning: some packets lost (old length 3, new capacity 2)"
            ]
        );
    }
}

#[test]
fn the_oldest_make_room_on_several_workers_too() {
    for capacity in [0, 1, 3] {
        let mut s = store(Packets::Shared(Arc::new(Shared::new(capacity))));
        let mut kit = Kit::<super::super::queue::Queue>::with_ports("", 1, 2).unwrap();
        kit.with(|_, cx| {
            let mut batch = batch(5);
            s.push_over_oldest(&mut batch, cx);
            assert_eq!(s.gauge.get(), capacity);
            s.pull(9, &mut batch, cx);
            assert_eq!(s.gauge.get(), 0);
            assert_eq!(firsts(&batch), &[0, 1, 2, 3, 4][5 - capacity..]);
            assert_eq!((s.drops(), s.highwater()), (5 - capacity as u64, capacity));
        });
    }
}

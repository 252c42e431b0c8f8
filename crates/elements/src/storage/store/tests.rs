// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests stores of one worker and of several workers, and which packets they keep in a hot swap.
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_element::run_loop::Internals as _;

/// Makes a store without notifiers, with the class Queue.
fn store(packets: Packets) -> Store {
    Store {
        drops: packets.drops(),
        packets,
        args: Args { capacity: Capacity::default() },
        class: super::super::queue::Queue::SPEC,
        empty: None,
        full: None,
        gauge: Gauge::default(),
    }
}
/// Makes a kit whose context the tests use.
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
        assert_eq!((b.len(), b.highwater(), b.capacity(), b.drops()), (3, 3, 3, 2));
        b.pull(2, &mut batch, cx);
        assert_eq!(firsts(&batch), [0, 1]);
        b.set_capacity(Capacity::new(0), cx).unwrap();
        assert_eq!(a.len(), 0);
        a.reset_counts();
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
            new.take_packets(&mut old, cx).unwrap();
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

/// Makes a store of several workers with both notifiers, which are clear.
fn noted(capacity: usize, cx: &mut Cx<'_>) -> (Store, Arc<Shared>, [Note; 2]) {
    let shared = Arc::new(Shared::new(capacity));
    let notes = [Note::new(0), Note::new(1)];
    notes.iter().for_each(|n| cx.clear_note(*n));
    cx.core().notes().measure(notes[1], shared.clone());
    let store = Store {
        packets: Packets::Shared(shared.clone()),
        drops: shared.drops.clone(),
        args: Args { capacity: Capacity::default() },
        class: super::super::queue::Queue::SPEC,
        empty: Some(notes[0]),
        full: Some(notes[1]),
        gauge: Gauge::default(),
    };
    (store, shared, notes)
}

/// Another worker pushes after this worker found nothing, and before this worker has cleared the notifier.
#[test]
fn a_packet_that_comes_meanwhile_is_not_slept_over() {
    kit().with(|_, cx| {
        let (s, shared, [empty, _]) = noted(3, cx);
        cx.set_note(empty);
        s.found_empty(cx);
        assert!(!cx.is_set(empty));
        cx.set_note(empty);
        shared.ring.read().push(packet(b"x")).unwrap();
        s.found_empty(cx);
        assert!(cx.is_set(empty), "a packet waits");
    });
}

/// Another worker pulls after this worker filled the queue, and before this worker has cleared the notifier.
#[test]
fn room_that_comes_meanwhile_is_not_slept_over() {
    kit().with(|_, cx| {
        let (mut s, shared, [_, full]) = noted(2, cx);
        cx.set_note(full);
        s.push(&mut batch(2), cx);
        assert!(!cx.is_set(full));
        cx.set_note(full);
        shared.ring.read().pop().unwrap();
        s.close(cx);
        assert!(cx.is_set(full), "there is room");
    });
}

/// A puller on another worker took a packet, but set the notifier only after the queue was full again. The source
/// finds no room, so it sends nothing and may sleep.
#[test]
fn a_source_is_not_misled_by_a_late_notifier() {
    let mut kit = kit();
    kit.with(|_, cx| {
        let (mut s, shared, [_, full]) = noted(3, cx);
        let signal = Signal::new(vec![1], false);
        s.push(&mut batch(3), cx);
        assert_eq!(cx.room(&signal, 5, false), Err(Turn::Sleep));
        shared.ring.read().pop().unwrap();
        s.push(&mut batch(1), cx);
        cx.set_note(full);
        assert_eq!(cx.room(&signal, 5, false), Err(Turn::Sleep));
        assert!(!cx.is_set(full), "the source is woken when the next packet is pulled");
        // A burst is limited to the room in the queue. A burst that has begun (`true`) waits if there is no room.
        let mut pulled = Batch::new();
        s.pull(2, &mut pulled, cx);
        assert_eq!((cx.room(&signal, 5, false), cx.room(&signal, 1, false)), (Ok(2), Ok(1)));
        s.push(&mut batch(2), cx);
        assert_eq!(cx.room(&signal, 3, true), Err(Turn::Sleep));
    });
    assert_eq!(kit.dropped(Reason::QueueFull), 0);
}

/// A queue that offers no room. Whether it is full may change with each call of `is_full`.
struct Passing(parking_lot::Mutex<Vec<bool>>);

impl Room for Passing {
    fn room(&self, _: usize) -> usize {
        0
    }
    fn is_full(&self) -> bool {
        self.0.lock().pop().unwrap()
    }
}

/// Other workers fill and empty the queue while a source checks it.
#[test]
fn a_source_without_room_leaves_no_other_asleep() {
    for (looks, turn, woken) in [
        (&[false][..], Turn::Again, false),
        // The notifier was clear for a moment. Another source may have gone to sleep at that moment, so it must be
        // woken.
        (&[true, false], Turn::Again, true),
        (&[true, true], Turn::Sleep, false),
    ] {
        kit().with(|_, cx| {
            let note = Note::new(1);
            let looks = looks.iter().rev().copied().collect();
            cx.core().notes().measure(note, Arc::new(Passing(parking_lot::Mutex::new(looks))));
            cx.core().notes().listen(1, vec![(0, 7)]);
            cx.clear_note(note);
            cx.set_note(note);
            cx.core().take_scheduled().for_each(drop);
            assert_eq!(cx.room(&Signal::new(vec![1], false), 5, false), Err(turn));
            assert_eq!(cx.core().is_scheduled(7), woken, "{turn:?}");
        });
    }
}

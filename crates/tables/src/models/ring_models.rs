// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loom models of the ring by itself, without the notifiers and queues that use it.
#![allow(clippy::unwrap_used)]

use loom::sync::Arc;
use loom::thread;

use super::model;
use super::ring::Ring;

#[test]
fn two_producers_never_pass_the_capacity() {
    // The capacity is one item, so only one of two racing pushes may succeed.
    model(3, || {
        let ring = Arc::new(Ring::new(1));
        let other = ring.clone();
        let pusher = thread::spawn(move || other.push(Box::new(1)).is_ok());
        let mine = ring.push(Box::new(2)).is_ok();
        let theirs = pusher.join().unwrap();
        assert!(mine ^ theirs);
        assert_eq!(ring.len(), 1);
        assert_eq!(*ring.pop().unwrap(), if mine { 2 } else { 1 });
        assert!(ring.pop().is_none());
    });
}

#[test]
fn a_logical_capacity_below_the_physical_one_holds() {
    // The capacity is three, in four cells. The ring holds two items, so only one of two racing pushes may succeed.
    model(3, || {
        let ring = Arc::new(Ring::new(3));
        ring.push(0).unwrap();
        ring.push(1).unwrap();
        let other = ring.clone();
        let pusher = thread::spawn(move || usize::from(other.push(2).is_ok()));
        let mine = usize::from(ring.push(3).is_ok());
        assert_eq!(mine + pusher.join().unwrap(), 1);
        assert_eq!(ring.len(), 3);
    });
}

#[test]
fn producer_and_consumer_keep_order() {
    model(3, || {
        let ring = Arc::new(Ring::new(1));
        let other = ring.clone();
        let pusher = thread::spawn(move || {
            let mut items = vec![Box::new(1), Box::new(2)];
            other.push_many(&mut items) + other.push_many(&mut items)
        });
        let mut got = Vec::new();
        ring.pop_many(2, &mut got);
        let pushed = pusher.join().unwrap();
        ring.pop_many(2, &mut got);
        assert!((1..=2).contains(&pushed));
        assert!(got.iter().map(|item| **item).eq(1..=pushed));
    });
}

#[test]
fn batches_arrive_whole() {
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        let other = ring.clone();
        let pusher = thread::spawn(move || other.push_many(&mut vec![Box::new(1), Box::new(2)]));
        let mut got = Vec::new();
        ring.pop_many(2, &mut got);
        assert_eq!(pusher.join().unwrap(), 2);
        ring.pop_many(2, &mut got);
        assert!(got.iter().map(|item| **item).eq(1..=2));
    });
}

#[test]
fn two_consumers_share_without_doubles() {
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        ring.push(Box::new(1)).unwrap();
        ring.push(Box::new(2)).unwrap();
        let other = ring.clone();
        let popper = thread::spawn(move || {
            let mut items = Vec::new();
            other.pop_many(2, &mut items);
            items
        });
        let mut got: Vec<_> = ring.pop().into_iter().collect();
        got.extend(popper.join().unwrap());
        ring.pop_many(2, &mut got);
        got.sort();
        assert!(got.iter().map(|item| **item).eq(1..=2));
    });
}

#[test]
fn reused_cells_are_handed_over() {
    // The second lap through the cells: a producer writes to a cell that a consumer has just emptied.
    model(3, || {
        let ring = Arc::new(Ring::new(2));
        ring.push(Box::new(1)).unwrap();
        ring.push(Box::new(2)).unwrap();
        let other = ring.clone();
        let popper = thread::spawn(move || other.pop().map(|item| *item));
        let pushed = ring.push(Box::new(3)).is_ok();
        // There is one popper and an item from the start, so the pop cannot fail.
        assert_eq!(popper.join().unwrap(), Some(1));
        assert_eq!(ring.pop().map(|item| *item), Some(2));
        assert_eq!(ring.pop().map(|item| *item), pushed.then_some(3));
    });
}

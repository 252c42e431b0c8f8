// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the ring with a deque, and runs it with several threads.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Ring;

fn random(seed: &mut u64) -> usize {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    (seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
}

#[test]
fn behaves_like_a_deque() {
    for capacity in [0, 1, 2, 3, 8, 13] {
        let mut seed = 3 + capacity as u64;
        let mut capacity = capacity;
        let mut ring = Ring::new(capacity);
        let mut model: VecDeque<Arc<usize>> = VecDeque::new();
        for step in 0..3000 {
            let n = random(&mut seed) % 10;
            match random(&mut seed) % 7 {
                0 | 1 => {
                    assert_eq!(ring.push(Arc::new(step)).is_ok(), model.len() < capacity);
                    if model.len() < capacity {
                        model.push_back(Arc::new(step));
                    }
                }
                2 => assert_eq!(ring.pop(), model.pop_front()),
                3 | 4 => {
                    let mut items: Vec<_> = (0..n).map(|i| Arc::new(step * 100 + i)).collect();
                    let taken = n.min(capacity - model.len());
                    model.extend(items.iter().take(taken).cloned());
                    let rest = items[taken..].to_vec();
                    assert_eq!(ring.push_many(&mut items), taken);
                    assert_eq!(items, rest);
                }
                5 => {
                    let mut items = vec![Arc::new(0)];
                    let want: Vec<_> = model.drain(..n.min(model.len())).collect();
                    assert_eq!(ring.pop_many(n, &mut items), want.len());
                    assert_eq!(items[1..], want);
                }
                _ if step % 40 == 0 => {
                    capacity = random(&mut seed) % 20;
                    let rest = Vec::from(model.split_off(capacity.min(model.len())));
                    assert_eq!(ring.try_set_capacity(capacity), Ok(rest));
                }
                _ => {}
            }
            assert_eq!((ring.len(), ring.capacity()), (model.len(), capacity));
            assert_eq!(ring.is_empty(), model.is_empty());
        }
    }
}

#[test]
fn a_capacity_beyond_memory_is_an_error() {
    // More than any address space holds: 2^31 items of a terabyte each.
    assert!(Ring::<[u8; 1 << 40]>::try_new(usize::MAX).is_err());
}

#[test]
fn drops_each_item_once() {
    let item = Arc::new(());
    let mut ring = Ring::new(5);
    let mut items = vec![item.clone(); 7];
    assert_eq!(ring.push_many(&mut items), 5);
    assert_eq!(Arc::strong_count(&item), 8);
    drop(items);
    drop(ring.pop());
    assert_eq!(Arc::strong_count(&item), 5);
    assert_eq!(ring.try_set_capacity(3).map(|rest| rest.len()), Ok(1));
    assert_eq!(Arc::strong_count(&item), 4);
    drop(ring);
    assert_eq!(Arc::strong_count(&item), 1);
}

/// Every item arrives once, each consumer sees the items of one producer in order, and the ring never exceeds
/// its capacity.
#[test]
fn threads_lose_and_reorder_nothing() {
    const PRODUCERS: usize = 2;
    const ITEMS: usize = 10_000;
    let ring = Ring::new(11);
    let received = AtomicUsize::new(0);
    let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let ring = &ring;
            scope.spawn(move || {
                let mut next = 0;
                let mut batch = Vec::new();
                while next < ITEMS || !batch.is_empty() {
                    while batch.len() < 7 && next < ITEMS {
                        batch.push(producer * ITEMS + next);
                        next += 1;
                    }
                    let pushed = if next % 2 == 0 {
                        ring.push_many(&mut batch)
                    } else {
                        usize::from(ring.push(batch[0]).is_ok_and(|()| {
                            batch.remove(0);
                            true
                        }))
                    };
                    assert!(ring.len() <= 11);
                    if pushed == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let consumers: Vec<_> = (0..2)
            .map(|consumer| {
                let (ring, received) = (&ring, &received);
                scope.spawn(move || {
                    let mut items = Vec::new();
                    while received.load(Ordering::Relaxed) < PRODUCERS * ITEMS {
                        let count = if consumer == 0 {
                            ring.pop_many(5, &mut items)
                        } else {
                            ring.pop().map(|item| items.push(item)).into_iter().count()
                        };
                        received.fetch_add(count, Ordering::Relaxed);
                        if count == 0 {
                            std::thread::yield_now();
                        }
                    }
                    items
                })
            })
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    for items in &all {
        for producer in 0..PRODUCERS {
            assert!(items.iter().filter(|&&item| item / ITEMS == producer).is_sorted());
        }
    }
    let mut items = all.concat();
    items.sort_unstable();
    assert!(items.into_iter().eq(0..PRODUCERS * ITEMS));
}

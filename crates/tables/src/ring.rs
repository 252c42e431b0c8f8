// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bounded lock-free queue for multiple producers and consumers.
//!
//! After Vyukov's bounded queue: each cell has a sequence number that shows whether it is free or holds an
//! item. A thread claims a cell by moving the shared position past it. The thread does this only after the
//! cell's sequence number shows the required state. Therefore no thread ever waits for a cell.
#![allow(unsafe_code)]

use std::collections::TryReserveError;
use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use super::atomics::{AtomicUsize, Ordering, Position, Probe, UnsafeCell};

struct Cell<T> {
    /// `p` if the cell is free for the item at position `p`, `p + 1` if it holds that item.
    sequence: AtomicUsize,
    item: UnsafeCell<MaybeUninit<T>>,
}

/// A bounded first-in first-out queue that any number of threads may fill and empty.
///
/// The capacity may be any number, 0 included. Memory is allocated once, for the next power of two. Items
/// pushed by one thread come out in the order in which it pushed them. No operation blocks: while another
/// thread is writing or reading a cell, the cell counts as full to pushes and as empty to pops.
pub struct Ring<T> {
    cells: Box<[Cell<T>]>,
    mask: usize,
    capacity: usize,
    /// The position of the next pop.
    head: CachePadded<Position>,
    /// The position of the next push.
    tail: CachePadded<Position>,
    probe: Probe,
}

// SAFETY: items move between threads through the ring (hence `T: Send`) and are never borrowed inside it. Only
// the thread that claimed a cell writes or reads its item; see the blocks below.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Creates an empty ring for `capacity` items, at most 2^31.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 31);
        let physical = Self::cells_for(capacity);
        Self::over(Vec::with_capacity(physical), physical, capacity)
    }

    /// Creates an empty ring for `capacity` items, at most 2^31.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn try_new(capacity: usize) -> Result<Self, TryReserveError> {
        let capacity = capacity.min(1 << 31);
        let physical = Self::cells_for(capacity);
        let mut cells = Vec::new();
        cells.try_reserve_exact(physical)?;
        Ok(Self::over(cells, physical, capacity))
    }

    /// The number of cells for a capacity, at least two. With a single cell, the sequence number `p + 1` would mean
    /// both "holds the item at `p`" and "free for the item at `p + 1`".
    fn cells_for(capacity: usize) -> usize {
        capacity.next_power_of_two().max(2)
    }

    /// Creates an empty ring of `physical` cells. `cells` is an empty vector with room for them.
    fn over(mut cells: Vec<Cell<T>>, physical: usize, capacity: usize) -> Self {
        cells.extend((0..physical).map(|position| Cell {
            sequence: AtomicUsize::new(position),
            item: UnsafeCell::new(MaybeUninit::uninit()),
        }));
        Self {
            cells: cells.into_boxed_slice(),
            mask: physical - 1,
            capacity,
            head: CachePadded::new(Position::new(0)),
            tail: CachePadded::new(Position::new(0)),
            probe: Probe::new(),
        }
    }

    /// The maximum number of items.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of items. While other threads push and pop, the value may be outdated.
    #[inline]
    pub fn len(&self) -> usize {
        // The head is read first, so that the tail is not behind it. The reads must be sequentially consistent for the
        // protocol of `Flag`. Suppose that thread A pushes or pops, and then sees the flag still raised. Thread B
        // lowers the flag, and then checks the length. Thread B must see the push or pop of thread A.
        let head = self.head.get();
        let tail = self.tail.get();
        tail.wrapping_sub(head).min(self.capacity)
    }

    /// Whether the ring is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn cell(&self, position: usize) -> &Cell<T> {
        // INVARIANT: there are mask + 1 cells.
        &self.cells[position & self.mask]
    }

    /// Counts consecutive ready cells from `position` on, at most `want`. A cell is ready if its sequence number is its
    /// own position plus `ready`.
    #[inline]
    fn ready(&self, position: usize, ready: usize, want: usize) -> usize {
        let mut count = 0;
        while count < want {
            let at = position.wrapping_add(count);
            self.probe.interleave();
            // Acquire: synchronises with the previous user of the cell.
            if self.cell(at).sequence.load(Ordering::Acquire) != at.wrapping_add(ready) {
                break;
            }
            count += 1;
        }
        count
    }

    /// The number of items that fit if the position of the next push is `tail`.
    #[inline]
    fn room_at(&self, tail: usize) -> usize {
        self.probe.interleave();
        // The head only grows, so the value read here may be too small, but not too large. So `inside` may be too large,
        // but never too small, and the ring never exceeds its capacity. If `tail` is outdated and behind the head, `inside` wraps around to a
        // large number. The result does not matter then, because a claim at such a position fails.
        let inside = tail.wrapping_sub(self.head.guess());
        if inside > self.mask + 1 { self.capacity } else { self.capacity.saturating_sub(inside) }
    }

    /// Claims consecutive cells by moving `end` (the head or the tail) past them: at most `want` cells, and at most
    /// `room(position)` cells. Each claimed cell has `sequence == its position + ready`. Returns the first position
    /// and the number of cells, or `None` if no cell can be claimed because the ring is full (push) or empty (pop).
    #[inline]
    fn claim(
        &self,
        end: &Position,
        ready: usize,
        want: usize,
        room: impl Fn(usize) -> usize,
    ) -> Option<(usize, usize)> {
        self.probe.interleave();
        let mut position = end.guess();
        loop {
            let count = self.ready(position, ready, want.min(room(position)));
            if count == 0 {
                // The ring is full or empty, unless another thread has moved the position.
                let now = end.guess();
                if now == position {
                    return None;
                }
                position = now;
                continue;
            }
            let next = position.wrapping_add(count);
            self.probe.interleave();
            match end.advance(position, next) {
                Ok(_) => return Some((position, count)),
                Err(now) => position = now,
            }
        }
    }

    #[inline]
    fn claim_free(&self, want: usize) -> Option<(usize, usize)> {
        self.claim(&self.tail, 0, want, |tail| self.room_at(tail))
    }

    /// How many of `want` pushes would succeed now, provided that no other thread pushes. The number may be less
    /// than `capacity - len` while another thread is still reading a cell.
    pub fn room(&self, want: usize) -> usize {
        let tail = self.tail.guess();
        self.ready(tail, 0, want.min(self.room_at(tail)))
    }

    #[inline]
    fn fill(&self, position: usize, item: T) {
        let cell = self.cell(position);
        // SAFETY: the caller claimed `position` with `sequence == position`, so the cell is empty. No other push can
        // claim `position`, because the tail has moved past it. All other claims of the cell need another value of
        // `sequence`. So no other thread accesses the cell until `sequence` changes.
        cell.item.with_mut(|place| unsafe { (*place).write(item) });
        self.probe.interleave();
        cell.sequence.store(position.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn empty(&self, position: usize) -> T {
        let cell = self.cell(position);
        // SAFETY: the caller claimed `position` with `sequence == position + 1`. The cell holds an item,
        // written before the Release store that set `sequence`. No other thread accesses it until `sequence`
        // changes, and then the cell counts as free, so the item is not read again.
        let item = cell.item.with_mut(|place| unsafe { (*place).assume_init_read() });
        self.probe.interleave();
        cell.sequence.store(position.wrapping_add(self.mask + 1), Ordering::Release);
        item
    }

    /// Appends an item. Returns the item if the ring is full.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), T> {
        match self.claim_free(1) {
            Some((position, _)) => {
                self.fill(position, item);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Removes the oldest item.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (position, _) = self.claim(&self.head, 1, 1, |_| 1)?;
        Some(self.empty(position))
    }

    /// Moves items from the front of `items` into the ring, in order, while there is room. Returns the number
    /// moved; the rest stays in `items`.
    pub fn push_many(&self, items: &mut Vec<T>) -> usize {
        let mut pushed = 0;
        while pushed < items.len() {
            let Some((position, count)) = self.claim_free(items.len() - pushed) else { break };
            // A claimed cell must be filled, so nothing in this loop may panic.
            let from = items.as_ptr();
            for index in 0..count {
                // SAFETY: `pushed + index < items.len()`. Each item is moved out once. The moved items are
                // removed from the vector below before anything can drop them, because `fill` does not panic.
                let item = unsafe { from.add(pushed + index).read() };
                self.fill(position.wrapping_add(index), item);
            }
            pushed += count;
        }
        let rest = items.len() - pushed;
        // SAFETY: the first `pushed` items are moved out. The others move down over them, and the length is set
        // to their number.
        unsafe {
            let base = items.as_mut_ptr();
            base.copy_from(base.add(pushed), rest);
            items.set_len(rest);
        }
        pushed
    }

    /// Removes up to `max` of the oldest items and appends them to `items`. Returns the number of items
    /// removed.
    pub fn pop_many(&self, max: usize, items: &mut Vec<T>) -> usize {
        let mut popped = 0;
        while popped < max {
            let Some((position, count)) = self.claim(&self.head, 1, max - popped, |_| self.mask + 1) else {
                break;
            };
            items.reserve(count);
            items.extend((0..count).map(|index| self.empty(position.wrapping_add(index))));
            popped += count;
        }
        popped
    }

    /// Changes the capacity. Returns the items that no longer fit, which are the newest ones.
    ///
    /// # Errors
    /// There is not enough memory. The ring is unchanged.
    pub fn try_set_capacity(&mut self, capacity: usize) -> Result<Vec<T>, TryReserveError> {
        let ring = Self::try_new(capacity)?;
        let mut items = Vec::new();
        items.try_reserve_exact(self.len())?;
        self.pop_many(usize::MAX, &mut items);
        ring.push_many(&mut items);
        *self = ring;
        Ok(items)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("len", &self.len()).field("capacity", &self.capacity).finish()
    }
}

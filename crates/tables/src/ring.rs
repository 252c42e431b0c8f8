// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bounded queue for many producers and many consumers, without locks.
//!
//! After Vyukov's bounded queue: each cell has a sequence number that says whose turn it is. A cell is claimed by moving
//! the shared position past it, after its number showed that it is free (or full), so nobody ever waits for a cell.
#![allow(unsafe_code)]

use std::collections::TryReserveError;
use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use super::atomics::{AtomicUsize, Ordering, Position, Probe, UnsafeCell};

struct Cell<T> {
    /// `p` when the cell is free for the item at position `p`, `p + 1` when it holds that item.
    turn: AtomicUsize,
    item: UnsafeCell<MaybeUninit<T>>,
}

/// A bounded first-in first-out queue that any number of threads fill and empty.
///
/// The capacity is any number, 0 included; memory is allocated once for the next power of two. Items that one thread
/// pushes come out in the order in which it pushed them. Nobody waits: while another thread is in the middle of its turn with
/// a cell, that cell counts as full to pushes and as empty to pops.
pub struct Ring<T> {
    cells: Box<[Cell<T>]>,
    mask: usize,
    capacity: usize,
    /// Position of the next pop.
    head: CachePadded<Position>,
    /// Position of the next push.
    tail: CachePadded<Position>,
    probe: Probe,
}

// SAFETY: items move between threads through the ring (hence `T: Send`) and are never borrowed inside it. An item is
// written and read only by the thread that claimed its cell, see the blocks below.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// An empty ring for `capacity` items, at most 2^31.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 31);
        let physical = Self::cells_for(capacity);
        Self::over(Vec::with_capacity(physical), physical, capacity)
    }

    /// An empty ring for `capacity` items, at most 2^31.
    ///
    /// # Errors
    /// There is no memory for so many.
    pub fn try_new(capacity: usize) -> Result<Self, TryReserveError> {
        let capacity = capacity.min(1 << 31);
        let physical = Self::cells_for(capacity);
        let mut cells = Vec::new();
        cells.try_reserve_exact(physical)?;
        Ok(Self::over(cells, physical, capacity))
    }

    /// At least two cells: with one, "full at p" and "free for p + 1" would be the same turn.
    fn cells_for(capacity: usize) -> usize {
        capacity.next_power_of_two().max(2)
    }

    /// An empty ring of so many cells, in a vector that has room for them.
    fn over(mut cells: Vec<Cell<T>>, physical: usize, capacity: usize) -> Self {
        cells.extend((0..physical).map(|position| Cell {
            turn: AtomicUsize::new(position),
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

    /// How many items may be inside.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many items are inside; while other threads push and pop, how many were a moment ago.
    #[inline]
    pub fn len(&self) -> usize {
        // The head first: the tail read later is not behind it. Not guesses: who lowers a `Flag` and looks here then must not miss
        // a push or pop of a thread that saw the flag up.
        let head = self.head.get();
        let tail = self.tail.get();
        tail.wrapping_sub(head).min(self.capacity)
    }

    /// Whether nothing is inside.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn cell(&self, position: usize) -> &Cell<T> {
        // INVARIANT: there are mask + 1 cells.
        &self.cells[position & self.mask]
    }

    /// How many cells from `position` on, at most `want`, have `turn == position + ready`.
    #[inline]
    fn ready(&self, position: usize, ready: usize, want: usize) -> usize {
        let mut count = 0;
        while count < want {
            let at = position.wrapping_add(count);
            self.probe.interleave();
            // Acquire: what the thread before did with the cell happened before.
            if self.cell(at).turn.load(Ordering::Acquire) != at.wrapping_add(ready) {
                break;
            }
            count += 1;
        }
        count
    }

    /// How many items fit in behind a tail.
    #[inline]
    fn room_at(&self, tail: usize) -> usize {
        self.probe.interleave();
        // The head may be behind the truth, never ahead of it at the moment when a claim succeeds: the ring never holds more
        // than its capacity. A position behind the head fails to be claimed.
        let inside = tail.wrapping_sub(self.head.guess());
        if inside > self.mask + 1 { self.capacity } else { self.capacity.saturating_sub(inside) }
    }

    /// Claims up to `want` cells that have `turn == position + ready`, at most as many as `room` allows at a position.
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
                // Full or empty, unless somebody moved the position meanwhile.
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

    /// How many of `want` pushes would succeed now: as many do, when no other thread pushes meanwhile. Fewer than
    /// `capacity - len` while another thread is in the middle of its turn with a cell.
    pub fn room(&self, want: usize) -> usize {
        let tail = self.tail.guess();
        self.ready(tail, 0, want.min(self.room_at(tail)))
    }

    #[inline]
    fn fill(&self, position: usize, item: T) {
        let cell = self.cell(position);
        // SAFETY: the caller claimed `position` with `turn == position`: the cell is empty, and nobody else touches it
        // until `turn` changes, for every other claim needs another value of `turn` or of the tail.
        cell.item.with_mut(|place| unsafe { (*place).write(item) });
        self.probe.interleave();
        cell.turn.store(position.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn empty(&self, position: usize) -> T {
        let cell = self.cell(position);
        // SAFETY: the caller claimed `position` with `turn == position + 1`: the cell holds an item, written before the
        // Release store that set `turn`, and nobody else touches it until `turn` changes. It is not read again, for then it
        // counts as free.
        let item = cell.item.with_mut(|place| unsafe { (*place).assume_init_read() });
        self.probe.interleave();
        cell.turn.store(position.wrapping_add(self.mask + 1), Ordering::Release);
        item
    }

    /// Appends an item, or gives it back when the ring is full.
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

    /// Takes the oldest item.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (position, _) = self.claim(&self.head, 1, 1, |_| 1)?;
        Some(self.empty(position))
    }

    /// Moves items from the front of `items` into the ring, in order, while there is room. Gives the number; the rest stays
    /// in `items`.
    pub fn push_many(&self, items: &mut Vec<T>) -> usize {
        let mut pushed = 0;
        while pushed < items.len() {
            let Some((position, count)) = self.claim_free(items.len() - pushed) else { break };
            // A claimed cell must be filled: nothing between here and there can panic.
            let from = items.as_ptr();
            for index in 0..count {
                // SAFETY: `pushed + index < items.len()`; the item is moved out once, and the moved ones are forgotten below
                // before anything can drop them: `fill` does not panic.
                let item = unsafe { from.add(pushed + index).read() };
                self.fill(position.wrapping_add(index), item);
            }
            pushed += count;
        }
        let rest = items.len() - pushed;
        // SAFETY: the first `pushed` items are moved out; the others slide down over them, and the length becomes theirs.
        unsafe {
            let base = items.as_mut_ptr();
            base.copy_from(base.add(pushed), rest);
            items.set_len(rest);
        }
        pushed
    }

    /// Takes up to `max` of the oldest items and appends them to `items`. Gives the number.
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

    /// Changes the capacity and gives the newest items that do not fit any more.
    ///
    /// # Errors
    /// There is no memory for so many; nothing has changed then.
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

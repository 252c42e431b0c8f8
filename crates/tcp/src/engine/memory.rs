// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that the data of all connections takes.

use std::cell::{Cell, RefCell};

/// The most buffers that wait to be used again, and the most bytes of one.
const SPARE: usize = 8;
const LARGEST_SPARE: usize = 1 << 20;

/// The bytes in use, and the most that there may be.
#[derive(Debug)]
pub(super) struct Memory {
    used: Cell<usize>,
    limit: usize,
    /// Buffers that queues have given back. A queue that is emptied often would allocate one each time.
    spare: RefCell<Vec<Box<[u8]>>>,
}

impl Memory {
    pub(super) fn new(limit: usize) -> Memory {
        Memory { used: Cell::new(0), limit, spare: RefCell::default() }
    }
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    #[inline]
    pub(super) fn take(&self, n: usize) {
        self.used.set(self.used.get().saturating_add(n));
    }
    #[inline]
    pub(super) fn give_back(&self, n: usize) {
        self.used.set(self.used.get().saturating_sub(n));
    }
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }
    /// The bytes that are left.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used.get())
    }
    /// The bytes that are left for out-of-order data. It is accepted only while all data takes less than half of the limit,
    /// so that it cannot take the memory that in-order data needs.
    #[inline]
    pub(super) fn left_for_held(&self) -> usize {
        (self.limit / 2).saturating_sub(self.used.get())
    }

    /// A buffer with at least this capacity. It may be much larger, but there are only a few such buffers.
    pub(super) fn buffer(&self, capacity: usize) -> Box<[u8]> {
        let mut spare = self.spare.borrow_mut();
        let found = spare.iter().position(|b| b.len() >= capacity);
        found.map_or_else(|| vec![0; capacity].into(), |found| spare.swap_remove(found))
    }
    /// Keeps a buffer that is not needed any more.
    pub(super) fn keep(&self, buffer: Box<[u8]>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE && !buffer.is_empty() && buffer.len() <= LARGEST_SPARE {
            spare.push(buffer);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that the data of all connections takes.

use std::cell::Cell;

/// The bytes in use, and the most that there may be.
#[derive(Debug)]
pub(super) struct Memory {
    used: Cell<usize>,
    limit: usize,
}

impl Memory {
    pub(super) fn new(limit: usize) -> Memory {
        Memory { used: Cell::new(0), limit }
    }
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    pub(super) fn take(&self, n: usize) {
        self.used.set(self.used.get().saturating_add(n));
    }
    pub(super) fn give_back(&self, n: usize) {
        self.used.set(self.used.get().saturating_sub(n));
    }
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }
    /// The bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used.get())
    }
    /// The bytes that are left for out-of-order data. It is accepted only while all data takes less than half of the limit,
    /// so that it cannot take the memory that in-order data needs.
    pub(super) fn left_for_held(&self) -> usize {
        (self.limit / 2).saturating_sub(self.used.get())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flag that records whether a shared structure may contain something, so that waiting threads can sleep.

use super::atomics::SyncBool;

/// A flag that is raised while a shared structure, such as a [`Ring`](crate::Ring), may contain something.
///
/// The producer inserts an item, then raises the flag. The consumer finds the structure empty, lowers the flag, checks
/// again, and raises the flag if there is an item after all. The insertion, the second check and all accesses to the
/// flag are sequentially consistent. Therefore at least one of the two threads sees what the other has done, and no
/// wake-up is lost.
#[derive(Debug, Default)]
pub struct Flag {
    up: SyncBool,
}

impl Flag {
    /// Creates a lowered flag.
    pub fn new() -> Flag {
        Flag { up: SyncBool::new(false) }
    }
    /// Whether the flag is raised.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up.get()
    }
    /// Raises the flag. Returns whether it was lowered before. If [`Flag::is_up`] returns true, the caller may skip
    /// this call: no wake-up is lost, and the check is cheaper than the call.
    #[inline]
    pub fn raise(&self) -> bool {
        !self.up.replace(true)
    }
    /// Lowers the flag. The caller must check the structure again afterwards, and raise the flag if it is not
    /// empty.
    #[inline]
    pub fn lower(&self) {
        self.up.set(false);
    }
}

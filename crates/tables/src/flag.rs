// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flag that says whether there may be something, so that those who wait for it can sleep.

use super::atomics::Truth;

/// Up while there may be something in a shared structure such as a [`Ring`](crate::Ring).
///
/// One side puts something in, then raises the flag. The other side finds nothing, lowers the flag, looks again, and raises
/// the flag if there is something after all. Putting in and looking again are sequentially consistent accesses of the structure,
/// as are all accesses to the flag: so one of the two sees what the other did.
#[derive(Debug, Default)]
pub struct Flag {
    up: Truth,
}

impl Flag {
    /// A flag that is down.
    pub fn new() -> Flag {
        Flag { up: Truth::new(false) }
    }
    /// Whether the flag is up.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up.get()
    }
    /// Raises the flag; whether it was down. To look with [`Flag::is_up`] first is cheaper and safe.
    #[inline]
    pub fn raise(&self) -> bool {
        !self.up.replace(true)
    }
    /// Lowers the flag. The caller looks again afterwards, and raises it if there is something.
    #[inline]
    pub fn lower(&self) {
        self.up.set(false);
    }
}

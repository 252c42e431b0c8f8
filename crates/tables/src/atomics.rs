// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitives that `ring` and `flag` are built from. The module `models` compiles `ring` and `flag` a second
//! time, with loom's counterparts of these primitives under the same names.

use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory orderings of the accesses to [`Position`] and [`SyncBool`]. The loom models (module `models`) use the
/// same orderings.
pub(crate) mod order {
    use std::sync::atomic::Ordering;

    pub const POSITION_GET: Ordering = Ordering::SeqCst;
    pub const POSITION_GUESS: Ordering = Ordering::Relaxed;
    pub const POSITION_ADVANCED: Ordering = Ordering::SeqCst;
    pub const POSITION_NOT_ADVANCED: Ordering = Ordering::Relaxed;
    pub const BOOL_GET: Ordering = Ordering::SeqCst;
    pub const BOOL_SET: Ordering = Ordering::SeqCst;
    pub const BOOL_REPLACE: Ordering = Ordering::SeqCst;
}

/// A cell whose contents are accessed through a pointer.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A point at which the loom model considers a thread switch. Outside the models it does nothing.
pub(crate) struct Probe;

impl Probe {
    pub const fn new() -> Probe {
        Probe
    }
    #[inline(always)]
    pub fn interleave(&self) {}
}

/// A position in a ring. Updates, and reads by `get`, are sequentially consistent.
pub(crate) struct Position(AtomicUsize);

impl Position {
    pub fn new(value: usize) -> Position {
        Position(AtomicUsize::new(value))
    }
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(order::POSITION_GET)
    }
    /// A relaxed read; the value may be outdated.
    #[inline(always)]
    pub fn guess(&self) -> usize {
        self.0.load(order::POSITION_GUESS)
    }
    /// Moves the position from `from` to `to`. On failure, returns the current value. May fail spuriously.
    #[inline(always)]
    pub fn advance(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.0.compare_exchange_weak(from, to, order::POSITION_ADVANCED, order::POSITION_NOT_ADVANCED)
    }
}

/// A boolean with sequentially consistent access.
#[derive(Debug, Default)]
pub(crate) struct SyncBool(AtomicBool);

impl SyncBool {
    pub fn new(value: bool) -> SyncBool {
        SyncBool(AtomicBool::new(value))
    }
    #[inline(always)]
    pub fn get(&self) -> bool {
        self.0.load(order::BOOL_GET)
    }
    #[inline(always)]
    pub fn set(&self, value: bool) {
        self.0.store(value, order::BOOL_SET);
    }
    #[inline(always)]
    pub fn replace(&self, value: bool) -> bool {
        self.0.swap(value, order::BOOL_REPLACE)
    }
}

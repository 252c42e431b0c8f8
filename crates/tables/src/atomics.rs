// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shared structures are built of. `models` builds the same sources of loom's counterparts, by the same names.

use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

/// A cell whose contents are reached through a pointer.
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

/// Where a model considers a change of threads.
pub(crate) struct Probe;

impl Probe {
    pub const fn new() -> Probe {
        Probe
    }
    #[inline(always)]
    pub fn interleave(&self) {}
}

/// A position that is moved on, and looked at, in one order that all threads agree on with other such accesses.
pub(crate) struct Position(AtomicUsize);

impl Position {
    pub fn new(value: usize) -> Position {
        Position(AtomicUsize::new(value))
    }
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    /// What the position was at some time, outside that order.
    #[inline(always)]
    pub fn guess(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    /// Moves it on; otherwise where it was. It may fail for no reason.
    #[inline(always)]
    pub fn advance(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.0.compare_exchange_weak(from, to, Ordering::SeqCst, Ordering::Relaxed)
    }
}

/// A truth value that is changed and looked at in the same order.
#[derive(Debug, Default)]
pub(crate) struct Truth(AtomicBool);

impl Truth {
    pub fn new(value: bool) -> Truth {
        Truth(AtomicBool::new(value))
    }
    #[inline(always)]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
    #[inline(always)]
    pub fn set(&self, value: bool) {
        self.0.store(value, Ordering::SeqCst);
    }
    #[inline(always)]
    pub fn replace(&self, value: bool) -> bool {
        self.0.swap(value, Ordering::SeqCst)
    }
}

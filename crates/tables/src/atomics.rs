// SPDX-License-Identifier: MIT OR Apache-2.0
//! The primitives of shared structures. `models` compiles the same sources with loom's counterparts under the
//! same names.

use std::sync::atomic::AtomicBool;
pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

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

/// A point at which the loom model considers a thread switch.
pub(crate) struct Probe;

impl Probe {
    pub const fn new() -> Probe {
        Probe
    }
    #[inline(always)]
    pub fn interleave(&self) {}
}

/// A position in a ring. Reads with `get` and updates are sequentially consistent.
pub(crate) struct Position(AtomicUsize);

impl Position {
    pub fn new(value: usize) -> Position {
        Position(AtomicUsize::new(value))
    }
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    /// A relaxed read; the value may be outdated.
    #[inline(always)]
    pub fn guess(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    /// Moves the position from `from` to `to`. On failure, returns the current value. May fail spuriously.
    #[inline(always)]
    pub fn advance(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.0.compare_exchange_weak(from, to, Ordering::SeqCst, Ordering::Relaxed)
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! loom's counterparts of `crate::atomics`.

use crate::atomics::order;
pub(crate) use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicBool;
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};

/// Makes loom consider a thread switch. Without a probe, loom misses some races in which two threads load the same
/// location and one of them stores to it later. Pushes and pops of the ring race in this way, because they load a
/// position and later store to it. The probe's access is relaxed, so that it adds no ordering.
pub(crate) struct Probe(AtomicUsize);

impl Probe {
    pub fn new() -> Probe {
        Probe(AtomicUsize::new(0))
    }
    pub fn interleave(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

loom::lazy_static! {
    /// Models the total order of sequentially consistent accesses. loom itself treats these accesses as acquire and
    /// release accesses. A read first acquires this variable, and a write releases it afterwards. Example: each of two
    /// threads writes its own variable and then reads the variable of the other thread. The thread that accesses
    /// `ORDER` second sees the write of the other thread. Rust's memory model guarantees this and more.
    static ref ORDER: AtomicUsize = AtomicUsize::new(0);
}

/// Performs a read with this ordering. A sequentially consistent read takes part in the total order of `ORDER`.
fn look<R>(order: Ordering, access: impl FnOnce(Ordering) -> R) -> R {
    if order == Ordering::SeqCst {
        ORDER.fetch_add(1, Ordering::Acquire);
    }
    access(order)
}

/// Like [`look`], for a write.
fn change<R>(order: Ordering, access: impl FnOnce(Ordering) -> R) -> R {
    let result = access(order);
    if order == Ordering::SeqCst {
        ORDER.fetch_add(1, Ordering::Release);
    }
    result
}

/// Like [`look`], for a combined read and write.
fn exchange<R>(order: Ordering, access: impl FnOnce(Ordering) -> R) -> R {
    look(order, |order| change(order, access))
}

pub(crate) struct Position(AtomicUsize);

impl Position {
    pub fn new(value: usize) -> Position {
        Position(AtomicUsize::new(value))
    }
    pub fn get(&self) -> usize {
        look(order::POSITION_GET, |order| self.0.load(order))
    }
    pub fn guess(&self) -> usize {
        self.0.load(order::POSITION_GUESS)
    }
    pub fn advance(&self, from: usize, to: usize) -> Result<usize, usize> {
        exchange(order::POSITION_ADVANCED, |order| {
            self.0.compare_exchange_weak(from, to, order, order::POSITION_NOT_ADVANCED)
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct SyncBool(AtomicBool);

impl SyncBool {
    pub fn new(value: bool) -> SyncBool {
        SyncBool(AtomicBool::new(value))
    }
    pub fn get(&self) -> bool {
        look(order::BOOL_GET, |order| self.0.load(order))
    }
    pub fn set(&self, value: bool) {
        change(order::BOOL_SET, |order| self.0.store(value, order));
    }
    pub fn replace(&self, value: bool) -> bool {
        exchange(order::BOOL_REPLACE, |order| self.0.swap(value, order))
    }
}

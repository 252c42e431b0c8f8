// SPDX-License-Identifier: MIT OR Apache-2.0
//! loom's counterparts of `crate::atomics`.

pub(crate) use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicBool;
pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};

/// Makes loom consider a change of threads. Left alone it forgets that a load races with a later store once the storing
/// thread has loaded the same place too, as each push does. A relaxed access orders nothing.
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
    /// Stands for the order that all threads agree on. loom takes sequentially consistent accesses for acquiring and releasing
    /// ones. So a look at something acquires this too before, and a change releases it after: of two threads that each change one
    /// thing and then look at the other's, the one that comes second here sees the change. The language promises that and more.
    static ref ORDER: AtomicUsize = AtomicUsize::new(0);
}

fn look<R>(access: impl FnOnce() -> R) -> R {
    ORDER.fetch_add(1, Ordering::Acquire);
    access()
}

fn change<R>(access: impl FnOnce() -> R) -> R {
    let result = access();
    ORDER.fetch_add(1, Ordering::Release);
    result
}

pub(crate) struct Position(AtomicUsize);

impl Position {
    pub fn new(value: usize) -> Position {
        Position(AtomicUsize::new(value))
    }
    pub fn get(&self) -> usize {
        look(|| self.0.load(Ordering::SeqCst))
    }
    pub fn guess(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
    pub fn advance(&self, from: usize, to: usize) -> Result<usize, usize> {
        look(|| change(|| self.0.compare_exchange_weak(from, to, Ordering::SeqCst, Ordering::Relaxed)))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Truth(AtomicBool);

impl Truth {
    pub fn new(value: bool) -> Truth {
        Truth(AtomicBool::new(value))
    }
    pub fn get(&self) -> bool {
        look(|| self.0.load(Ordering::SeqCst))
    }
    pub fn set(&self, value: bool) {
        change(|| self.0.store(value, Ordering::SeqCst));
    }
    pub fn replace(&self, value: bool) -> bool {
        look(|| change(|| self.0.swap(value, Ordering::SeqCst)))
    }
}

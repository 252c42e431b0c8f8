// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pools: one a thread, made when first used, growing slab by slab up to a limit.

use crate::chunk::{CLASSES, ChunkPtr, HEAD, Returned, SLAB, SlabHeader};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes a pool may grow to before [`crate::Packet::new`] refuses.
pub const DEFAULT_LIMIT: usize = 1 << 30;

/// What only the thread of the pool touches.
struct Local {
    free: [Vec<ChunkPtr>; CLASSES.len()],
    slabs: Vec<NonNull<SlabHeader>>,
    chunks: usize,
    /// Chunks taken from `returns` so far.
    drained: usize,
    limit: usize,
}

/// A pool. It lives until its thread has ended and every chunk has come home.
pub(crate) struct Inner {
    local: UnsafeCell<Local>,
    /// Chunks freed by other threads.
    returns: Returned,
    /// Chunks ever returned by other threads; the ending thread subtracts those that are still to come back, and who
    /// brings it to zero from below frees the pool.
    balance: AtomicI64,
    /// Tells tests when the pool has ended.
    #[cfg(test)]
    alive: std::sync::Arc<()>,
}

thread_local! {
    /// The pool of this thread, null before its first packet and after its end. Without a destructor, so that packets
    /// dropped by other destructors of the thread may still look at it.
    static CURRENT: Cell<*mut Inner> = const { Cell::new(std::ptr::null_mut()) };
    /// Gives the pool up when the thread ends.
    static GUARD: Guard = const { Guard };
    /// Packets that this thread dropped, less the chunks that its own pool got back for them.
    static ELSEWHERE: Cell<isize> = const { Cell::new(0) };
}

/// The pools that a copy of this crate uses which is part of a shared library: those of the program that loaded it.
static LENDER: OnceLock<Lender> = OnceLock::new();

/// Lends the pools of this copy of the crate to another one in the same process.
#[derive(Clone, Copy)]
pub struct Lender {
    /// Which copy of the crate this is: the address of its `LENDER`. Addresses of functions tell nothing, the compiler may merge
    /// functions or make several of one.
    copy: usize,
    /// The pool of the thread that asks, made if there is none.
    current: fn() -> NonNull<Inner>,
    /// The same, but null if there is none.
    seen: fn() -> *mut Inner,
}

/// The pools of this copy of the crate, for [`borrow`] in another one.
pub fn lender() -> Lender {
    Lender { copy: (&raw const LENDER).addr(), current, seen: || CURRENT.get() }
}

/// Makes this copy of the crate, which must have the same source and compiler, use the pools of another one. So a thread has
/// one pool whichever copy makes and drops its packets, and this copy leaves nothing behind on a thread when it is unloaded.
/// Only the first call counts, and one with the pools of this very copy does not.
pub fn borrow(from: Lender) {
    // A copy that asks itself would ask for ever.
    if from.copy == (&raw const LENDER).addr() {
        return;
    }
    LENDER.get_or_init(|| from);
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(inner) = NonNull::new(CURRENT.replace(std::ptr::null_mut())) else { return };
        // SAFETY: CURRENT held the pool that this thread made; only this thread touches `local`, and after the
        // replacement above no call on this thread can reach it any more.
        let missing = unsafe {
            let local = &*inner.as_ref().local.get();
            let free: usize = local.free.iter().map(Vec::len).sum();
            (local.drained + local.chunks - free) as i64
        };
        // SAFETY: the pool is alive, since this thread has not given it up before this line.
        let before = unsafe { inner.as_ref() }.balance.fetch_sub(missing, Ordering::AcqRel);
        if before == missing {
            // SAFETY: every chunk has come home and the thread is done with the pool: nobody else knows it.
            unsafe { destroy(inner) }
        }
    }
}

/// Frees a pool and its slabs.
///
/// # Safety
/// No chunk of the pool is in use and no thread will touch the pool again.
unsafe fn destroy(inner: NonNull<Inner>) {
    // SAFETY: made by Box::leak in `current`, and the caller promises that this is its last use.
    let pool = unsafe { Box::from_raw(inner.as_ptr()) };
    for slab in &pool.local.into_inner().slabs {
        // SAFETY: each slab was allocated by `grow` with this layout and is freed once.
        unsafe { dealloc(slab.as_ptr().cast(), slab_layout()) }
    }
}

fn slab_layout() -> Layout {
    // SAFETY: the alignment is a power of two and the size does not overflow when rounded up to it.
    unsafe { Layout::from_size_align_unchecked(SLAB, SLAB) }
}

/// The pool of this thread, made now if there is none.
#[cold]
#[inline(never)]
fn make() -> NonNull<Inner> {
    // What is lent is not kept: only the lender knows when its pool ends.
    if let Some(lender) = LENDER.get() {
        return (lender.current)();
    }
    let inner = NonNull::from(Box::leak(Box::new(Inner {
        local: UnsafeCell::new(Local {
            free: Default::default(),
            slabs: Vec::new(),
            chunks: 0,
            drained: 0,
            limit: DEFAULT_LIMIT,
        }),
        returns: Returned::new(),
        balance: AtomicI64::new(0),
        #[cfg(test)]
        alive: Default::default(),
    })));
    // When the thread is ending its guard is gone: such a late pool is leaked rather than freed under a packet.
    let _ = GUARD.try_with(|_| ());
    CURRENT.set(inner.as_ptr());
    inner
}

#[inline(always)]
fn current() -> NonNull<Inner> {
    NonNull::new(CURRENT.get()).unwrap_or_else(make)
}

/// Runs `f` on the part of the pool that belongs to this thread. `f` must not come back here.
#[inline(always)]
fn with_local<R>(f: impl FnOnce(&mut Local, NonNull<Inner>) -> R) -> R {
    let inner = current();
    // SAFETY: `inner` is this thread's own pool and alive; `local` is touched by this thread only, and the callers below pass
    // closures that do not call back into this module, so the reference is the only one.
    unsafe { f(&mut *inner.as_ref().local.get(), inner) }
}

/// Takes a free chunk of a size class. With `strict`, none when the pool has reached its limit.
#[inline(always)]
pub(crate) fn take(class: usize, strict: bool) -> Option<ChunkPtr> {
    with_local(|local, inner| match local.free.get_mut(class)?.pop() {
        Some(chunk) => Some(chunk),
        None => refill(local, inner, class, strict),
    })
}

/// Takes a chunk that is free at once, if there is one.
#[inline(always)]
pub(crate) fn at_hand(class: usize) -> Option<ChunkPtr> {
    let inner = NonNull::new(CURRENT.get())?;
    // SAFETY: `inner` is this thread's own pool and alive; `local` is touched by this thread only, and no other reference to it
    // is alive.
    unsafe { &mut *inner.as_ref().local.get() }.free.get_mut(class)?.pop()
}

#[cold]
#[inline(never)]
fn refill(local: &mut Local, inner: NonNull<Inner>, class: usize, strict: bool) -> Option<ChunkPtr> {
    // SAFETY: this thread's own pool is alive. The reference is to a part that threads share.
    let mut next = unsafe { &(*inner.as_ptr()).returns }.take_all();
    while let Some(chunk) = next {
        // SAFETY: the chunk was on the list, which was taken over whole, so nobody else uses it; this pool is alive.
        let (link, class) = unsafe { (chunk.shared().link(), chunk.slab().as_ref().class) };
        if let Some(f) = local.free.get_mut(class) {
            f.push(chunk);
        }
        local.drained += 1;
        next = link;
    }
    if local.free.get(class)?.is_empty() {
        if strict && (local.slabs.len() + 1) * SLAB > local.limit {
            return None;
        }
        grow(local, inner, class);
    }
    local.free.get_mut(class)?.pop()
}

fn grow(local: &mut Local, inner: NonNull<Inner>, class: usize) {
    let Some(size) = CLASSES.get(class) else { return };
    // SAFETY: the layout has a size other than zero.
    let Some(slab) = NonNull::new(unsafe { alloc_zeroed(slab_layout()) }) else {
        handle_alloc_error(slab_layout())
    };
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: advice on memory that was just allocated, whole pages of it; it changes no content. A refusal only costs
    // speed.
    unsafe {
        libc::madvise(slab.as_ptr().cast(), SLAB, libc::MADV_HUGEPAGE);
    }
    let header = slab.cast::<SlabHeader>();
    // SAFETY: the pool is alive, and the list lies inside it. No reference is made, so `local` stays the only one.
    let free = unsafe { NonNull::new_unchecked(&raw mut (*inner.as_ref().local.get()).free[class]) };
    // SAFETY: the slab is aligned to 2 MiB and larger than the header.
    unsafe { header.write(SlabHeader { pool: inner, free, class }) };
    local.slabs.push(header);
    let n = size.chunks();
    if let Some(free) = local.free.get_mut(class) {
        free.reserve(n);
    }
    for i in (0..n).rev() {
        // SAFETY: `HEAD + (n - 1) * stride + stride <= SLAB`, so the chunk lies inside the slab, behind its header; both
        // offsets are multiples of 64.
        let chunk = unsafe { ChunkPtr::make(slab.add(HEAD + i * size.stride), size) };
        if let Some(free) = local.free.get_mut(class) {
            free.push(chunk);
        }
        local.chunks += 1;
    }
}

/// Gives a chunk back.
///
/// # Safety
/// `chunk` came from [`take`] and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn give(chunk: ChunkPtr) {
    // SAFETY: every chunk lies in a slab whose header was written by `grow`; the slab lives as long as its pool, and the
    // pool at least until this chunk is home.
    let header = unsafe { chunk.slab().as_ref() };
    if std::ptr::eq(header.pool.as_ptr(), CURRENT.get()) {
        // SAFETY: this is the thread's own pool, so only this thread touches `local`, in which the list is, and no reference
        // to it is alive: the functions that make one do not free packets.
        let free = unsafe { &mut *header.free.as_ptr() };
        // Room for every chunk of the pool was made with its slab, so this does not grow.
        if free.len() == free.capacity() {
            return grow_free(free, chunk);
        }
        free.push(chunk);
    } else {
        // SAFETY: as the caller promises, and the pool is alive until its balance is settled.
        unsafe { give_remote(header.pool, chunk) }
    }
}

/// Chunks that come home to a list without room.
#[cold]
#[inline(never)]
fn grow_free(free: &mut Vec<ChunkPtr>, chunk: ChunkPtr) {
    free.push(chunk);
}

/// # Safety
/// As [`give`], for a pool of another thread.
#[cold]
#[inline(never)]
unsafe fn give_remote(pool: NonNull<Inner>, chunk: ChunkPtr) {
    if let Some(lender) = LENDER.get()
        && std::ptr::eq((lender.seen)(), pool.as_ptr())
    {
        // SAFETY: the caller owns the chunk, which lies in a slab of `pool`; the lender says that this is the pool of this
        // very thread, and no reference to its `local` is alive, as in `give`.
        unsafe {
            let class = chunk.slab().as_ref().class;
            let local = &mut *pool.as_ref().local.get();
            if let Some(f) = local.free.get_mut(class) {
                f.push(chunk);
            }
        }
        return;
    }
    count_elsewhere(1);
    // SAFETY: the pool cannot be destroyed before this chunk is counted, below.
    let inner = unsafe { pool.as_ref() };
    // SAFETY: the caller owns the chunk, and the pool is alive.
    unsafe { inner.returns.add(chunk) }
    if inner.balance.fetch_add(1, Ordering::AcqRel) == -1 {
        // SAFETY: the thread of the pool has ended and this was the last chunk: nobody else knows the pool.
        unsafe { destroy(pool) }
    }
}

/// Counts packets that were dropped without a chunk for this thread's pool, or, below zero, chunks without a packet.
pub(crate) fn count_elsewhere(n: isize) {
    ELSEWHERE.set(ELSEWHERE.get().wrapping_add(n));
}

/// A number that grows by one with each packet that this thread drops, as long as it makes none. The difference of two tells
/// how many packets an unwinding panic has dropped; an ordinary drop pays nothing for it.
pub fn dropped() -> usize {
    let free = with_local(|local, _| local.free.iter().map(Vec::len).sum::<usize>());
    free.wrapping_add_signed(ELSEWHERE.get())
}

/// Sets how many bytes the pool of this thread may grow to. What it has already is kept.
pub fn set_limit(bytes: usize) {
    with_local(|local, _| local.limit = bytes);
}

/// Chunks of this thread's pool, and how many of them are in use or on their way home.
pub fn usage() -> (usize, usize) {
    with_local(|local, _| (local.chunks, local.chunks - local.free.iter().map(Vec::len).sum::<usize>()))
}

/// Lives as long as the pool of this thread.
#[cfg(test)]
pub(crate) fn watch() -> std::sync::Weak<()> {
    // SAFETY: this thread's own pool is alive.
    with_local(|_, inner| std::sync::Arc::downgrade(unsafe { &(*inner.as_ptr()).alive }))
}

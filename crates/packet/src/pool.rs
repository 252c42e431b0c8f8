// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pools: one a thread, made when first used, growing slab by slab up to a limit.

use crate::chunk::{CLASSES, Meta, SLAB, SlabHeader, slab_of};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering};

/// Bytes a pool may grow to before [`crate::Packet::new`] refuses.
pub const DEFAULT_LIMIT: usize = 1 << 30;

/// What only the thread of the pool touches.
struct Local {
    free: [Vec<NonNull<Meta>>; CLASSES.len()],
    slabs: Vec<NonNull<SlabHeader>>,
    chunks: usize,
    /// Chunks taken from `returns` so far.
    drained: usize,
    limit: usize,
}

/// A pool. It lives until its thread has ended and every chunk has come home.
pub(crate) struct Inner {
    local: UnsafeCell<Local>,
    /// Chunks freed by other threads, linked through [`Meta::next`].
    returns: AtomicPtr<Meta>,
    /// Chunks ever returned by other threads; the ending thread subtracts those that are still to come back, and who
    /// brings it to zero from below frees the pool.
    balance: AtomicI64,
}

thread_local! {
    /// The pool of this thread, null before its first packet and after its end. Without a destructor, so that packets
    /// dropped by other destructors of the thread may still look at it.
    static CURRENT: Cell<*mut Inner> = const { Cell::new(std::ptr::null_mut()) };
    /// Gives the pool up when the thread ends.
    static GUARD: Guard = const { Guard };
}

/// The pools that a copy of this crate uses which is part of a shared library: those of the program that loaded it.
static LENDER: OnceLock<Lender> = OnceLock::new();

/// Lends the pools of this copy of the crate to another one in the same process.
#[derive(Clone, Copy)]
pub struct Lender {
    /// The pool of the thread that asks, made if there is none.
    current: fn() -> NonNull<Inner>,
    /// The same, but null if there is none.
    seen: fn() -> *mut Inner,
}

/// The pools of this copy of the crate, for [`borrow`] in another one.
pub fn lender() -> Lender {
    Lender { current, seen: || CURRENT.get() }
}

/// Makes this copy of the crate, which must have the same source and compiler, use the pools of another one. So a thread has
/// one pool whichever copy makes and drops its packets, and this copy leaves nothing behind on a thread when it is unloaded.
/// Only the first call counts, and one with the pools of this very copy does not.
pub fn borrow(from: Lender) {
    // A copy that asks itself would ask for ever.
    if std::ptr::fn_addr_eq(from.current, current as fn() -> NonNull<Inner>) {
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
        returns: AtomicPtr::new(std::ptr::null_mut()),
        balance: AtomicI64::new(0),
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
fn with_local<R>(f: impl FnOnce(&mut Local, &Inner) -> R) -> R {
    let inner = current();
    // SAFETY: `inner` is this thread's own pool and alive; `local` is touched by this thread only, and the two callers
    // below pass closures that do not call back into this module, so the reference is the only one.
    unsafe { f(&mut *inner.as_ref().local.get(), inner.as_ref()) }
}

/// Takes a free chunk of a size class. With `strict`, none when the pool has reached its limit.
#[inline(always)]
pub(crate) fn take(class: usize, strict: bool) -> Option<NonNull<Meta>> {
    with_local(|local, inner| match local.free.get_mut(class)?.pop() {
        Some(m) => Some(m),
        None => refill(local, inner, class, strict),
    })
}

/// Takes a chunk that is free at once, if there is one.
#[inline(always)]
pub(crate) fn at_hand(class: usize) -> Option<NonNull<Meta>> {
    let inner = NonNull::new(CURRENT.get())?;
    // SAFETY: `inner` is this thread's own pool and alive; `local` is touched by this thread only, and no other reference to it
    // is alive.
    unsafe { &mut *inner.as_ref().local.get() }.free.get_mut(class)?.pop()
}

#[cold]
#[inline(never)]
fn refill(local: &mut Local, inner: &Inner, class: usize, strict: bool) -> Option<NonNull<Meta>> {
    let mut m = inner.returns.swap(std::ptr::null_mut(), Ordering::Acquire);
    while let Some(meta) = NonNull::new(m) {
        // SAFETY: chunks in the list are free and owned by the list, which was just taken over whole; the Acquire above
        // pairs with the Release that put them there.
        let (next, class) =
            unsafe { (meta.as_ref().next.load(Ordering::Relaxed), slab_of(meta).as_ref().class) };
        if let Some(f) = local.free.get_mut(class) {
            f.push(meta);
        }
        local.drained += 1;
        m = next;
    }
    if local.free.get(class)?.is_empty() {
        if strict && (local.slabs.len() + 1) * SLAB > local.limit {
            return None;
        }
        grow(local, NonNull::from(inner), class);
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
    let first = size_of::<Meta>();
    let n = (SLAB - first) / size.stride;
    if let Some(free) = local.free.get_mut(class) {
        free.reserve(n);
    }
    for i in (0..n).rev() {
        // SAFETY: `first + (n - 1) * stride + stride <= SLAB`, so chunk and buffer lie inside the slab; both offsets are
        // multiples of 64, the alignment of Meta.
        let meta = unsafe {
            let meta = slab.add(first + i * size.stride).cast::<Meta>();
            meta.write(Meta {
                buf: meta.add(1).cast::<u8>().add(size.pad),
                data: 0,
                len: 0,
                cap: size.cap,
                mac: 0,
                network: 0,
                transport: 0,
                kind: 0,
                flags: 0,
                hops: 0,
                floor: 0,
                anno: [0; 48],
                timestamp: 0,
                owner: std::ptr::null_mut(),
                next: AtomicPtr::new(std::ptr::null_mut()),
                refs: AtomicU32::new(0),
                offload_start: 0,
                offload_field: 0,
                offload_size: 0,
                offload_kind: 0,
            });
            meta
        };
        if let Some(free) = local.free.get_mut(class) {
            free.push(meta);
        }
        local.chunks += 1;
    }
}

/// Gives a chunk back.
///
/// # Safety
/// `meta` came from [`take`] and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn give(meta: NonNull<Meta>) {
    // SAFETY: every chunk lies in a slab whose header was written by `grow`; the slab lives as long as its pool, and the
    // pool at least until this chunk is home.
    let header = unsafe { slab_of(meta).as_ref() };
    if std::ptr::eq(header.pool.as_ptr(), CURRENT.get()) {
        // SAFETY: this is the thread's own pool, so only this thread touches `local`, in which the list is, and no reference
        // to it is alive: the functions that make one do not free packets.
        let free = unsafe { &mut *header.free.as_ptr() };
        // Room for every chunk of the pool was made with its slab, so this does not grow.
        if free.len() == free.capacity() {
            return grow_free(free, meta);
        }
        free.push(meta);
    } else {
        // SAFETY: as the caller promises, and the pool is alive until its balance is settled.
        unsafe { give_remote(header.pool, meta) }
    }
}

/// Chunks that come home to a list without room.
#[cold]
#[inline(never)]
fn grow_free(free: &mut Vec<NonNull<Meta>>, meta: NonNull<Meta>) {
    free.push(meta);
}

/// # Safety
/// As [`give`], for a pool of another thread.
#[cold]
#[inline(never)]
unsafe fn give_remote(pool: NonNull<Inner>, meta: NonNull<Meta>) {
    if let Some(lender) = LENDER.get()
        && std::ptr::eq((lender.seen)(), pool.as_ptr())
    {
        // SAFETY: the caller owns the chunk, which lies in a slab of `pool`; the lender says that this is the pool of this
        // very thread, and no reference to its `local` is alive, as in `give`.
        unsafe {
            let class = slab_of(meta).as_ref().class;
            let local = &mut *pool.as_ref().local.get();
            if let Some(f) = local.free.get_mut(class) {
                f.push(meta);
            }
        }
        return;
    }
    // SAFETY: the pool cannot be destroyed before this chunk is counted, below.
    let inner = unsafe { pool.as_ref() };
    let mut head = inner.returns.load(Ordering::Relaxed);
    loop {
        // SAFETY: the chunk is ours until the exchange succeeds.
        unsafe { meta.as_ref() }.next.store(head, Ordering::Relaxed);
        match inner.returns.compare_exchange_weak(head, meta.as_ptr(), Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break,
            Err(h) => head = h,
        }
    }
    if inner.balance.fetch_add(1, Ordering::AcqRel) == -1 {
        // SAFETY: the thread of the pool has ended and this was the last chunk: nobody else knows the pool.
        unsafe { destroy(pool) }
    }
}

/// Sets how many bytes the pool of this thread may grow to. What it has already is kept.
pub fn set_limit(bytes: usize) {
    with_local(|local, _| local.limit = bytes);
}

/// Chunks of this thread's pool, and how many of them are in use or on their way home.
pub fn usage() -> (usize, usize) {
    with_local(|local, _| (local.chunks, local.chunks - local.free.iter().map(Vec::len).sum::<usize>()))
}

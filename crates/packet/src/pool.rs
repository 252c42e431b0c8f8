// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet pools: one for each thread, created on first use. A pool grows by slabs up to a limit.

use crate::chunk::{CLASSES, ChunkPtr, HEAD, Returned, SLAB, SlabHeader};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The default limit of a pool in bytes. Beyond it, [`crate::Packet::new`] fails.
pub const DEFAULT_LIMIT: usize = 1 << 30;

/// The part of a pool that only the pool's thread accesses.
struct Local {
    free: [Vec<ChunkPtr>; CLASSES.len()],
    slabs: Vec<NonNull<SlabHeader>>,
    chunks: usize,
    /// The number of chunks taken from `returns` so far.
    drained: usize,
    limit: usize,
}

/// A pool. It lives until its thread has ended and every chunk has been returned.
pub(crate) struct Inner {
    local: UnsafeCell<Local>,
    /// Chunks freed by other threads.
    returns: Returned,
    /// Until the pool's thread ends, this is the number of chunks that other threads have returned. When the thread
    /// ends, it subtracts two numbers: the number of chunks that it has taken from `returns`, and the number of chunks
    /// that are not in its free lists (in use, or returned but not taken yet). From then on, the balance is minus the
    /// number of chunks still in use. The thread that brings the balance to zero frees the pool.
    balance: AtomicI64,
    /// The memory of a [`crate::Region`]'s pool; `None` in the pool of a thread, whose slabs are allocated one by one.
    _memory: Option<Memory>,
    /// Lets tests observe when the pool is freed.
    #[cfg(test)]
    alive: std::sync::Arc<()>,
}

thread_local! {
    /// The pool of this thread; null before the thread's first packet and after the thread's end. This variable has no
    /// destructor, so it can still be read when other destructors of the thread drop packets.
    static CURRENT: Cell<*mut Inner> = const { Cell::new(std::ptr::null_mut()) };
    /// Releases the pool when the thread ends.
    static GUARD: Guard = const { Guard };
    /// The number of packets that this thread dropped, minus the number of chunks that these drops returned to the
    /// thread's own free lists. See [`dropped`].
    static DROPPED_ELSEWHERE: Cell<isize> = const { Cell::new(0) };
}

/// Memory that was allocated in one piece, aligned to [`SLAB`].
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
}

impl Memory {
    /// Allocates `len` bytes, a multiple of [`SLAB`], with all bytes zero.
    ///
    /// The memory is mapped for this purpose alone. So after a device was closed, whatever it still writes cannot reach
    /// other data of the program: the kernel keeps the pages of the device until then, and nobody else gets them.
    #[cfg(not(miri))]
    pub fn new(len: usize) -> io::Result<Memory> {
        let whole = len.checked_add(SLAB).ok_or(io::ErrorKind::OutOfMemory)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: this creates a new mapping at an address that the kernel chooses.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, kind, -1, 0) };
        let start = NonNull::new(p.cast::<u8>()).filter(|_| p != libc::MAP_FAILED);
        let start = start.ok_or_else(io::Error::last_os_error)?;
        // Unmap what lies before the first multiple of SLAB, and what lies after the wanted bytes.
        let before = start.addr().get().next_multiple_of(SLAB) - start.addr().get();
        // SAFETY: both parts are whole pages of the new mapping, which nobody uses yet, and `before <= SLAB`.
        unsafe {
            let wanted = start.add(before);
            if before > 0 {
                libc::munmap(start.as_ptr().cast(), before);
            }
            if before < SLAB {
                libc::munmap(wanted.add(len).as_ptr().cast(), SLAB - before);
            }
            Ok(Memory { start: wanted, len })
        }
    }
    /// As above, for an interpreter that has no such mappings.
    #[cfg(miri)]
    pub fn new(len: usize) -> io::Result<Memory> {
        let layout = Layout::from_size_align(len, SLAB).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { start, len })
    }
    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(not(miri))]
        // SAFETY: the mapping belongs to this value alone, and nothing borrowed from it is left.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len);
        }
        #[cfg(miri)]
        // SAFETY: allocated by `new` with this layout.
        unsafe {
            dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.len, SLAB));
        }
    }
}

/// The lender of pools. It is set only in a copy of this crate inside a shared library: that copy uses the pools of
/// the program that loaded the library.
static LENDER: OnceLock<Lender> = OnceLock::new();

/// Lends the pools of this copy of the crate to another copy in the same process.
#[derive(Clone, Copy)]
pub struct Lender {
    /// The address of the `LENDER` in this copy of the crate, which identifies the copy. Function addresses are not
    /// suitable, because the compiler may merge or duplicate functions.
    copy: usize,
    /// The pool of the calling thread, created if necessary.
    current: fn() -> NonNull<Inner>,
    /// The pool of the calling thread; null if the thread has none.
    seen: fn() -> *mut Inner,
}

/// Returns access to the pools of this copy of the crate. Another copy in the same process passes the result to its own
/// [`borrow`].
pub fn lender() -> Lender {
    Lender { copy: (&raw const LENDER).addr(), current, seen: || CURRENT.get() }
}

/// Makes this copy of the crate use the pools of another copy. Each shared library contains its own copy. The two
/// copies must be built from the same source by the same compiler. A thread then has one pool, whichever copy creates
/// and drops its packets, and this copy leaves nothing behind on a thread when it is unloaded. Only the first call has
/// an effect. A call with this copy's own pools is ignored.
pub fn borrow(from: Lender) {
    // If this copy borrowed from itself, each call would call itself again without end.
    if from.copy == (&raw const LENDER).addr() {
        return;
    }
    LENDER.get_or_init(|| from);
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(inner) = NonNull::new(CURRENT.replace(std::ptr::null_mut())) else { return };
        // SAFETY: CURRENT held the pool that this thread created. Only this thread accesses `local`, and after
        // the replacement above no call on this thread can reach it.
        let missing = unsafe {
            let local = &*inner.as_ref().local.get();
            let free: usize = local.free.iter().map(Vec::len).sum();
            local.drained + local.chunks - free
        };
        // SAFETY: the pool is alive, because this thread has not released it before this line. The thread no longer uses
        // the pool.
        unsafe { release(inner, missing) }
    }
}

/// Ends the use of a pool by its owner. `missing` is what the owner subtracts from `balance`, see there. If every chunk
/// has been returned, the pool is freed.
///
/// # Safety
/// The pool is alive, and its owner calls this function once and does not use the pool afterwards.
pub(crate) unsafe fn release(pool: NonNull<Inner>, missing: usize) {
    let missing = missing as i64;
    // SAFETY: guaranteed by the caller.
    let before = unsafe { pool.as_ref() }.balance.fetch_sub(missing, Ordering::AcqRel);
    if before == missing {
        // SAFETY: every chunk has been returned, and the owner no longer uses the pool, so there are no other
        // references.
        unsafe { destroy(pool) }
    }
}

/// Frees a pool and its slabs.
///
/// # Safety
/// No chunk of the pool is in use, and no thread will access the pool again.
unsafe fn destroy(inner: NonNull<Inner>) {
    // SAFETY: created by Box::leak in `make`; the caller guarantees that this is the last use.
    let pool = unsafe { Box::from_raw(inner.as_ptr()) };
    for slab in &pool.local.into_inner().slabs {
        // SAFETY: each slab was allocated by `grow` with this layout, and is freed once.
        unsafe { dealloc(slab.as_ptr().cast(), slab_layout()) }
    }
}

fn slab_layout() -> Layout {
    // SAFETY: the alignment is a power of two and the size does not overflow when rounded up to it.
    unsafe { Layout::from_size_align_unchecked(SLAB, SLAB) }
}

/// Creates the pool of this thread, or gets it from the lender.
#[cold]
#[inline(never)]
fn make() -> NonNull<Inner> {
    // A lent pool is not stored in CURRENT, because only the lender can tell when the pool is freed.
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
        _memory: None,
        #[cfg(test)]
        alive: Default::default(),
    })));
    // If the thread is ending, its guard may already be destroyed. A pool that is created then is leaked, so that
    // it is not freed while packets exist.
    let _ = GUARD.try_with(|_| ());
    CURRENT.set(inner.as_ptr());
    inner
}

#[inline(always)]
fn current() -> NonNull<Inner> {
    NonNull::new(CURRENT.get()).unwrap_or_else(make)
}

/// Runs `f` on the thread-local part of the pool. `f` must not call into this module.
#[inline(always)]
fn with_local<R>(f: impl FnOnce(&mut Local, NonNull<Inner>) -> R) -> R {
    let inner = current();
    // SAFETY: `inner` is this thread's own pool and alive. Only this thread accesses `local`, and the callers
    // below pass closures that do not call back into this module, so the reference is the only one.
    unsafe { f(&mut *inner.as_ref().local.get(), inner) }
}

/// Takes a free chunk of a size class. With `strict`, returns `None` if no chunk is free and the pool has reached its
/// limit. Without it, the pool may exceed its limit.
#[inline(always)]
pub(crate) fn take(class: usize, strict: bool) -> Option<ChunkPtr> {
    with_local(|local, inner| match local.free.get_mut(class)?.pop() {
        Some(chunk) => Some(chunk),
        None => refill(local, inner, class, strict),
    })
}

/// Takes a chunk from the free list; `None` if the list is empty.
#[inline(always)]
pub(crate) fn at_hand(class: usize) -> Option<ChunkPtr> {
    let inner = NonNull::new(CURRENT.get())?;
    // SAFETY: `inner` is this thread's own pool and alive. Only this thread accesses `local`, and no other
    // reference to it exists.
    unsafe { &mut *inner.as_ref().local.get() }.free.get_mut(class)?.pop()
}

#[cold]
#[inline(never)]
fn refill(local: &mut Local, inner: NonNull<Inner>, class: usize, strict: bool) -> Option<ChunkPtr> {
    let free = &mut local.free;
    // SAFETY: this thread's own pool is alive.
    local.drained += unsafe {
        collect(inner, |chunk| {
            if let Some(f) = free.get_mut(chunk.slab().as_ref().class) {
                f.push(chunk);
            }
        })
    };
    if local.free.get(class)?.is_empty() {
        if strict && (local.slabs.len() + 1) * SLAB > local.limit {
            return None;
        }
        grow(local, inner, class);
    }
    local.free.get_mut(class)?.pop()
}

/// Takes all chunks that other threads have returned to a pool, and calls `each` with each of them. Returns their number.
///
/// # Safety
/// The pool is alive, and only its owner calls this function.
pub(crate) unsafe fn collect(pool: NonNull<Inner>, mut each: impl FnMut(ChunkPtr)) -> usize {
    // SAFETY: guaranteed by the caller. The reference covers only `returns`, which all threads share.
    let mut next = unsafe { &(*pool.as_ptr()).returns }.take_all();
    let mut n = 0;
    while let Some(chunk) = next {
        // SAFETY: the whole list was taken over, so no other thread uses the chunk. The pool is alive.
        next = unsafe { chunk.shared() }.link();
        each(chunk);
        n += 1;
    }
    n
}

/// Creates the pool of a [`crate::Region`] with this memory. The region keeps the free chunks itself.
pub(crate) fn of_region(memory: Memory) -> NonNull<Inner> {
    NonNull::from(Box::leak(Box::new(Inner {
        local: UnsafeCell::new(Local {
            free: Default::default(),
            slabs: Vec::new(),
            chunks: 0,
            drained: 0,
            limit: 0,
        }),
        returns: Returned::new(),
        balance: AtomicI64::new(0),
        _memory: Some(memory),
        #[cfg(test)]
        alive: Default::default(),
    })))
}

/// Makes a slab of a pool, and calls `each` with each of its chunks.
///
/// # Safety
/// The slab is aligned to its size, and nobody uses its memory. The pool lives at least as long as its chunks are used.
/// `class` is the number of a size class.
pub(crate) unsafe fn lay_out(
    slab: NonNull<u8>,
    pool: NonNull<Inner>,
    class: usize,
    mut each: impl FnMut(ChunkPtr),
) {
    let Some(size) = CLASSES.get(class) else { return };
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the advice concerns whole pages that were just allocated and does not change their contents. A
    // failure only costs speed.
    unsafe {
        libc::madvise(slab.as_ptr().cast(), SLAB, libc::MADV_HUGEPAGE);
    }
    // SAFETY: the pool is alive and contains the list. This creates a raw pointer, so it does not conflict with a
    // reference that the caller has.
    let free = unsafe { NonNull::new_unchecked(&raw mut (*pool.as_ref().local.get()).free[class]) };
    // SAFETY: the slab is aligned to its size and larger than the header.
    unsafe { slab.cast::<SlabHeader>().write(SlabHeader { pool, free, class }) };
    for i in (0..size.chunks()).rev() {
        // SAFETY: `HEAD + (n - 1) * stride + stride <= SLAB`, so the chunk is inside the slab and after its
        // header. Both offsets are multiples of 64.
        each(unsafe { ChunkPtr::make(slab.add(HEAD + i * size.stride), size) });
    }
}

fn grow(local: &mut Local, inner: NonNull<Inner>, class: usize) {
    let Some(size) = CLASSES.get(class) else { return };
    // SAFETY: the size of the layout is not zero.
    let Some(slab) = NonNull::new(unsafe { alloc_zeroed(slab_layout()) }) else {
        handle_alloc_error(slab_layout())
    };
    local.slabs.push(slab.cast());
    let n = size.chunks();
    if let Some(free) = local.free.get_mut(class) {
        // The list is empty. Its capacity grows by the number of chunks of this slab, so that it holds the chunks
        // of all slabs and `give` need not allocate.
        free.reserve_exact(free.capacity() + n);
    }
    local.chunks += n;
    let free = local.free.get_mut(class);
    let mut chunks = Vec::with_capacity(n);
    // SAFETY: the slab was allocated with this alignment. The pool is freed after its chunks.
    unsafe { lay_out(slab, inner, class, |chunk| chunks.push(chunk)) };
    if let Some(free) = free {
        free.append(&mut chunks);
    }
}

/// Frees a chunk.
///
/// # Safety
/// `chunk` came from [`take`] and is not in use.
#[inline(always)]
pub(crate) unsafe fn give(chunk: ChunkPtr) {
    // SAFETY: every chunk is in a slab whose header was written by `grow`. The slab lives as long as its pool,
    // and the pool at least until this chunk is returned.
    let header = unsafe { chunk.slab().as_ref() };
    if std::ptr::eq(header.pool.as_ptr(), CURRENT.get()) {
        // SAFETY: this is the thread's own pool, so only this thread accesses `local`, which contains the list.
        // No other reference to the list exists, because functions that borrow `local` never free packets.
        let free = unsafe { &mut *header.free.as_ptr() };
        // `grow` has reserved space for the chunks of all slabs, so this is only a safeguard.
        if free.len() == free.capacity() {
            return grow_free(free, chunk);
        }
        free.push(chunk);
    } else {
        // SAFETY: guaranteed by the caller. The pool stays alive at least until `give_remote` has counted
        // this chunk.
        unsafe { give_remote(header.pool, chunk) }
    }
}

/// Frees many chunks. Remembers the slab of the last one, because packets that are freed together are often from one slab.
pub(crate) struct GiveBack {
    /// The slab, if it belongs to the pool of this thread, and its list of free chunks.
    last: Option<(NonNull<SlabHeader>, NonNull<Vec<ChunkPtr>>)>,
}

impl GiveBack {
    pub fn new() -> GiveBack {
        GiveBack { last: None }
    }

    /// Frees a chunk.
    ///
    /// # Safety
    /// As for [`give`].
    #[inline(always)]
    pub unsafe fn give(&mut self, chunk: ChunkPtr) {
        let slab = chunk.slab();
        let free = match self.last {
            Some((last, free)) if last == slab => free,
            _ => {
                // SAFETY: as in `give`, the slab has a header.
                let header = unsafe { slab.as_ref() };
                if !std::ptr::eq(header.pool.as_ptr(), CURRENT.get()) {
                    // SAFETY: guaranteed by the caller.
                    return unsafe { give_remote(header.pool, chunk) };
                }
                self.last = Some((slab, header.free));
                header.free
            }
        };
        // SAFETY: as in `give`: the list is that of this thread's own pool, and no reference to it exists. The pool lives at least
        // as long as the chunk.
        let free = unsafe { &mut *free.as_ptr() };
        if free.len() == free.capacity() {
            return grow_free(free, chunk);
        }
        free.push(chunk);
    }
}

/// Adds a chunk to a free list that is full, so that the list must be reallocated.
#[cold]
#[inline(never)]
fn grow_free(free: &mut Vec<ChunkPtr>, chunk: ChunkPtr) {
    free.push(chunk);
}

/// # Safety
/// As for [`give`]; the chunk may belong to another thread's pool.
#[cold]
#[inline(never)]
unsafe fn give_remote(pool: NonNull<Inner>, chunk: ChunkPtr) {
    if let Some(lender) = LENDER.get()
        && std::ptr::eq((lender.seen)(), pool.as_ptr())
    {
        // SAFETY: the caller owns the chunk, which is in a slab of `pool`. The lender has just returned `pool` as the
        // pool of the current thread. No reference to the `local` of `pool` exists, as in `give`.
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
    // SAFETY: the pool cannot be destroyed before this chunk is counted below.
    let inner = unsafe { pool.as_ref() };
    // SAFETY: the caller owns the chunk, and the pool is alive.
    unsafe { inner.returns.add(chunk) }
    if inner.balance.fetch_add(1, Ordering::AcqRel) == -1 {
        // SAFETY: the pool's thread has ended and this was the last chunk, so there are no other references.
        unsafe { destroy(pool) }
    }
}

/// Counts `n` packets that were dropped without returning a chunk to this thread's pool. A negative number counts
/// chunks that return to the pool without a packet being dropped.
pub(crate) fn count_elsewhere(n: isize) {
    DROPPED_ELSEWHERE.set(DROPPED_ELSEWHERE.get().wrapping_add(n));
}

/// A counter that increases by one with each packet that this thread drops. This holds only while the thread creates no
/// packets. The difference between the values before and after a panic is the number of packets that the unwinding
/// dropped. The counter adds no cost to ordinary drops.
pub fn dropped() -> usize {
    let free = with_local(|local, _| local.free.iter().map(Vec::len).sum::<usize>());
    free.wrapping_add_signed(DROPPED_ELSEWHERE.get())
}

/// Sets the limit of this thread's pool in bytes. Memory that the pool already has is kept.
pub fn set_limit(bytes: usize) {
    with_local(|local, _| local.limit = bytes);
}

/// The number of chunks that this thread's pool has allocated, and the number of those that are not in its free lists.
/// The latter are in use, or were returned by other threads and not yet collected.
pub fn usage() -> (usize, usize) {
    with_local(|local, _| (local.chunks, local.chunks - local.free.iter().map(Vec::len).sum::<usize>()))
}

/// Returns a weak reference for tests. It expires when the pool of this thread is freed.
#[cfg(test)]
pub(crate) fn watch() -> std::sync::Weak<()> {
    // SAFETY: this thread's own pool is alive.
    with_local(|_, inner| std::sync::Arc::downgrade(unsafe { &(*inner.as_ptr()).alive }))
}

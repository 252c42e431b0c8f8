// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chunk of a slab: metadata and, right behind it, the buffer.

use crate::pool::Inner;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Bytes of a slab, and its alignment: a chunk finds its slab by clearing low bits of its address.
/// Few chunks are enough for miri, which takes its time to make them.
pub(crate) const SLAB: usize = if cfg!(miri) { 256 << 10 } else { 2 << 20 };

/// No header set.
pub(crate) const UNSET: u32 = u32::MAX;

/// The buffer or the annotations behind byte 24, or the timestamp, may differ from zero.
pub(crate) const COLD: u8 = 1;
/// Another handle may be on the same buffer.
pub(crate) const SHARED: u8 = 2;
/// The fields about offloads are set.
pub(crate) const OFFLOAD: u8 = 4;

/// The head of a chunk, with its buffer behind it.
///
/// No reference covers a whole head: one to [`Meta`] is the handle's, and an exclusive one may be alive while other handles
/// use [`Shared`]. [`ChunkPtr`] is the only way to either.
#[repr(C, align(64))]
struct Head {
    meta: Meta,
    shared: Shared,
}

/// What only the handle on a chunk reads and writes. The first 64 bytes are what forwarding touches.
#[repr(C)]
pub(crate) struct Meta {
    /// First byte of the buffer that the packet's data is in: this chunk's own, or another's when cloned.
    pub buf: NonNull<u8>,
    /// Offset of the first byte of data in the buffer.
    pub data: u32,
    /// Bytes of data.
    pub len: u32,
    /// Bytes of the buffer.
    pub cap: u32,
    /// Offset in the buffer of the MAC header, or [`UNSET`].
    pub mac: u32,
    /// Offset in the buffer of the network header, or [`UNSET`].
    pub network: u32,
    /// Offset in the buffer of the transport header, or [`UNSET`].
    pub transport: u32,
    /// [`crate::PacketType`].
    pub kind: u8,
    /// [`COLD`], [`SHARED`], [`OFFLOAD`].
    pub flags: u8,
    /// How often the packet went round a cycle of the configuration.
    pub hops: u16,
    /// Lowest offset in the buffer that holds bytes of this packet; below it is what an earlier packet left.
    pub floor: u32,
    /// User annotations; the first 24 bytes share the cache line with the fields above.
    pub anno: [u8; 48],
    /// Nanoseconds since 1970, 0 when not set.
    pub timestamp: i64,
    /// While [`OFFLOAD`]: offset in the buffer of the header whose checksum is partial.
    pub offload_start: u32,
    /// Where in that header the checksum is; `u16::MAX`: it is not partial.
    pub offload_field: u16,
    /// Bytes of payload for each segment of a super-packet.
    pub offload_size: u16,
    /// The kind of super-packet; 0: none.
    pub offload_kind: u8,
}

/// What clones of a packet and the pool use beside the handle, so atomic.
#[repr(C)]
pub(crate) struct Shared {
    /// While [`SHARED`]: the chunk whose buffer this is. In the list of chunks that came back from other threads: the next.
    link: AtomicPtr<Head>,
    /// While [`SHARED`], in the chunk whose buffer it is: handles on that.
    pub refs: AtomicU32,
}

impl Shared {
    /// The chunk that was linked to.
    pub fn link(&self) -> Option<ChunkPtr> {
        ChunkPtr::from_raw(self.link.load(Ordering::Relaxed))
    }
    /// Links to a chunk. Only the handle on the chunk, or the one thread that puts it on a list, does this.
    pub fn set_link(&self, to: Option<ChunkPtr>) {
        self.link.store(ChunkPtr::raw(to), Ordering::Relaxed);
    }
}

/// Where a chunk is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ChunkPtr(NonNull<Head>);

impl ChunkPtr {
    /// Makes a chunk of blank memory.
    ///
    /// # Safety
    /// At `at`, a multiple of 64, are `size.stride` bytes of a slab, which nothing else uses.
    pub unsafe fn make(at: NonNull<u8>, size: &SizeClass) -> ChunkPtr {
        let chunk = ChunkPtr(at.cast());
        // SAFETY: as the caller promises; the head is shorter than any stride.
        unsafe {
            chunk.0.write(Head {
                meta: Meta {
                    buf: chunk.buffer(size),
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
                    offload_start: 0,
                    offload_field: 0,
                    offload_size: 0,
                    offload_kind: 0,
                },
                shared: Shared { link: AtomicPtr::new(std::ptr::null_mut()), refs: AtomicU32::new(0) },
            });
        }
        chunk
    }
    /// The chunk's own buffer.
    ///
    /// # Safety
    /// The chunk lies in a slab of this size class.
    pub unsafe fn buffer(self, size: &SizeClass) -> NonNull<u8> {
        // SAFETY: the buffer starts `pad` bytes behind the head, inside the chunk.
        unsafe { self.0.add(1).cast::<u8>().add(size.pad) }
    }
    /// The metadata.
    #[inline(always)]
    pub fn meta(self) -> NonNull<Meta> {
        // The metadata stands first, see below.
        self.0.cast()
    }
    /// What other handles use too.
    ///
    /// # Safety
    /// The chunk's pool lives for `'a`.
    #[inline(always)]
    pub unsafe fn shared<'a>(self) -> &'a Shared {
        // SAFETY: as the caller promises. Only this part of the head is borrowed, which nobody borrows exclusively.
        unsafe { &(*self.0.as_ptr()).shared }
    }
    /// The header of the slab that the chunk lies in.
    #[inline(always)]
    pub fn slab(self) -> NonNull<SlabHeader> {
        let start = self.0.map_addr(|a| {
            // SAFETY: the chunk lies in a slab, which starts at a multiple of SLAB other than zero.
            unsafe { std::num::NonZeroUsize::new_unchecked(a.get() & !(SLAB - 1)) }
        });
        start.cast()
    }
    fn from_raw(head: *mut Head) -> Option<ChunkPtr> {
        NonNull::new(head).map(ChunkPtr)
    }
    fn raw(chunk: Option<ChunkPtr>) -> *mut Head {
        chunk.map_or(std::ptr::null_mut(), |c| c.0.as_ptr())
    }
}

/// Chunks that came back from other threads, linked through [`Shared::set_link`].
pub(crate) struct Returned(AtomicPtr<Head>);

impl Returned {
    /// None.
    pub const fn new() -> Returned {
        Returned(AtomicPtr::new(std::ptr::null_mut()))
    }
    /// Adds a chunk.
    ///
    /// # Safety
    /// The caller gives the chunk, which no handle is on, away to the list; its pool is alive.
    pub unsafe fn add(&self, chunk: ChunkPtr) {
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the pool is alive, as the caller promises.
            unsafe { chunk.shared() }.set_link(ChunkPtr::from_raw(first));
            // Release: what was done with the chunk happened before it is taken off the list.
            match self.0.compare_exchange_weak(first, chunk.0.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
    /// Takes all chunks off, of which this is the first.
    pub fn take_all(&self) -> Option<ChunkPtr> {
        ChunkPtr::from_raw(self.0.swap(std::ptr::null_mut(), Ordering::Acquire))
    }
}

impl Meta {
    /// Takes over what another packet leaves to be done, except where its header is.
    pub fn copy_offload(&mut self, from: &Meta) {
        self.offload_field = from.offload_field;
        self.offload_size = from.offload_size;
        self.offload_kind = from.offload_kind;
    }
}

/// Bytes of the head of a chunk.
pub(crate) const HEAD: usize = size_of::<Head>();

const _: () = assert!(HEAD == 128 && size_of::<SlabHeader>() <= HEAD);
const _: () = assert!(std::mem::offset_of!(Head, meta) == 0);
const _: () = assert!(std::mem::offset_of!(Meta, anno) == 40);

/// What stands at the start of a slab.
#[repr(C)]
pub(crate) struct SlabHeader {
    pub pool: NonNull<Inner>,
    /// Where in the pool free chunks of this slab's size are listed.
    pub free: NonNull<Vec<ChunkPtr>>,
    pub class: usize,
}

/// Geometry of one size of chunks.
#[derive(Clone, Copy)]
pub(crate) struct SizeClass {
    /// Bytes from one chunk to the next: an odd number of cache lines, so that the first lines of chunks spread over all
    /// sets of the cache.
    pub stride: usize,
    /// Unused bytes before the buffer, so that a frame behind the default headroom starts a cache line.
    pub pad: usize,
    /// Bytes of the buffer.
    pub cap: u32,
}

impl SizeClass {
    /// How many chunks a slab has, behind its header.
    pub const fn chunks(&self) -> usize {
        (SLAB - HEAD) / self.stride
    }
}

/// Ordinary frames, and GSO super-packets or jumbo frames.
pub(crate) const CLASSES: [SizeClass; 2] = [
    SizeClass { stride: 128 + 64 + 2048, pad: 36, cap: 2048 },
    SizeClass { stride: 128 + 64 + 65536 + 512, pad: 36, cap: 65536 + 512 },
];

// Each chunk holds its head and buffer, wastes less than a cache line, and takes an odd number of lines.
const _: () = {
    let mut i = 0;
    while i < CLASSES.len() {
        let SizeClass { stride, pad, cap } = CLASSES[i];
        let end = HEAD + pad + cap as usize;
        assert!(end <= stride && stride - end < 64 && stride % 128 == 64);
        assert!((HEAD + pad + crate::DEFAULT_HEADROOM).is_multiple_of(64));
        i += 1;
    }
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chunk of a slab: metadata, followed by the buffer.

use crate::pool::Inner;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The size of a slab in bytes. Slabs are aligned to this size, so clearing the low bits of a chunk's address gives
/// the address of its slab. Under miri a slab has few chunks, because creating them is slow there.
pub(crate) const SLAB: usize = if cfg!(miri) { 256 << 10 } else { 2 << 20 };

/// Marks a header position that is not set.
pub(crate) const UNSET: u32 = u32::MAX;

/// Flag: the annotations from byte 24 on, and the timestamp, are valid. Without this flag they count as zero.
pub(crate) const COLD: u8 = 1;
/// Flag: other handles may share the buffer.
pub(crate) const SHARED: u8 = 2;
/// Flag: the offload fields are valid.
pub(crate) const OFFLOAD: u8 = 4;
/// Flag: the packet is traced, and its mark is valid.
pub(crate) const TRACED: u8 = 8;
/// The lowest bit of the packet type annotation, in the byte that also has the flags.
pub(crate) const KIND: u32 = 5;

/// The head of a chunk, followed by its buffer.
///
/// No reference ever covers a whole head. [`Meta`] belongs to the handle (the [`crate::Packet`]), which may hold an
/// exclusive reference to it while other handles use [`Shared`]. All access goes through [`ChunkPtr`].
#[repr(C, align(64))]
struct Head {
    meta: Meta,
    shared: Shared,
}

/// The part of a chunk's head that only the chunk's handle accesses. Forwarding touches only the first 64 bytes of this
/// part.
#[repr(C)]
pub(crate) struct Meta {
    /// The start of the buffer that holds the packet's data. The buffer is the chunk's own or, in a clone, that of
    /// another chunk.
    pub buf: NonNull<u8>,
    /// Offset of the first byte of data in the buffer.
    pub data: u32,
    /// Length of the data.
    pub len: u32,
    /// Size of the buffer.
    pub cap: u32,
    /// Offset in the buffer of the MAC header, or [`UNSET`].
    pub mac: u32,
    /// Offset in the buffer of the network header, or [`UNSET`].
    pub network: u32,
    /// Offset in the buffer of the transport header, or [`UNSET`].
    pub transport: u32,
    /// The flags [`COLD`], [`SHARED`] and [`OFFLOAD`], and from bit [`KIND`] on the packet type annotation, a
    /// [`crate::PacketType`].
    pub flags: u8,
    /// The number of the turn in which the packet was sent, if a task has had several turns at once.
    pub turn: u8,
    /// The number of times that the packet has passed through a cycle of the configuration.
    pub hops: u16,
    /// The lowest offset in the buffer that holds bytes of this packet. Bytes below it are from an earlier
    /// packet.
    pub floor: u32,
    /// User annotations. The first 24 bytes are in the same cache line as the fields above.
    pub anno: [u8; 48],
    /// Nanoseconds since 1970; 0 if not set.
    pub timestamp: i64,
    /// If [`OFFLOAD`] is set, the offset in the buffer of the header with a partial checksum.
    pub offload_start: u32,
    /// The offset of the checksum field in that header; `u16::MAX` if no checksum is partial.
    pub offload_field: u16,
    /// The payload size of each segment of a super-packet.
    pub offload_size: u16,
    /// The type of super-packet; 0 for none. With it, the [mark](crate::Packet::mark) of a traced packet: together they
    /// are a word, so that a clone gets both by one copy.
    pub offload_kind: u8,
    pub mark: [u8; 3],
}

/// The part of a chunk's head that clones and the pool access too. All fields are atomic.
#[repr(C)]
pub(crate) struct Shared {
    /// While [`SHARED`] is set: the chunk that owns the buffer. While this chunk is in the list [`Returned`]: the
    /// next chunk of the list.
    link: AtomicPtr<Head>,
    /// In a chunk that owns a shared buffer, the number of handles that use the buffer.
    pub refs: AtomicU32,
}

impl Shared {
    /// The chunk that the link points to; `None` for no chunk.
    pub fn link(&self) -> Option<ChunkPtr> {
        ChunkPtr::from_raw(self.link.load(Ordering::Relaxed))
    }
    /// Makes the link point to a chunk, or to none. Called only by the handle of this chunk, or by the thread that adds
    /// this chunk to a list.
    pub fn set_link(&self, to: Option<ChunkPtr>) {
        self.link.store(ChunkPtr::raw(to), Ordering::Relaxed);
    }
}

/// A pointer to a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct ChunkPtr(NonNull<Head>);

impl ChunkPtr {
    /// Creates a chunk in unused memory.
    ///
    /// # Safety
    /// `at` is a multiple of 64, and the `size.stride` bytes from there on are part of a slab and not otherwise
    /// used.
    pub unsafe fn make(at: NonNull<u8>, size: &SizeClass) -> ChunkPtr {
        let chunk = ChunkPtr(at.cast());
        // SAFETY: guaranteed by the caller; the head is shorter than any stride.
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
                    flags: 0,
                    turn: 0,
                    hops: 0,
                    floor: 0,
                    anno: [0; 48],
                    timestamp: 0,
                    offload_start: 0,
                    offload_field: 0,
                    offload_size: 0,
                    offload_kind: 0,
                    mark: [0; 3],
                },
                shared: Shared { link: AtomicPtr::new(std::ptr::null_mut()), refs: AtomicU32::new(0) },
            });
        }
        chunk
    }
    /// The chunk's own buffer.
    ///
    /// # Safety
    /// The chunk is in a slab of this size class.
    pub unsafe fn buffer(self, size: &SizeClass) -> NonNull<u8> {
        // SAFETY: the buffer starts `pad` bytes after the head, inside the chunk.
        unsafe { self.0.add(1).cast::<u8>().add(size.pad) }
    }
    /// The metadata.
    #[inline(always)]
    pub fn meta(self) -> NonNull<Meta> {
        // `meta` is the first field of the head; an assertion below checks this.
        self.0.cast()
    }
    /// The part of the head that other handles access too.
    ///
    /// # Safety
    /// The chunk's pool lives for `'a`.
    #[inline(always)]
    pub unsafe fn shared<'a>(self) -> &'a Shared {
        // SAFETY: guaranteed by the caller. Only this part of the head is borrowed, and it is never borrowed
        // exclusively.
        unsafe { &(*self.0.as_ptr()).shared }
    }
    /// The header of the slab that contains the chunk.
    #[inline(always)]
    pub fn slab(self) -> NonNull<SlabHeader> {
        let start = self.0.map_addr(|a| {
            // SAFETY: the chunk is in a slab, which starts at a multiple of SLAB other than zero.
            unsafe { std::num::NonZeroUsize::new_unchecked(a.get() & !(SLAB - 1)) }
        });
        start.cast()
    }
    /// The address of the chunk, for [`ChunkPtr::from_address`].
    pub fn address(self) -> *mut () {
        self.0.as_ptr().cast()
    }
    /// The chunk whose [`ChunkPtr::address`] this is; `None` for null.
    pub fn from_address(address: *mut ()) -> Option<ChunkPtr> {
        ChunkPtr::from_raw(address.cast())
    }
    fn from_raw(head: *mut Head) -> Option<ChunkPtr> {
        NonNull::new(head).map(ChunkPtr)
    }
    fn raw(chunk: Option<ChunkPtr>) -> *mut Head {
        chunk.map_or(std::ptr::null_mut(), |c| c.0.as_ptr())
    }
}

/// Chunks returned by other threads, linked through [`Shared::set_link`].
pub(crate) struct Returned(AtomicPtr<Head>);

impl Returned {
    /// An empty list.
    pub const fn new() -> Returned {
        Returned(AtomicPtr::new(std::ptr::null_mut()))
    }
    /// Adds a chunk.
    ///
    /// # Safety
    /// The caller owns the chunk, which has no handle, and passes it to the list. The chunk's pool is alive.
    pub unsafe fn add(&self, chunk: ChunkPtr) {
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the pool is alive, as the caller guarantees.
            unsafe { chunk.shared() }.set_link(ChunkPtr::from_raw(first));
            // Release: all earlier accesses to the chunk happen before it is taken from the list.
            match self.0.compare_exchange_weak(first, chunk.0.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
    /// Removes all chunks and returns the first; the others are linked to it.
    pub fn take_all(&self) -> Option<ChunkPtr> {
        ChunkPtr::from_raw(self.0.swap(std::ptr::null_mut(), Ordering::Acquire))
    }
}

impl Meta {
    /// Copies the mark and the offload fields of another packet, except `offload_start`. The caller must set that field,
    /// because the data may be at another offset in the new buffer.
    pub fn copy_offload(&mut self, from: &Meta) {
        self.offload_field = from.offload_field;
        self.offload_size = from.offload_size;
        (self.offload_kind, self.mark) = (from.offload_kind, from.mark);
    }
}

/// The size of a chunk's head.
pub(crate) const HEAD: usize = size_of::<Head>();

const _: () = assert!(HEAD == 128 && size_of::<SlabHeader>() <= HEAD);
const _: () = assert!(std::mem::offset_of!(Head, meta) == 0);
const _: () = assert!(std::mem::offset_of!(Meta, anno) == 40);

/// The header of a slab.
#[repr(C)]
pub(crate) struct SlabHeader {
    pub pool: NonNull<Inner>,
    /// The pool's list of free chunks in the size class of this slab.
    pub free: NonNull<Vec<ChunkPtr>>,
    pub class: usize,
}

/// The geometry of a size class of chunks.
#[derive(Clone, Copy)]
pub(crate) struct SizeClass {
    /// The distance between chunks in bytes: an odd number of cache lines, so that the first lines of chunks
    /// spread over all cache sets.
    pub stride: usize,
    /// Unused bytes before the buffer. Because of them, a frame after the default headroom starts at a cache line.
    pub pad: usize,
    /// The size of the buffer.
    pub cap: u32,
}

impl SizeClass {
    /// The number of chunks in a slab, after its header.
    pub const fn chunks(&self) -> usize {
        (SLAB - HEAD) / self.stride
    }
}

/// One class for ordinary frames, and one for GSO super-packets and jumbo frames.
pub(crate) const CLASSES: [SizeClass; 2] = [
    SizeClass { stride: 128 + 64 + 2048, pad: 36, cap: 2048 },
    SizeClass { stride: 128 + 64 + 65536 + 512, pad: 36, cap: 65536 + 512 },
];

// Each chunk has space for its head and buffer, wastes less than a cache line, and takes an odd number of cache lines.
// With the default headroom, the data starts at a multiple of 64 bytes.
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

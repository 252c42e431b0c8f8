// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chunk of a slab: metadata and, right behind it, the buffer.

use crate::pool::Inner;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// Bytes of a slab, and its alignment: a chunk finds its slab by clearing low bits of its address.
pub(crate) const SLAB: usize = 2 << 20;

/// No header set.
pub(crate) const UNSET: u32 = u32::MAX;

/// The buffer or the annotations behind byte 24, or the timestamp, may differ from zero.
pub(crate) const COLD: u8 = 1;
/// Another handle may be on the same buffer.
pub(crate) const SHARED: u8 = 2;
/// The fields about offloads are set.
pub(crate) const OFFLOAD: u8 = 4;

/// Metadata of a chunk. The first 64 bytes are what forwarding reads and writes.
#[repr(C, align(64))]
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
    /// While [`SHARED`]: the chunk whose buffer this is.
    pub owner: *mut Meta,
    /// In the list of chunks that came back from other threads.
    pub next: AtomicPtr<Meta>,
    /// While [`SHARED`], in the owner: handles on its buffer.
    pub refs: AtomicU32,
    /// While [`OFFLOAD`]: offset in the buffer of the header whose checksum is partial.
    pub offload_start: u32,
    /// Where in that header the checksum is; `u16::MAX`: it is not partial.
    pub offload_field: u16,
    /// Bytes of payload for each segment of a super-packet.
    pub offload_size: u16,
    /// The kind of super-packet; 0: none.
    pub offload_kind: u8,
}

impl Meta {
    /// Takes over what another packet leaves to be done, except where its header is.
    pub fn copy_offload(&mut self, from: &Meta) {
        self.offload_field = from.offload_field;
        self.offload_size = from.offload_size;
        self.offload_kind = from.offload_kind;
    }
}

const _: () = assert!(size_of::<Meta>() == 128);
const _: () = assert!(std::mem::offset_of!(Meta, anno) == 40);

/// What stands at the start of a slab.
#[repr(C)]
pub(crate) struct SlabHeader {
    pub pool: NonNull<Inner>,
    /// Where in the pool free chunks of this slab's size are listed.
    pub free: NonNull<Vec<NonNull<Meta>>>,
    pub class: usize,
}

/// Geometry of one size of chunks.
#[derive(Clone, Copy)]
pub(crate) struct SizeClass {
    /// Bytes from one chunk to the next. Not a multiple of a power of two beyond the cache line, so that the first
    /// lines of chunks spread over the sets of the cache.
    pub stride: usize,
    /// Unused bytes before the buffer, so that a frame behind the default headroom starts a cache line.
    pub pad: usize,
    /// Bytes of the buffer.
    pub cap: u32,
}

/// Ordinary frames, and GSO super-packets or jumbo frames.
pub(crate) const CLASSES: [SizeClass; 2] = [
    SizeClass { stride: 128 + 64 + 2048, pad: 36, cap: 2048 },
    SizeClass { stride: 128 + 64 + 65536 + 512 + 64, pad: 36, cap: 65536 + 512 },
];

/// The header of the slab that a chunk lies in.
pub(crate) fn slab_of(meta: NonNull<Meta>) -> NonNull<SlabHeader> {
    meta.map_addr(|a| {
        // SAFETY: the chunk lies in a slab, which starts at a multiple of SLAB other than zero.
        unsafe { std::num::NonZeroUsize::new_unchecked(a.get() & !(SLAB - 1)) }
    })
    .cast()
}

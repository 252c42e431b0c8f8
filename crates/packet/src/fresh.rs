// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creation of packets.

use crate::DEFAULT_HEADROOM;
use crate::chunk::{CLASSES, ChunkPtr, UNSET};
use crate::packet::{MAX_LENGTH, Packet};
use crate::pool;

impl Packet {
    /// Creates a packet of `len` unspecified bytes with the default headroom. Returns `None` if [`MAX_LENGTH`]
    /// would be exceeded or the pool has reached its limit.
    #[inline(always)]
    pub fn new(len: usize) -> Option<Packet> {
        Packet::with_headroom(DEFAULT_HEADROOM, len)
    }

    /// Creates a packet of `len` bytes with `headroom` bytes of headroom.
    #[inline(always)]
    pub fn with_headroom(headroom: usize, len: usize) -> Option<Packet> {
        Packet::take(headroom, len, true)
    }

    /// Like [`Packet::with_headroom`], but also returns `None` if the pool's free list is empty, that is, if
    /// taking a buffer would need the slow path.
    #[inline(always)]
    pub fn at_hand(headroom: usize, len: usize) -> Option<Packet> {
        Packet::chunk(headroom, len, pool::at_hand)
    }

    #[inline(always)]
    pub(crate) fn take(headroom: usize, len: usize, strict: bool) -> Option<Packet> {
        Packet::chunk(headroom, len, |class| pool::take(class, strict))
    }

    /// Creates a packet in a chunk of the right size class.
    #[inline(always)]
    fn chunk(headroom: usize, len: usize, take: impl FnOnce(usize) -> Option<ChunkPtr>) -> Option<Packet> {
        let room = headroom.checked_add(len)?;
        let class = usize::from(room > CLASSES[0].cap as usize);
        if room > MAX_LENGTH {
            return None;
        }
        let mut p = Packet(take(class)?);
        // The casts are lossless, because room <= MAX_LENGTH.
        p.reset(headroom as u32, len as u32);
        Some(p)
    }

    /// Makes the packet a fresh one: `len` bytes after `headroom` bytes of its buffer, without annotations. They must fit
    /// into the buffer, which must not be shared.
    #[inline(always)]
    pub(crate) fn reset(&mut self, headroom: u32, len: u32) {
        let m = self.meta_mut();
        debug_assert!(headroom + len <= m.cap);
        m.data = headroom;
        m.floor = headroom;
        m.len = len;
        m.mac = UNSET;
        m.network = UNSET;
        m.transport = UNSET;
        m.flags = 0;
        m.turn = 0;
        m.hops = 0;
        // Compiles to three stores; `fill` would call memset.
        if let Some(hot) = m.anno.first_chunk_mut::<24>() {
            *hot = [0; 24];
        }
    }

    /// Creates a packet with a copy of `data` and the default headroom.
    #[inline]
    pub fn copy_of(data: &[u8]) -> Option<Packet> {
        Packet::copy_with_headroom(DEFAULT_HEADROOM, data)
    }

    /// Creates a packet with a copy of `data` and `headroom` bytes of headroom.
    #[inline]
    pub fn copy_with_headroom(headroom: usize, data: &[u8]) -> Option<Packet> {
        let mut p = Packet::with_headroom(headroom, data.len())?;
        p.data_mut().copy_from_slice(data);
        Some(p)
    }
}

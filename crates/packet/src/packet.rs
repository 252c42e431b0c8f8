// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handle: data, headroom, tailroom, headers, sharing.

use crate::DEFAULT_HEADROOM;
use crate::chunk::{CLASSES, COLD, ChunkPtr, Meta, OFFLOAD, SHARED, Shared, UNSET};
use crate::pool;
use std::fmt;
use std::sync::atomic::Ordering;

/// The most bytes that data and headroom of one packet can have together.
pub const MAX_LENGTH: usize = CLASSES[1].cap as usize;

/// A packet: owns its chunk, shares its buffer only with clones.
#[repr(transparent)]
pub struct Packet(pub(crate) ChunkPtr);

// SAFETY: a packet owns its chunk alone, and the buffer alone or together with clones that only read it (`data_mut` copies
// before it writes to a shared one); reference counts are atomic, and chunks go home to their pool through an atomic list.
unsafe impl Send for Packet {}
// SAFETY: through a shared reference a packet can only be read.
unsafe impl Sync for Packet {}

const _: () = assert!(size_of::<Option<Packet>>() == 8);

impl Packet {
    #[inline(always)]
    pub(crate) fn meta(&self) -> &Meta {
        // SAFETY: the handle owns its chunk, which lives in a slab of a pool that waits for it.
        unsafe { self.0.meta().as_ref() }
    }
    #[inline(always)]
    pub(crate) fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: as above, and nobody but the handle touches this part of its chunk: clones use what `shared` gives.
        unsafe { self.0.meta().as_mut() }
    }
    /// The count of handles on the buffer; none when this handle certainly is the only one.
    #[inline(always)]
    fn sharers(&self) -> Option<&Shared> {
        if self.meta().flags & SHARED == 0 {
            return None;
        }
        // SAFETY: while SHARED is set, the link is to the chunk that has the buffer, which lives until its count is zero, and
        // this handle is counted.
        unsafe { Some(self.0.shared().link()?.shared()) }
    }

    /// Bytes of data.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.meta().len as usize
    }
    /// Whether there is no data.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes before the data.
    pub fn headroom(&self) -> usize {
        self.meta().data as usize
    }
    /// Bytes behind the data.
    pub fn tailroom(&self) -> usize {
        let m = self.meta();
        (m.cap - m.data - m.len) as usize
    }

    /// The data.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        let m = self.meta();
        // SAFETY: INVARIANT data + len <= cap, kept by every function that changes them; slabs are zeroed when made, so
        // every byte is initialised; nobody writes to the buffer while this handle is borrowed: clones copy first.
        unsafe { std::slice::from_raw_parts(m.buf.add(m.data as usize).as_ptr(), m.len as usize) }
    }

    /// The data, to be changed; a buffer that clones share is copied first.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.unshare();
        let m = self.meta_mut();
        // SAFETY: as in `data`, and the buffer is this handle's alone after `unshare`.
        unsafe { std::slice::from_raw_parts_mut(m.buf.add(m.data as usize).as_ptr(), m.len as usize) }
    }

    /// From byte `at` of the buffer to the end of the data.
    #[inline(always)]
    fn tail(&self, at: u32) -> Option<&[u8]> {
        let m = self.meta();
        // None too when `at` is UNSET, which is larger than any buffer.
        let n = (m.data + m.len).checked_sub(at)?;
        // SAFETY: at + n = data + len <= cap; otherwise as in `data`.
        Some(unsafe { std::slice::from_raw_parts(m.buf.add(at as usize).as_ptr(), n as usize) })
    }
    #[inline(always)]
    fn tail_mut(&mut self, at: impl FnOnce(&Meta) -> u32) -> Option<&mut [u8]> {
        self.unshare();
        let m = self.meta_mut();
        let at = at(m);
        let n = (m.data + m.len).checked_sub(at)?;
        // SAFETY: as in `tail`, and the buffer is this handle's alone after `unshare`.
        Some(unsafe { std::slice::from_raw_parts_mut(m.buf.add(at as usize).as_ptr(), n as usize) })
    }
    /// From the network header to the end of the data; none when no header is marked.
    #[inline(always)]
    pub fn network(&self) -> Option<&[u8]> {
        self.tail(self.meta().network)
    }
    /// From the network header to the end of the data, to be changed.
    #[inline(always)]
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        self.tail_mut(|m| m.network)
    }
    /// From the transport header to the end of the data.
    #[inline]
    pub fn transport(&self) -> Option<&[u8]> {
        self.tail(self.meta().transport)
    }
    /// From the transport header to the end of the data, to be changed.
    #[inline]
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        self.tail_mut(|m| m.transport)
    }
    /// From the MAC header to the end of the data.
    #[inline]
    pub fn mac(&self) -> Option<&[u8]> {
        self.tail(self.meta().mac)
    }
    /// Whether there are 20 bytes at the network header.
    #[inline(always)]
    fn has_ip_header(&self) -> bool {
        let m = self.meta();
        // False too when the header is UNSET, which is larger than any buffer.
        u64::from(m.network) + 20 <= u64::from(m.data + m.len)
    }
    /// The first 20 bytes at the network header.
    #[inline(always)]
    pub fn ip_header(&self) -> Option<&[u8; 20]> {
        let m = self.meta();
        // SAFETY: network + 20 <= data + len <= cap; otherwise as in `data`.
        self.has_ip_header().then(|| unsafe { m.buf.add(m.network as usize).cast().as_ref() })
    }
    /// The first 20 bytes at the network header, to be changed; none also when the buffer may have to be copied for that.
    #[inline(always)]
    pub fn ip_header_in_place(&mut self) -> Option<&mut [u8; 20]> {
        let m = self.meta();
        let possible = m.flags & SHARED == 0 && self.has_ip_header();
        // SAFETY: network + 20 <= data + len <= cap, and a buffer that is not shared is this handle's alone.
        possible.then(|| unsafe { m.buf.add(m.network as usize).cast().as_mut() })
    }
    /// The first 20 bytes at the network header, to be changed.
    #[inline(always)]
    pub fn ip_header_mut(&mut self) -> Option<&mut [u8; 20]> {
        self.unshare();
        let m = self.meta();
        // SAFETY: network + 20 <= data + len <= cap, and the buffer is this handle's alone after `unshare`.
        self.has_ip_header().then(|| unsafe { m.buf.add(m.network as usize).cast().as_mut() })
    }

    /// Takes `n` bytes off the front; false, and nothing done, when there are fewer.
    #[inline(always)]
    pub fn strip(&mut self, n: usize) -> bool {
        let m = self.meta_mut();
        if n > m.len as usize {
            return false;
        }
        m.data += n as u32;
        m.len -= n as u32;
        true
    }

    /// Puts the `n` bytes before the data back on its front: what was stripped, zeros where nothing was. Moves the data
    /// when the headroom is too small; false when it cannot grow so long.
    #[inline]
    pub fn unstrip(&mut self, n: usize) -> bool {
        if n > self.headroom() && !self.regrow(n) {
            return false;
        }
        if self.meta().data as usize - n < self.meta().floor as usize {
            self.unshare();
        }
        let m = self.meta_mut();
        m.data -= n as u32;
        m.len += n as u32;
        if m.data < m.floor {
            // SAFETY: data <= floor <= cap, and the buffer is this handle's alone.
            unsafe { m.buf.add(m.data as usize).write_bytes(0, (m.floor - m.data) as usize) }
            m.floor = m.data;
        }
        true
    }

    /// Adds a header of `N` bytes before the data for the caller to fill in whole. None when the packet cannot grow so
    /// long.
    #[inline(always)]
    pub fn push_header<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if !self.has_room::<N>() && !self.make_room(N) {
            return None;
        }
        // SAFETY: just seen to.
        Some(unsafe { self.grow_front() })
    }

    /// Like [`Packet::push_header`], but nothing is moved: none when that would be needed.
    #[inline(always)]
    pub fn push_header_in_place<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if !self.has_room::<N>() {
            return None;
        }
        // SAFETY: just seen to.
        Some(unsafe { self.grow_front() })
    }

    /// Whether a header of `N` bytes finds room before the data, in a buffer that certainly is this handle's alone.
    #[inline(always)]
    fn has_room<const N: usize>(&self) -> bool {
        let m = self.meta();
        N <= m.data as usize && m.flags & SHARED == 0
    }

    /// Makes room for `n` bytes before the data, in a buffer of this handle alone.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, n: usize) -> bool {
        if n > self.headroom() && !self.regrow(n) {
            return false;
        }
        self.unshare();
        true
    }

    /// Lets the data begin `N` bytes further to the front.
    ///
    /// # Safety
    /// There are `N` bytes before the data, and the buffer is this handle's alone.
    #[inline(always)]
    unsafe fn grow_front<const N: usize>(&mut self) -> &mut [u8; N] {
        let m = self.meta_mut();
        m.data -= N as u32;
        m.len += N as u32;
        m.floor = m.floor.min(m.data);
        // SAFETY: the N bytes from `data` on were before the data, so inside the buffer; slabs are zeroed when made, so every
        // byte is initialised; as the caller promises, nobody else has the buffer.
        unsafe { m.buf.add(m.data as usize).cast::<[u8; N]>().as_mut() }
    }

    /// Shortens the data by `n` bytes at its end; false, and nothing done, when there are fewer.
    #[inline]
    pub fn take_end(&mut self, n: usize) -> bool {
        let m = self.meta_mut();
        if n > m.len as usize {
            return false;
        }
        m.len -= n as u32;
        true
    }

    /// Shortens the data to `n` bytes if it is longer.
    #[inline(always)]
    pub fn truncate(&mut self, n: usize) {
        let m = self.meta_mut();
        if n < m.len as usize {
            m.len = n as u32;
        }
    }

    /// Adds `n` zero bytes at the end; false when the packet cannot grow so long.
    pub fn put(&mut self, n: usize) -> bool {
        if n > self.tailroom() && !self.rebuffer(self.headroom(), n) {
            return false;
        }
        self.unshare();
        let old = self.len();
        self.meta_mut().len += n as u32;
        if let Some(tail) = self.data_mut().get_mut(old..) {
            tail.fill(0);
        }
        true
    }

    /// Moves the data so that there are `n` bytes before it.
    #[cold]
    fn regrow(&mut self, n: usize) -> bool {
        self.rebuffer(n.saturating_add(DEFAULT_HEADROOM), 0)
    }

    /// Copies into a fresh chunk with `headroom` bytes before the data and at least `tailroom` behind it.
    #[cold]
    #[inline(never)]
    fn rebuffer(&mut self, headroom: usize, tailroom: usize) -> bool {
        let room = self.len().saturating_add(tailroom);
        let Some(mut new) = Packet::take(headroom, room, false) else { return false };
        new.meta_mut().len = self.meta().len;
        // What was stripped stays in reach of `unstrip` as far as there is room for it.
        let m = self.meta();
        let keep = (m.data - m.floor.min(m.data)).min(headroom as u32);
        let shift = headroom as i64 - i64::from(m.data);
        let moved = |at: u32| {
            if at == UNSET {
                return UNSET;
            }
            u32::try_from(i64::from(at) + shift).unwrap_or(UNSET)
        };
        let (mac, network, transport, hops) = (moved(m.mac), moved(m.network), moved(m.transport), m.hops);
        let src = m.data - keep;
        let n = (keep + m.len) as usize;
        let n_meta = new.meta_mut();
        n_meta.floor = headroom as u32 - keep;
        // SAFETY: the source lies inside the old buffer (src + n = data + len <= cap), the destination inside the new one
        // (floor + n = headroom + len <= cap); the two buffers are different chunks.
        unsafe {
            let to = n_meta.buf.add(n_meta.floor as usize);
            to.copy_from_nonoverlapping(m.buf.add(src as usize), n);
        }
        (n_meta.mac, n_meta.network, n_meta.transport, n_meta.hops) = (mac, network, transport, hops);
        if m.flags & OFFLOAD != 0 {
            n_meta.flags |= OFFLOAD;
            n_meta.offload_start = moved(m.offload_start);
            n_meta.copy_offload(m);
        }
        new.copy_annotations(self);
        *self = new;
        true
    }

    /// Makes the buffer this handle's alone.
    #[inline(always)]
    fn unshare(&mut self) {
        if self.meta().flags & SHARED != 0 {
            self.unshare_slowly();
        }
    }
    #[cold]
    #[inline(never)]
    fn unshare_slowly(&mut self) {
        if !self.is_shared() {
            return;
        }
        let tail = self.tailroom();
        // Growing beyond the limit is allowed here: the number of clones is bounded by the limit already.
        if !self.rebuffer(self.headroom(), tail) {
            // Unreachable: the new chunk has the size of the old one. An empty packet is the harmless answer.
            self.meta_mut().len = 0;
        }
    }
    /// Whether another handle is on the same buffer.
    pub fn is_shared(&self) -> bool {
        // Acquire: what a handle that is gone did with the buffer happened before.
        self.sharers().is_some_and(|s| s.refs.load(Ordering::Acquire) > 1)
    }

    /// A second handle on the same buffer, with the same annotations. None when the pool has reached its limit.
    pub fn share(&mut self) -> Option<Packet> {
        let mut other = Packet(pool::take(0, true)?);
        // SAFETY: both handles own their chunks, so the pools live.
        let (mine, others) = unsafe { (self.0.shared(), other.0.shared()) };
        let owner = if self.meta().flags & SHARED == 0 {
            mine.set_link(Some(self.0));
            mine.refs.store(1, Ordering::Relaxed);
            self.meta_mut().flags |= SHARED;
            self.0
        } else {
            mine.link()?
        };
        // SAFETY: the owner lives until its count is zero, and this handle is counted.
        unsafe { owner.shared() }.refs.fetch_add(1, Ordering::Relaxed);
        others.set_link(Some(owner));
        let m = self.meta();
        let o = other.meta_mut();
        (o.data, o.len, o.floor) = (m.data, m.len, m.floor);
        (o.mac, o.network, o.transport) = (m.mac, m.network, m.transport);
        (o.kind, o.flags, o.hops) = (m.kind, m.flags, m.hops);
        o.offload_start = m.offload_start;
        o.copy_offload(m);
        o.anno = m.anno;
        o.timestamp = m.timestamp;
        (o.buf, o.cap) = (m.buf, m.cap);
        Some(other)
    }
}

impl Drop for Packet {
    #[inline(always)]
    fn drop(&mut self) {
        if self.meta().flags & SHARED != 0 {
            drop_shared(self.0);
        } else {
            // SAFETY: the handle is going away and nobody else has the buffer.
            unsafe { pool::give(self.0) }
        }
    }
}

/// A clone's chunk is free at once, with its own buffer set again; the owner's when the last handle on its buffer goes:
/// until then an owner without a handle is a zombie that nobody but the count knows.
#[cold]
#[inline(never)]
fn drop_shared(chunk: ChunkPtr) {
    // SAFETY: the handle that is being dropped owned the chunk, so its pool lives.
    let Some(owner) = (unsafe { chunk.shared() }).link() else { return };
    // SAFETY: the handle that is being dropped was the only one on this chunk's metadata.
    let m = unsafe { chunk.meta().as_mut() };
    m.flags = 0;
    if owner != chunk {
        // A clone's chunk is of class 0, see `share`.
        let class = &CLASSES[0];
        m.cap = class.cap;
        // SAFETY: as just said.
        m.buf = unsafe { chunk.buffer(class) };
        // SAFETY: nobody else has a handle on this chunk.
        unsafe { pool::give(chunk) }
    } else {
        pool::count_elsewhere(1);
    }
    // SAFETY: the owner lives until its count reaches zero, and the dropped handle was counted.
    if unsafe { owner.shared() }.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
        pool::count_elsewhere(-1);
        // SAFETY: that was the last handle on the owner's buffer, and the owner's own handle is among those gone.
        unsafe { pool::give(owner) }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet({} bytes", self.len())?;
        if self.meta().flags & COLD != 0 && self.timestamp() != 0 {
            write!(f, " at {} ns", self.timestamp())?;
        }
        f.write_str(")")
    }
}

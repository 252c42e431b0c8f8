// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet handle: data, headroom, tailroom, headers, buffer sharing.

use crate::DEFAULT_HEADROOM;
use crate::chunk::{CLASSES, COLD, ChunkPtr, Meta, OFFLOAD, SHARED, Shared, TRACED, UNSET};
use crate::pool;
use std::fmt;
use std::sync::atomic::Ordering;

/// The maximum total of data and headroom of a packet.
pub const MAX_LENGTH: usize = CLASSES[1].cap as usize;

/// A packet. It owns its chunk, and shares its buffer only with clones.
#[repr(transparent)]
pub struct Packet(pub(crate) ChunkPtr);

// SAFETY: a packet is the only owner of its chunk. Its buffer may be shared with clones, which only read it
// (`data_mut` copies a shared buffer before writing). Reference counts are atomic, and chunks return to their
// pool through an atomic list.
unsafe impl Send for Packet {}
// SAFETY: a shared reference to a packet only permits reading.
unsafe impl Sync for Packet {}

const _: () = assert!(size_of::<Option<Packet>>() == 8);

impl Packet {
    #[inline(always)]
    pub(crate) fn meta(&self) -> &Meta {
        // SAFETY: the handle owns its chunk, which is in a slab of a pool that outlives the chunk.
        unsafe { self.0.meta().as_ref() }
    }
    #[inline(always)]
    pub(crate) fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: as in `meta`, and only the handle accesses this part of its chunk. Clones use the part that `shared`
        // returns.
        unsafe { self.0.meta().as_mut() }
    }
    /// The [`Shared`] part of the chunk that owns the buffer; it holds the reference count. `None` if no
    /// other handle can be using the buffer.
    #[inline(always)]
    fn sharers(&self) -> Option<&Shared> {
        if self.meta().flags & SHARED == 0 {
            return None;
        }
        // SAFETY: while SHARED is set, the link refers to the chunk that owns the buffer. That chunk lives
        // until its count is zero, and the count includes this handle.
        unsafe { Some(self.0.shared().link()?.shared()) }
    }

    /// The length of the data.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.meta().len as usize
    }
    /// Whether there is no data.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The number of bytes before the data.
    pub fn headroom(&self) -> usize {
        self.meta().data as usize
    }
    /// The number of bytes after the data.
    pub fn tailroom(&self) -> usize {
        let m = self.meta();
        (m.cap - m.data - m.len) as usize
    }

    /// The data.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        let m = self.meta();
        // SAFETY: INVARIANT data + len <= cap, maintained by every function that changes one of the three. Slabs are
        // zeroed when allocated, so every byte is initialised. No handle writes to the buffer while this handle is
        // borrowed, because clones copy the buffer before they write.
        unsafe { std::slice::from_raw_parts(m.buf.add(m.data as usize).as_ptr(), m.len as usize) }
    }

    /// The data, mutable. A buffer that clones share is copied first.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.unshare();
        let m = self.meta_mut();
        // SAFETY: as in `data`, and after `unshare` no other handle uses the buffer.
        unsafe { std::slice::from_raw_parts_mut(m.buf.add(m.data as usize).as_ptr(), m.len as usize) }
    }

    /// The bytes from buffer offset `at` to the end of the data.
    #[inline(always)]
    fn tail(&self, at: u32) -> Option<&[u8]> {
        let m = self.meta();
        // Also `None` if `at` is UNSET, which is larger than any buffer.
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
        // SAFETY: as in `tail`, and after `unshare` no other handle uses the buffer.
        Some(unsafe { std::slice::from_raw_parts_mut(m.buf.add(at as usize).as_ptr(), n as usize) })
    }
    /// The bytes from the network header to the end of the data; `None` if the header is not set.
    #[inline(always)]
    pub fn network(&self) -> Option<&[u8]> {
        self.tail(self.meta().network)
    }
    /// The bytes from the network header to the end of the data, mutable.
    #[inline(always)]
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        self.tail_mut(|m| m.network)
    }
    /// The bytes from the transport header to the end of the data.
    #[inline]
    pub fn transport(&self) -> Option<&[u8]> {
        self.tail(self.meta().transport)
    }
    /// The bytes from the transport header to the end of the data, mutable.
    #[inline]
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        self.tail_mut(|m| m.transport)
    }
    /// The bytes from the MAC header to the end of the data.
    #[inline]
    pub fn mac(&self) -> Option<&[u8]> {
        self.tail(self.meta().mac)
    }
    /// Whether the data has at least 20 bytes at the network header.
    #[inline(always)]
    fn has_ip_header(&self) -> bool {
        let m = self.meta();
        // Also false if the header is UNSET, which is larger than any buffer.
        u64::from(m.network) + 20 <= u64::from(m.data + m.len)
    }
    /// The first 20 bytes at the network header.
    #[inline(always)]
    pub fn ip_header(&self) -> Option<&[u8; 20]> {
        let m = self.meta();
        // SAFETY: network + 20 <= data + len <= cap; otherwise as in `data`.
        self.has_ip_header().then(|| unsafe { m.buf.add(m.network as usize).cast().as_ref() })
    }
    /// The first 20 bytes at the network header, mutable. Also `None` if the buffer may be shared and would
    /// have to be copied.
    #[inline(always)]
    pub fn ip_header_in_place(&mut self) -> Option<&mut [u8; 20]> {
        let m = self.meta();
        let possible = m.flags & SHARED == 0 && self.has_ip_header();
        // SAFETY: network + 20 <= data + len <= cap, and only this handle uses a buffer that is not shared.
        possible.then(|| unsafe { m.buf.add(m.network as usize).cast().as_mut() })
    }
    /// The first 20 bytes at the network header, mutable.
    #[inline(always)]
    pub fn ip_header_mut(&mut self) -> Option<&mut [u8; 20]> {
        self.unshare();
        let m = self.meta();
        // SAFETY: network + 20 <= data + len <= cap, and after `unshare` no other handle uses the buffer.
        self.has_ip_header().then(|| unsafe { m.buf.add(m.network as usize).cast().as_mut() })
    }

    /// Removes `n` bytes from the front. Returns false without any change if there are fewer.
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

    /// Extends the data by `n` bytes at its front. Stripped bytes reappear there, and other bytes are zero. Moves the
    /// data if the headroom is too small. Returns false if the packet would become too long.
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
            // SAFETY: data <= floor <= cap, and no other handle uses the buffer.
            unsafe { m.buf.add(m.data as usize).write_bytes(0, (m.floor - m.data) as usize) }
            m.floor = m.data;
        }
        true
    }

    /// Adds a header of `N` bytes before the data; the caller must fill in all of it. Returns `None` if the
    /// packet would become too long.
    #[inline(always)]
    pub fn push_header<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if !self.has_room::<N>() && !self.make_room(N) {
            return None;
        }
        // SAFETY: `has_room` or `make_room` has ensured the headroom, and that the buffer is not shared.
        Some(unsafe { self.grow_front() })
    }

    /// Like [`Packet::push_header`], but returns `None` if the data would have to be moved.
    #[inline(always)]
    pub fn push_header_in_place<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if !self.has_room::<N>() {
            return None;
        }
        // SAFETY: `has_room` has checked the headroom, and that the buffer is not shared.
        Some(unsafe { self.grow_front() })
    }

    /// Whether a header of `N` bytes fits before the data without a copy: the headroom suffices, and the buffer is
    /// known to be unshared.
    #[inline(always)]
    fn has_room<const N: usize>(&self) -> bool {
        let m = self.meta();
        N <= m.data as usize && m.flags & SHARED == 0
    }

    /// Ensures that there are `n` bytes before the data, and that no other handle uses the buffer. Returns false if the
    /// packet would become too long.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, n: usize) -> bool {
        if n > self.headroom() && !self.regrow(n) {
            return false;
        }
        self.unshare();
        true
    }

    /// Extends the data by `N` bytes at its front.
    ///
    /// # Safety
    /// There are `N` bytes before the data, and no other handle uses the buffer.
    #[inline(always)]
    unsafe fn grow_front<const N: usize>(&mut self) -> &mut [u8; N] {
        let m = self.meta_mut();
        m.data -= N as u32;
        m.len += N as u32;
        m.floor = m.floor.min(m.data);
        // SAFETY: `data` has just moved down by N, into the N bytes that the caller guarantees before the data. So
        // these bytes are inside the buffer. Slabs are zeroed when allocated, so every byte is initialised. The caller
        // guarantees that no other handle uses the buffer.
        unsafe { m.buf.add(m.data as usize).cast::<[u8; N]>().as_mut() }
    }

    /// Removes `n` bytes from the end. Returns false without any change if there are fewer.
    #[inline]
    pub fn take_end(&mut self, n: usize) -> bool {
        let m = self.meta_mut();
        if n > m.len as usize {
            return false;
        }
        m.len -= n as u32;
        true
    }

    /// Truncates the data to `n` bytes if it is longer.
    #[inline(always)]
    pub fn truncate(&mut self, n: usize) {
        let m = self.meta_mut();
        if n < m.len as usize {
            m.len = n as u32;
        }
    }

    /// Appends `n` zero bytes. Returns false if the packet would become too long.
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

    /// Moves the packet to a new chunk, with at least `n` bytes before the data.
    #[cold]
    fn regrow(&mut self, n: usize) -> bool {
        self.rebuffer(n.saturating_add(DEFAULT_HEADROOM), 0)
    }

    /// Copies the packet into a new chunk with `headroom` bytes before the data and at least `tailroom` after
    /// it.
    #[cold]
    #[inline(never)]
    fn rebuffer(&mut self, headroom: usize, tailroom: usize) -> bool {
        let room = self.len().saturating_add(tailroom);
        let Some(mut new) = Packet::take(headroom, room, false) else { return false };
        new.meta_mut().len = self.meta().len;
        // Stripped bytes remain available to `unstrip`, as far as the headroom permits.
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
        // SAFETY: the source is inside the old buffer (src + n = data + len <= cap), and the destination inside
        // the new one (floor + n = headroom + len <= cap). The buffers belong to different chunks.
        unsafe {
            let to = n_meta.buf.add(n_meta.floor as usize);
            to.copy_from_nonoverlapping(m.buf.add(src as usize), n);
        }
        (n_meta.mac, n_meta.network, n_meta.transport, n_meta.hops) = (mac, network, transport, hops);
        if m.flags & (OFFLOAD | TRACED) != 0 {
            n_meta.flags |= m.flags & (OFFLOAD | TRACED);
            n_meta.offload_start = moved(m.offload_start);
            n_meta.copy_offload(m);
        }
        new.copy_annotations(self);
        *self = new;
        true
    }

    /// Ensures that no other handle uses the buffer.
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
        // This copy gets a chunk even if the pool has reached its limit. There are never more such copies than clones,
        // and the limit bounds the number of clones.
        if !self.rebuffer(self.headroom(), tail) {
            // Unreachable, because the new chunk has the size of the old one. An empty packet is a safe result.
            self.meta_mut().len = 0;
        }
    }
    /// Whether another handle uses the same buffer.
    pub fn is_shared(&self) -> bool {
        // Acquire: synchronises with the accesses of handles that have been dropped.
        self.sharers().is_some_and(|s| s.refs.load(Ordering::Acquire) > 1)
    }
}

impl Packet {
    /// Drops packets. Costs less than to drop them one by one. Returns the number of packets that they count as.
    pub(crate) fn drop_all(packets: &mut Vec<Packet>) -> u64 {
        let mut count = packets.len() as u64;
        let mut back = pool::GiveBack::new();
        for packet in packets.drain(..) {
            let flags = packet.meta().flags;
            if flags & (SHARED | OFFLOAD) != 0 {
                std::hint::cold_path();
                count += packet.segments().0 - 1;
            }
            if flags & SHARED != 0 {
                continue;
            }
            let chunk = std::mem::ManuallyDrop::new(packet).0;
            // SAFETY: the handle is gone, and no other handle uses the buffer.
            unsafe { back.give(chunk) }
        }
        count
    }
}

impl Drop for Packet {
    #[inline(always)]
    fn drop(&mut self) {
        if self.meta().flags & SHARED != 0 {
            drop_shared(self.0);
        } else {
            // SAFETY: the handle is being dropped, and no other handle uses the buffer.
            unsafe { pool::give(self.0) }
        }
    }
}

/// Drops a handle on a shared buffer. If it is the handle of a clone, the clone's chunk gets its own buffer back and is
/// freed immediately. The owner (the chunk that the shared buffer belongs to) is freed when the last handle on the
/// buffer is dropped. If the owner's own handle is dropped earlier, only the reference count keeps the owner alive.
#[cold]
#[inline(never)]
fn drop_shared(chunk: ChunkPtr) {
    // SAFETY: the handle being dropped owned the chunk, so its pool is alive.
    let Some(owner) = (unsafe { chunk.shared() }).link() else { return };
    // SAFETY: the handle being dropped was the only one with access to this chunk's metadata.
    let m = unsafe { chunk.meta().as_mut() };
    m.flags = 0;
    let is_clone = owner != chunk;
    // SAFETY: the owner lives until its count reaches zero, and the count includes the dropped handle.
    let refs = &unsafe { owner.shared() }.refs;
    // If the count is 1, no other handle is left that could change it, so the slower atomic subtraction is not needed.
    let is_last = refs.load(Ordering::Acquire) == 1 || refs.fetch_sub(1, Ordering::AcqRel) == 1;
    if is_clone {
        // A clone's chunk is always of class 0, see `share`.
        let class = &CLASSES[0];
        m.cap = class.cap;
        // SAFETY: the chunk has size class 0, and `class` is that size class.
        m.buf = unsafe { chunk.buffer(class) };
        // SAFETY: no handle on this chunk is left.
        unsafe { pool::give(chunk) }
    }
    // A clone has returned its chunk, and the last handle returns that of the owner.
    if is_clone == is_last {
        pool::count_elsewhere(if is_last { -1 } else { 1 });
    }
    if is_last {
        // SAFETY: no handle is left: this was the last of the packets that share the owner's buffer, and the packet
        // that owned the buffer was dropped before.
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

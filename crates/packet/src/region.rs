// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions: buffers of packets in one piece of memory, which a device reads and writes without copies.
//!
//! The UMEM of AF_XDP sockets is such memory. Either a [`Packet`] or a device owns each buffer that is in use. A
//! [`Holder`] gives buffers to one device, and takes them back. All packets of a region are ordinary packets: any thread may own and drop them, and they outlive
//! the region.

use crate::chunk::{CLASSES, ChunkPtr, HEAD, SHARED, SLAB, SizeClass};
use crate::packet::Packet;
use crate::pool::{self, Inner, Memory};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The geometry of a region's chunks.
const SIZE: &SizeClass = &CLASSES[0];

/// The size of a region's buffers in bytes.
pub const BUFFER: usize = SIZE.cap as usize;

/// Memory with buffers of [`BUFFER`] bytes, see the [module](self).
pub struct Region {
    /// The pool that the chunks return to. Its thread-local part is not used: `free` takes its place.
    pool: NonNull<Inner>,
    base: NonNull<u8>,
    len: usize,
    free: Mutex<Free>,
    /// One slot for each chunk.
    slots: Box<[Slot]>,
    /// The number of holders so far.
    holders: AtomicU32,
}

/// The chunks that nobody uses.
struct Free {
    chunks: Vec<ChunkPtr>,
    /// The number of chunks taken from the pool's list of returned chunks so far.
    drained: usize,
}

/// Who has the buffer of a chunk: a packet (`holder` is 0), or a holder.
#[derive(Default)]
struct Slot {
    /// While a holder has the buffer: the chunk of the packet, which may be another one if the packet is a clone.
    chunk: AtomicPtr<()>,
    holder: AtomicU32,
}

// SAFETY: the mutex protects the free chunks, which have no handles. The slots are atomic: only the packet that owns a
// buffer, or the one holder with the number in the slot, changes a slot. The pool's shared part is atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Creates a region with at least `chunks` buffers.
    ///
    /// # Errors
    /// When the system has no memory.
    pub fn new(chunks: usize) -> io::Result<Region> {
        let slabs = chunks.div_ceil(SIZE.chunks()).max(1);
        let len = slabs.checked_mul(SLAB).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Memory::new(len)?;
        let base = memory.start();
        let pool = pool::of_region(memory);
        let mut free = Vec::with_capacity(slabs.saturating_mul(SIZE.chunks()));
        for slab in 0..slabs {
            // SAFETY: the memory has `slabs` slabs, each aligned to its size, and nobody else uses them yet.
            unsafe { pool::lay_out(base.add(slab * SLAB), pool, 0, |chunk| free.push(chunk)) }
        }
        let slots = free.iter().map(|_| Slot::default()).collect();
        Ok(Region {
            pool,
            base,
            len,
            free: Mutex::new(Free { chunks: free, drained: 0 }),
            slots,
            holders: AtomicU32::new(0),
        })
    }

    /// The address of the memory. Offsets of buffers count from it.
    pub fn address(&self) -> NonNull<u8> {
        self.base
    }
    /// The size of the memory in bytes.
    pub fn size(&self) -> usize {
        self.len
    }
    /// The number of buffers.
    pub fn buffers(&self) -> usize {
        self.slots.len()
    }

    /// Asks the kernel to back each slab by one huge page, so that each buffer is physically contiguous. Returns
    /// whether it did.
    pub fn make_contiguous(&self) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            /// Linux 6.1.
            const MADV_COLLAPSE: libc::c_int = 25;
            // SAFETY: the advice concerns the memory of this region and does not change its contents.
            unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, MADV_COLLAPSE) == 0 }
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        false
    }

    /// Creates a packet of `len` unspecified bytes with `headroom` bytes of headroom in this region. Returns `None` if
    /// no buffer is free, or the packet does not fit into one.
    pub fn packet(&self, headroom: usize, len: usize) -> Option<Packet> {
        if headroom.saturating_add(len) > BUFFER {
            return None;
        }
        let mut p = Packet(self.with_free(Free::take)?);
        p.reset(headroom as u32, len as u32);
        Some(p)
    }

    /// Creates a holder, for one device.
    pub fn holder(self: &Arc<Region>) -> Holder {
        let number = self.holders.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        Holder { region: self.clone(), number }
    }

    fn with_free<R>(&self, f: impl FnOnce(&mut Free, NonNull<Inner>) -> R) -> R {
        f(&mut self.free.lock().unwrap_or_else(PoisonError::into_inner), self.pool)
    }

    /// The slot of the chunk whose buffer contains the byte at this offset.
    #[inline(always)]
    fn slot(&self, at: usize) -> Option<&Slot> {
        let in_slab = (at % SLAB).checked_sub(HEAD)? / SIZE.stride;
        self.slots.get(at / SLAB * SIZE.chunks() + in_slab).filter(|_| in_slab < SIZE.chunks())
    }
    #[inline(always)]
    fn offset(&self, of: NonNull<u8>) -> Option<usize> {
        of.addr().get().checked_sub(self.base.addr().get()).filter(|at| *at < self.len)
    }
}

impl Free {
    /// Takes a free chunk; `None` if there is none.
    #[inline(always)]
    fn take(&mut self, pool: NonNull<Inner>) -> Option<ChunkPtr> {
        match self.chunks.pop() {
            Some(chunk) => Some(chunk),
            None => self.collect(pool),
        }
    }

    /// Collects the returned chunks, and takes one of them.
    #[cold]
    #[inline(never)]
    fn collect(&mut self, pool: NonNull<Inner>) -> Option<ChunkPtr> {
        // SAFETY: the pool lives at least as long as its region, which calls this function.
        self.drained += unsafe { pool::collect(pool, |chunk| self.chunks.push(chunk)) };
        self.chunks.pop()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Every holder has a reference to its region, so no holder is left. Whoever passed buffers to a device has
        // closed the device.
        for slot in &self.slots {
            if slot.holder.swap(0, Ordering::Relaxed) != 0
                && let Some(chunk) = ChunkPtr::from_address(slot.chunk.load(Ordering::Relaxed))
            {
                drop(Packet(chunk));
            }
        }
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        let missing = free.drained + self.slots.len() - free.chunks.len();
        // SAFETY: the pool is alive, because this region has not released it before. No free chunk is used from now on.
        unsafe { pool::release(self.pool, missing) }
    }
}

/// Tracks the buffers that one device owns, and the packets they belong to.
///
/// Dropping a holder leaves the buffers with the device until the region is dropped. Call [`Holder::recall`] before if
/// the device has stopped.
pub struct Holder {
    region: Arc<Region>,
    number: u32,
}

impl Holder {
    /// The region.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Takes up to `n` free buffers for the device to fill, and calls `each` with the offset of each. Returns the number
    /// of buffers.
    pub fn fill(&mut self, n: usize, mut each: impl FnMut(u64)) -> usize {
        let region = &*self.region;
        region.with_free(|free, pool| {
            for i in 0..n {
                let Some(chunk) = free.take(pool) else { return i };
                // SAFETY: the chunk is in a slab of this size class.
                let buffer = unsafe { chunk.buffer(SIZE) };
                let Some((at, slot)) = region.offset(buffer).and_then(|at| Some((at, region.slot(at)?)))
                else {
                    return i;
                };
                slot.chunk.store(chunk.address(), Ordering::Relaxed);
                slot.holder.store(self.number, Ordering::Relaxed);
                each(at as u64);
            }
            n
        })
    }

    /// Gives the data of a packet to the device to read. Returns the offset of the data.
    ///
    /// # Errors
    /// Returns the packet if its buffer is not in the region, or is shared with another packet.
    #[inline]
    pub fn lend(&mut self, p: Packet) -> Result<u64, Packet> {
        let data = NonNull::from(p.data()).cast::<u8>();
        let region = &*self.region;
        let slot = region.offset(data).and_then(|at| Some((at, region.slot(at)?)));
        match slot {
            Some((at, slot)) if !p.is_shared() => {
                slot.chunk.store(p.0.address(), Ordering::Relaxed);
                slot.holder.store(self.number, Ordering::Relaxed);
                std::mem::forget(p);
                Ok(at as u64)
            }
            _ => Err(p),
        }
    }

    /// Takes the packet back whose buffer contains the byte at this offset. `None` if the device does not have that
    /// buffer.
    #[inline(always)]
    fn take(&mut self, at: u64) -> Option<Packet> {
        let slot = self.region.slot(usize::try_from(at).ok()?)?;
        // No other holder has this number, so nobody changes the slot at the same time.
        if slot.holder.load(Ordering::Relaxed) != self.number {
            return None;
        }
        let chunk = ChunkPtr::from_address(slot.chunk.load(Ordering::Relaxed))?;
        slot.holder.store(0, Ordering::Relaxed);
        Some(Packet(chunk))
    }

    /// Takes back a buffer that the device has filled. `at` is the offset that [`Holder::fill`] gave, `headroom` the
    /// number of bytes in the buffer before the data, `len` the length of the data. `None` if the device does not have
    /// that buffer, or the data are not inside it.
    ///
    /// # Safety
    /// The device no longer accesses the buffer.
    #[inline]
    pub unsafe fn receive(&mut self, at: u64, headroom: usize, len: usize) -> Option<Packet> {
        let mut p = self.take(at)?;
        if headroom.saturating_add(len) > BUFFER {
            return None;
        }
        p.reset(headroom as u32, len as u32);
        Some(p)
    }

    /// Drops the packets whose data the device has read. `offsets` are those that [`Holder::lend`] returned. Returns the
    /// number of packets.
    ///
    /// # Safety
    /// The device no longer accesses the buffers.
    pub unsafe fn finish(&mut self, offsets: impl Iterator<Item = u64>) -> usize {
        let region = self.region.clone();
        // Dropping a packet does not use the lock, so it may be held here.
        region.with_free(|free, pool| {
            let mut n = 0;
            for at in offsets {
                let Some(p) = self.take(at) else { continue };
                n += 1;
                let chunk = p.0;
                // SAFETY: the packet owns its chunk.
                let mine = unsafe { chunk.slab().as_ref() }.pool == pool;
                if mine && p.meta().flags & SHARED == 0 {
                    std::mem::forget(p);
                    free.chunks.push(chunk);
                }
            }
            n
        })
    }

    /// Drops all packets whose buffers the device has. Returns their number.
    ///
    /// # Safety
    /// The device has stopped: it no longer accesses any buffer.
    pub unsafe fn recall(&mut self) -> usize {
        let mut n = 0;
        for slot in &self.region.slots {
            if slot.holder.load(Ordering::Relaxed) == self.number {
                let chunk = ChunkPtr::from_address(slot.chunk.load(Ordering::Relaxed));
                slot.holder.store(0, Ordering::Relaxed);
                drop(chunk.map(Packet));
                n += 1;
            }
        }
        n
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Region({} buffers)", self.buffers())
    }
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holder {} of {:?}", self.number, self.region)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn region() -> Arc<Region> {
        Arc::new(Region::new(16).unwrap())
    }

    /// Writes bytes to a buffer of the region, as a device does.
    fn write(region: &Region, at: u64, bytes: &[u8]) {
        assert!(at as usize + bytes.len() <= region.size());
        // SAFETY: inside the region's memory, in a buffer that a holder has.
        unsafe {
            let to = region.address().add(at as usize);
            to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
    }

    #[test]
    fn a_device_fills_a_buffer_and_reads_it_again() {
        let region = region();
        let (mut from, mut to) = (region.holder(), region.holder());
        let mut offsets = Vec::new();
        assert_eq!(from.fill(3, |at| offsets.push(at)), 3);
        let at = offsets[1];
        write(&region, at + 300, b"frame");
        // SAFETY: there is no device.
        let mut p = unsafe { from.receive(at, 300, 5) }.unwrap();
        assert_eq!((p.data(), p.headroom(), p.tailroom()), (&b"frame"[..], 300, BUFFER - 305));
        // The buffer is not with the device any more, and was never with the other one.
        // SAFETY: as above.
        assert!(unsafe { from.receive(at, 300, 5) }.is_none() && unsafe { to.receive(at, 300, 5) }.is_none());
        p.push_header::<2>().unwrap().copy_from_slice(b"a ");
        let sent = to.lend(p).unwrap();
        assert_eq!(sent, at + 298);
        // SAFETY: inside the region's memory; a device would read the same bytes.
        let seen = unsafe { std::slice::from_raw_parts(region.address().as_ptr().add(sent as usize), 7) };
        assert_eq!(seen, b"a frame");
        // SAFETY: there is no device.
        let finished = unsafe { to.finish([sent, sent, offsets[0], u64::MAX].into_iter()) };
        assert_eq!(finished, 1);
        // The first packets of the next fill use the buffer again.
        let mut again = Vec::new();
        from.fill(1, |at| again.push(at));
        assert_eq!(again, [at]);
        // SAFETY: there is no device.
        assert_eq!((unsafe { from.recall() }, unsafe { from.recall() }), (3, 0));
    }

    #[test]
    fn data_outside_of_the_buffer_are_refused() {
        let region = region();
        let mut holder = region.holder();
        let mut at = 0;
        holder.fill(1, |a| at = a);
        // SAFETY: there is no device.
        assert!(unsafe { holder.receive(at, 2000, 49) }.is_none());
        assert!(region.packet(2000, 49).is_none() && region.packet(usize::MAX, 1).is_none());
        assert_eq!(region.packet(2000, 48).unwrap().len(), 48);
    }

    #[test]
    fn every_buffer_comes_back_whoever_drops_it() {
        let region = region();
        let mut holder = region.holder();
        let all = region.buffers();
        for _ in 0..3 {
            let mut offsets = Vec::new();
            assert_eq!(holder.fill(all + 1, |at| offsets.push(at)), all);
            assert!(region.packet(0, 1).is_none());
            // SAFETY: there is no device.
            let packets: Vec<Packet> =
                offsets.iter().filter_map(|at| unsafe { holder.receive(*at, 0, 100) }).collect();
            assert_eq!(packets.len(), all);
            std::thread::scope(|s| {
                let (a, b) = packets.into_iter().enumerate().partition::<Vec<_>, _>(|(i, _)| i % 2 == 0);
                s.spawn(|| drop(a));
                drop(b);
            });
        }
        assert_eq!(holder.fill(all, |_| ()), all);
    }

    #[test]
    fn packets_outlive_their_region() {
        let region = region();
        let mut holder = region.holder();
        let mut p = region.packet(10, 4).unwrap();
        p.data_mut().copy_from_slice(b"left");
        let clone = p.share().unwrap();
        holder.fill(2, |_| ());
        drop((holder, region));
        assert_eq!((p.data(), clone.data()), (&b"left"[..], &b"left"[..]));
        drop(p);
        assert_eq!(clone.data(), b"left");
    }

    #[test]
    fn shared_and_foreign_packets_are_not_lent() {
        let region = region();
        let mut holder = region.holder();
        let mut p = region.packet(10, 4).unwrap();
        let other = p.share().unwrap();
        let p = holder.lend(p).unwrap_err();
        assert!(holder.lend(Packet::new(4).unwrap()).is_err());
        // The last handle on the buffer is lent, even if it is that of the clone.
        drop(p);
        let at = holder.lend(other).unwrap();
        // SAFETY: there is no device.
        assert_eq!(unsafe { holder.finish([at].into_iter()) }, 1);
        assert_eq!(holder.fill(usize::MAX, |_| ()), region.buffers());
    }
}

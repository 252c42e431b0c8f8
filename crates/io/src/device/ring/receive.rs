// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of received frames that a packet socket shares with the system (TPACKET_V2): slots that belong in turn to the
//! system, which fills them, and to the reader.
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a slot's header and of the address behind it: nothing of a frame starts earlier.
const HEADERS: usize = 32 + 20;

/// The most memory that a ring takes, unless two frames need more.
const MOST: usize = 16 << 20;

/// How a ring is divided, as the system wants it: slots in blocks, slots never cross a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub block: usize,
    pub blocks: usize,
    pub slot: usize,
    pub per_block: usize,
}

impl Layout {
    /// About `slots` slots for frames of `frame` bytes, with room for what stands before a frame; fewer where they would take
    /// more than [`MOST`] bytes.
    pub fn new(frame: usize, slots: usize) -> Layout {
        // Header and address rounded up, room that the system leaves before the network header, the offload header. An odd
        // number of cache lines spreads the headers over the sets of the cache.
        let lines = frame.saturating_add(160).div_ceil(64);
        let slot = (lines | 1).saturating_mul(64);
        // A block is physically contiguous: larger ones are hard to get.
        let block = slot.next_power_of_two().max(1 << 16);
        let per_block = (block / slot).max(1);
        Layout { block, blocks: slots.div_ceil(per_block).min(MOST / block).max(2), slot, per_block }
    }
    /// Slots in all.
    pub fn slots(&self) -> usize {
        self.blocks.saturating_mul(self.per_block)
    }
    fn bytes(&self) -> usize {
        self.blocks.saturating_mul(self.block)
    }
}

/// The reader's end of a ring.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    layout: Layout,
    /// Where the next slot to read starts.
    at: usize,
    /// Its place in its block.
    place: usize,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl Send for Ring {}

/// A slot that the system filled: its header fields (struct tpacket2_hdr, struct sockaddr_ll) and its bytes.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    status: u32,
    /// The slot from its start; the first four bytes, which are the status, read as they were when the slot was filled.
    bytes: &'a [u8],
}

impl<'a> Slot<'a> {
    fn n32(&self, at: usize) -> u32 {
        self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b))
    }
    fn n16(&self, at: usize) -> u16 {
        self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_ne_bytes(*b))
    }
    /// TP_STATUS_ bits.
    #[inline]
    pub fn status(&self) -> u32 {
        self.status
    }
    /// Bytes that the frame had.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.n32(0) as usize
    }
    /// The frame, as far as it is here.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        let start = self.frame_start();
        self.bytes.get(start..start.saturating_add(self.n32(4) as usize)).unwrap_or_default()
    }
    /// The `n` bytes before the frame.
    #[inline]
    pub fn before(&self, n: usize) -> &'a [u8] {
        let start = self.frame_start();
        start.checked_sub(n).and_then(|from| self.bytes.get(from..start)).unwrap_or_default()
    }
    fn frame_start(&self) -> usize {
        // Offsets count from the start of the slot, four bytes before `bytes`.
        usize::from(self.n16(8)).saturating_sub(4)
    }
    /// When it came, in nanoseconds since 1970.
    #[inline]
    pub fn time_ns(&self) -> i64 {
        i64::from(self.n32(12)).saturating_mul(1_000_000_000).saturating_add(i64::from(self.n32(16)))
    }
    /// The VLAN tag that was taken out: control information and protocol.
    #[inline]
    pub fn vlan(&self) -> (u16, u16) {
        (self.n16(20), self.n16(22))
    }
    /// PACKET_HOST...
    #[inline]
    pub fn kind(&self) -> u8 {
        self.bytes.get(28 + 10).copied().unwrap_or(0)
    }
}

impl Ring {
    /// Maps the ring of a socket for which it was set up in this layout.
    pub fn map(fd: BorrowedFd<'_>, layout: Layout) -> Result<Ring, Errno> {
        // SAFETY: a fresh shared mapping at an address of the system's choice; no memory of this program is touched.
        let p = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                layout.bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if p == libc::MAP_FAILED {
            return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM));
        }
        let base = NonNull::new(p.cast()).ok_or(Errno::NOMEM)?;
        Ok(Ring { base, layout, at: 0, place: 0 })
    }

    #[inline(always)]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: INVARIANT `at` is the start of a slot, see `release`: at + slot <= bytes() of the mapping, which lives as
        // long as self. Slots start at multiples of 64 in a page-aligned mapping, so the status is aligned; it is shared with
        // the system, which accesses it as one word too.
        unsafe { self.base.add(self.at).cast::<AtomicU32>().as_ref() }
    }

    /// The next slot, if the system has filled it.
    #[inline(always)]
    pub fn current(&self) -> Option<Slot<'_>> {
        // Pairs with the system's barrier between writing the slot and handing it over.
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: as in `status` the slot lies inside of the mapping. The system does not touch a slot that was handed over
        // until `release` gives it back, which needs `&mut self` and so ends this borrow. The status word, which `release`
        // writes through a shared reference, is left out of the slice.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.base.add(self.at + 4).as_ptr(), self.layout.slot - 4) };
        debug_assert!(bytes.len() >= HEADERS);
        Some(Slot { status, bytes })
    }

    /// Fetches the start of the slot after the next into the cache, while the current one is read: the processor that filled it
    /// may be another.
    #[inline(always)]
    pub fn fetch_ahead(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.place + 2 < self.layout.per_block {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // INVARIANT: the slot after the next is in this block, so these lines are in the mapping.
            let ahead = self.base.as_ptr().wrapping_add(self.at + 2 * self.layout.slot);
            for line in [0, 64, 128] {
                // SAFETY: prefetching reads nothing that the program sees, and faults at no address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line).cast()) };
            }
        }
    }

    /// Gives the current slot back to the system and goes to the next.
    #[inline(always)]
    pub fn release(&mut self) {
        // What was read from the slot was read before the system may write there again.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.place += 1;
        self.at += self.layout.slot;
        if self.place == self.layout.per_block {
            self.place = 0;
            // INVARIANT: per_block * slot <= block, so the last slot started in this block.
            self.at = (self.at - self.layout.per_block * self.layout.slot) + self.layout.block;
            if self.at == self.layout.bytes() {
                self.at = 0;
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone and nothing borrowed from it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_what_the_system_takes() {
        for frame in [1, 60, 1522, 9022, 65_558, 65_600] {
            for slots in [0, 1, 2, 100, 4096] {
                let l = Layout::new(frame, slots);
                assert!(l.slots() >= slots.min(96) && l.slot >= frame + 160);
                assert!(l.bytes() <= MOST);
                assert_eq!((l.slot % 16, l.block % 4096), (0, 0));
                assert!(l.per_block * l.slot <= l.block && l.block < (l.per_block + 1) * l.slot);
            }
        }
    }
}

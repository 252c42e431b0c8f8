// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings of frames that a packet socket shares with the kernel (TPACKET_V2). A slot belongs either to the kernel or to
//! this program; the status word at its start shows which.
#![allow(unsafe_code)]

mod receive;
mod send;

pub use receive::{ReceiveRing, Slot};
pub use send::SendRing;

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// Length of a slot's header in bytes (struct tpacket2_hdr).
const HEADER: usize = 32;
/// Length in bytes of the address that follows the header in slots of received frames (struct sockaddr_ll).
const ADDRESS: usize = 20;
/// Maximum size of a ring in bytes. Only a ring of two blocks, the minimum, may be larger.
const MOST: usize = 16 << 20;

/// The layout of a ring. The ring is divided into blocks, and each block into slots. A slot never crosses a block
/// boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub block: usize,
    pub blocks: usize,
    pub slot: usize,
    pub per_block: usize,
}

impl Layout {
    /// Returns a layout of about `slots` slots, each for a frame of `frame` bytes and the headers before it.
    /// There are fewer slots if the ring would exceed [`MOST`] bytes.
    pub fn new(frame: usize, slots: usize) -> Layout {
        // 160 bytes are enough for header and address (rounded up), for the space that the kernel leaves
        // before the network header, and for the offload header. An odd number of cache lines spreads the
        // headers over the sets of the cache.
        let lines = frame.saturating_add(160).div_ceil(64);
        let slot = (lines | 1).saturating_mul(64);
        // A block is physically contiguous memory, so large blocks are hard to allocate. Therefore a block is as small
        // as a slot permits, but at least 64 kB.
        let block = slot.next_power_of_two().max(1 << 16);
        let per_block = (block / slot).max(1);
        Layout { block, blocks: slots.div_ceil(per_block).min(MOST / block).max(2), slot, per_block }
    }
    /// The total number of slots.
    pub fn slots(&self) -> usize {
        self.blocks.saturating_mul(self.per_block)
    }
    /// The request for a ring with this layout (struct tpacket_req).
    pub fn request(&self) -> [u32; 4] {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        [self.block, self.blocks, self.slot, self.slots()].map(number)
    }
    fn bytes(&self) -> usize {
        self.blocks.saturating_mul(self.block)
    }
    /// Returns the position of the slot after the given one. After the last slot comes the first.
    #[inline(always)]
    fn after(&self, SlotPosition { at, slot }: SlotPosition) -> SlotPosition {
        if slot + 1 < self.per_block {
            return SlotPosition { at: at + self.slot, slot: slot + 1 };
        }
        // INVARIANT: per_block * slot <= block: all slots of a block lie inside it. So `at - slot * self.slot` is the
        // start of the current block.
        let next = (at - slot * self.slot) + self.block;
        SlotPosition { at: if next == self.bytes() { 0 } else { next }, slot: 0 }
    }
}

/// The position of a slot: its offset in the ring, and its number in its block.
///
/// INVARIANT: a position is [`SlotPosition::FIRST`], or it is used with the ring whose [`Layout::after`] returned it.
/// So `at` plus the length of a slot does not exceed the length of that ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotPosition {
    at: usize,
    slot: usize,
}

impl SlotPosition {
    const FIRST: SlotPosition = SlotPosition { at: 0, slot: 0 };
}

/// The memory of a ring.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the mapping belongs to this value alone; nothing about it is tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring of a socket. The ring must have been requested with this layout.
    fn new(fd: BorrowedFd<'_>, layout: Layout) -> Result<Mapping, Errno> {
        // SAFETY: this creates a new shared mapping at an address that the kernel chooses. No memory that the
        // program already uses is touched.
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
        Ok(Mapping { base, layout })
    }

    /// The status word at the start of a slot.
    #[inline(always)]
    fn status(&self, place: SlotPosition) -> &AtomicU32 {
        // SAFETY: by the invariant of `SlotPosition` the slot lies inside of the mapping, which lives as long as
        // self. Slots start at multiples of 64 in a page-aligned mapping, so the status is aligned. The
        // kernel also accesses the status as one word. No other reference to the status is ever made, because
        // the bytes of a slot begin after it.
        unsafe { self.base.add(place.at).cast::<AtomicU32>().as_ref() }
    }

    /// Pointer to the bytes of a slot after its status word. There are `layout.slot - 4` of them.
    #[inline(always)]
    fn behind_status(&self, place: SlotPosition) -> NonNull<u8> {
        // SAFETY: by the invariant of `SlotPosition` the slot lies inside of the mapping, and a slot is longer than
        // four bytes.
        unsafe { self.base.add(place.at + 4) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value alone, and nothing borrowed from it is left.
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
                // `after` visits all slots in order, block by block, and then returns to the first slot.
                let mut place = SlotPosition::FIRST;
                for i in 0..l.slots() {
                    assert_eq!(place.at, i / l.per_block * l.block + i % l.per_block * l.slot);
                    place = l.after(place);
                }
                assert_eq!(place, SlotPosition::FIRST);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of received frames: the kernel fills slots, the reader releases them.

use super::{ADDRESS, HEADER, Layout, Mapping, SlotPosition};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

/// The reader's end of a ring.
#[derive(Debug)]
pub struct ReceiveRing {
    mapping: Mapping,
    /// The next slot to read.
    next: SlotPosition,
}

/// A filled slot: its header fields (struct tpacket2_hdr, struct sockaddr_ll) and its bytes.
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    status: u32,
    /// The bytes of the slot after the status word.
    bytes: &'a [u8],
}

impl<'a> Slot<'a> {
    fn n32(&self, at: usize) -> u32 {
        self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b))
    }
    fn n16(&self, at: usize) -> u16 {
        self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_ne_bytes(*b))
    }
    /// The status, as TP_STATUS_ bits.
    #[inline]
    pub fn status(&self) -> u32 {
        self.status
    }
    /// The length of the frame on the wire, in bytes.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.n32(0) as usize
    }
    /// The captured bytes of the frame.
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
    /// The time of reception, in nanoseconds since 1970.
    #[inline]
    pub fn time_ns(&self) -> i64 {
        i64::from(self.n32(12)).saturating_mul(1_000_000_000).saturating_add(i64::from(self.n32(16)))
    }
    /// The VLAN tag that the kernel removed: control information and protocol.
    #[inline]
    pub fn vlan(&self) -> (u16, u16) {
        (self.n16(20), self.n16(22))
    }
    /// How the frame was addressed: PACKET_HOST and others.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.bytes.get(28 + 10).copied().unwrap_or(0)
    }
}

impl ReceiveRing {
    /// Maps the ring of a socket, which must have been requested with this layout.
    pub fn map(fd: BorrowedFd<'_>, layout: Layout) -> Result<ReceiveRing, Errno> {
        Ok(ReceiveRing { mapping: Mapping::new(fd, layout)?, next: SlotPosition::FIRST })
    }

    /// The next slot, if the kernel has filled it.
    #[inline(always)]
    pub fn current(&self) -> Option<Slot<'_>> {
        // Pairs with the kernel's barrier between writing the slot and setting its status.
        let status = self.mapping.status(self.next).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let (start, len) = (self.mapping.behind_status(self.next), self.mapping.layout.slot - 4);
        // SAFETY: these are the bytes of one slot in the mapping. The kernel does not access this slot until
        // `release` returns it to the kernel. `release` needs `&mut self`, so this borrow has ended by then.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
        debug_assert!(bytes.len() >= HEADER + ADDRESS);
        Some(Slot { status, bytes })
    }

    /// Prefetches the start of the slot after the next one, while the current slot is processed. If another processor
    /// has filled that slot, its bytes are not in this processor's cache yet.
    #[inline(always)]
    pub fn fetch_ahead(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let layout = &self.mapping.layout;
            if self.next.slot + 2 < layout.per_block {
                // The slot to prefetch is in the same block as the current one.
                let ahead = self.mapping.base.as_ptr().wrapping_add(self.next.at + 2 * layout.slot);
                for line in [0, 64, 128] {
                    // SAFETY: prefetching reads nothing that the program sees, and never faults, whatever the
                    // address.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line).cast()) };
                }
            }
        }
    }

    /// Returns the current slot to the kernel and advances to the next.
    #[inline(always)]
    pub fn release(&mut self) {
        // Release: all reads of the slot precede the kernel's next writes.
        self.mapping.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = self.mapping.layout.after(self.next);
    }
}

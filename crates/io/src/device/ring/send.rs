// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of frames to send: this program fills slots, and one system call sends all of them.

use super::{HEADER, Layout, Mapping, SlotPosition};
use crate::device::send::Outgoing;
use crate::device::sys;
use crate::device::vnet::VnetHeader;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// Number of bytes before the frame in a slot.
const BEFORE: usize = HEADER + VnetHeader::LEN;

/// The writer's end of a ring.
///
/// A ring costs the kernel less per frame than sendmmsg(2): there is no message header to read and no iovec to gather,
/// and the socket and the device are checked once for all frames. This program copies frames to the slots, and the
/// kernel copies them from there.
///
/// The header length in the offload header says how many bytes the kernel copies at first. This program sets it to the
/// length of the whole frame. With a shorter header length, the rest of the frame would stay in the slot, and the
/// kernel would copy the rest to a separate page as soon as a receiver keeps the frame.
#[derive(Debug)]
pub struct SendRing {
    // Declared before the socket, so that the ring is unmapped first.
    mapping: Mapping,
    fd: Arc<OwnedFd>,
    /// The first filled slot, at which the kernel continues to send.
    first: SlotPosition,
    /// The slot after the last filled one.
    next: SlotPosition,
    /// The number of filled slots.
    waiting: usize,
}

impl SendRing {
    /// Creates a ring for a socket that has none. The ring has about `slots` slots for frames of up to
    /// `frame` bytes.
    pub fn new(fd: Arc<OwnedFd>, frame: usize, slots: usize) -> Result<SendRing, Errno> {
        let layout = Layout::new(frame, slots);
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &1u32)?;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_TX_RING, &layout.request())?;
        let mapping = Mapping::new(fd.as_fd(), layout)?;
        Ok(SendRing { mapping, fd, first: SlotPosition::FIRST, next: SlotPosition::FIRST, waiting: 0 })
    }
    /// The socket. It is writable while a slot is free.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The length of the longest frame that a slot holds, in bytes.
    pub fn longest(&self) -> usize {
        self.mapping.layout.slot - BEFORE
    }

    /// Writes a frame to the next slot. Returns false if the slot is still in use or too short.
    #[inline(always)]
    pub fn put(&mut self, frame: &Outgoing<'_>) -> bool {
        let status = self.mapping.status(self.next);
        // Pairs with the kernel's barrier before it frees a slot.
        if status.load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            return false;
        }
        let (start, len) = (self.mapping.behind_status(self.next), self.mapping.layout.slot - 4);
        // SAFETY: these are the bytes of one slot in the mapping. The kernel does not access an available
        // slot until the status of the slot changes. The status is not among these bytes. `&mut self` rules out any
        // other reference to the slot.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) };
        let Ok(n) = u16::try_from(frame.data.len()) else { return false };
        let Some((header, rest)) = bytes.split_at_mut_checked(HEADER - 4) else { return false };
        let Some((vnet, rest)) = rest.split_at_mut_checked(VnetHeader::LEN) else { return false };
        let Some(data) = rest.get_mut(..frame.data.len()) else { return false };
        // The header has a length and a captured length, which are the same here.
        let len = (u32::from(n) + VnetHeader::LEN as u32).to_ne_bytes();
        header[..4].copy_from_slice(&len);
        header[4..8].copy_from_slice(&len);
        vnet.copy_from_slice(VnetHeader { header_len: n, ..frame.vnet }.as_bytes());
        data.copy_from_slice(frame.data);
        status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = self.mapping.layout.after(self.next);
        self.waiting += 1;
        true
    }

    /// Sends the filled slots. Returns the number of sent frames, and the error of the first frame that was
    /// not sent. After an error, that frame and all later frames are removed from the ring.
    pub fn flush(&mut self) -> (usize, Option<Errno>) {
        let mut taken = 0;
        while self.waiting > 0 {
            let told = rustix::net::send(&self.fd, &[], rustix::net::SendFlags::DONTWAIT);
            let before = taken;
            while self.waiting > 0 {
                let status = self.mapping.status(self.first).load(Ordering::Acquire);
                if matches!(status, libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT) {
                    break;
                }
                self.first = self.mapping.layout.after(self.first);
                self.waiting -= 1;
                taken += 1;
            }
            match told {
                _ if self.waiting == 0 => {}
                // A partial send: the next call returns the error.
                Ok(_) if taken > before => {}
                other => {
                    self.take_back();
                    return (taken, Some(other.err().unwrap_or(Errno::AGAIN)));
                }
            }
        }
        (taken, None)
    }

    /// Frees the filled slots. This is allowed because the kernel reads slots only during a send call. The next
    /// send call continues at the first of the freed slots.
    #[cold]
    fn take_back(&mut self) {
        let mut place = self.first;
        for _ in 0..std::mem::take(&mut self.waiting) {
            self.mapping.status(place).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            place = self.mapping.layout.after(place);
        }
        self.next = self.first;
    }
}

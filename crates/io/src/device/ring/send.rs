// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of frames to be sent: this program fills slots, one system call has the system take all of them.

use super::{HEADER, Layout, Mapping, Place};
use crate::device::send::Outgoing;
use crate::device::sys;
use crate::device::vnet::VnetHeader;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// What stands before a frame in its slot.
const BEFORE: usize = HEADER + VnetHeader::LEN;

/// The writer's end of a ring.
///
/// To send by a ring costs the system less than a message for each frame: no message to read, no pieces to gather, one look at the
/// socket and the device for all. Frames are copied to the slots, and from there by the system, which is told that all of a
/// frame is headers: what it does not copy it would have to copy into a page of its own as soon as somebody keeps the frame.
#[derive(Debug)]
pub struct SendRing {
    // The mapping goes before the socket.
    mapping: Mapping,
    fd: Arc<OwnedFd>,
    /// The first slot that waits to be taken: the one at which the system looks first.
    first: Place,
    /// The slot behind the last one that waits.
    next: Place,
    /// Slots from `first` to `next`.
    waiting: usize,
}

impl SendRing {
    /// Makes a ring of about `slots` slots for frames of up to `frame` bytes for a socket that has none.
    pub fn new(fd: Arc<OwnedFd>, frame: usize, slots: usize) -> Result<SendRing, Errno> {
        let layout = Layout::new(frame, slots);
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &1u32)?;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_TX_RING, &layout.request())?;
        let mapping = Mapping::new(fd.as_fd(), layout)?;
        Ok(SendRing { mapping, fd, first: Place::FIRST, next: Place::FIRST, waiting: 0 })
    }
    /// The socket, which is writable while a slot is free.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The longest frame that a slot holds.
    pub fn longest(&self) -> usize {
        self.mapping.layout.slot - BEFORE
    }

    /// Writes a frame to the next slot; not if that is still with the device, or the frame is too long for it.
    #[inline(always)]
    pub fn put(&mut self, frame: &Outgoing<'_>) -> bool {
        let status = self.mapping.status(self.next);
        // Pairs with the system's barrier before it gives a slot back.
        if status.load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            return false;
        }
        let (start, len) = (self.mapping.behind_status(self.next), self.mapping.layout.slot - 4);
        // SAFETY: these are the bytes of one slot in the mapping. The system does not touch a slot that is available until the
        // status, which is not among them, says otherwise; and `&mut self` rules out any other reference to it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) };
        let Ok(n) = u16::try_from(frame.data.len()) else { return false };
        let Some((header, rest)) = bytes.split_at_mut_checked(HEADER - 4) else { return false };
        let Some((vnet, rest)) = rest.split_at_mut_checked(VnetHeader::LEN) else { return false };
        let Some(data) = rest.get_mut(..frame.data.len()) else { return false };
        // Length and captured length.
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

    /// Has the system take the frames that wait. How many it took, from the first on; and why not the next one, which with all
    /// behind it is taken out of the ring.
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
                // Fewer than asked for: why is told to who asks again.
                Ok(_) if taken > before => {}
                other => {
                    self.take_back();
                    return (taken, Some(other.err().unwrap_or(Errno::AGAIN)));
                }
            }
        }
        (taken, None)
    }

    /// Empties the slots that wait. The system, which looks at them only while it is asked to send, goes on at the first.
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

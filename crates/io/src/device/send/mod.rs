// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends frames on a device, many in one system call.

mod messages;

use super::error::DeviceError;
use super::facts;
use super::packet::open_socket;
use super::ring::SendRing;
use super::sys;
use super::vnet::VnetHeader;
use messages::Messages;
use rustix::io::Errno;
use std::iter::Peekable;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Largest number of frames per call of [`PacketSender::send`].
pub const MAX_BATCH: usize = 64;
/// Number of slots of the ring of frames to send.
const SLOTS: usize = 256;
/// Length of the link header before an IP packet, in bytes.
const ETHERNET: usize = 14;
/// Length of the longest frame for which slots of the ring are sized, in bytes.
const LONGEST: usize = 1500 + ETHERNET;
/// The sender reads the device's MTU again after this number of calls of [`PacketSender::send`].
const LOOK: u32 = 16;

/// A frame to send, and its outstanding offloads.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The offloads that the device executes.
    pub vnet: VnetHeader,
    /// The frame.
    pub data: &'a [u8],
}

impl<'a> Outgoing<'a> {
    /// A frame without offloads.
    pub fn plain(data: &'a [u8]) -> Outgoing<'a> {
        Outgoing { vnet: VnetHeader::NONE, data }
    }
    /// Whether the frame is shorter than `limit` bytes and is not a super-packet.
    #[inline(always)]
    fn is_below(&self, limit: usize) -> bool {
        self.data.len() < limit && !self.vnet.is_super()
    }
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The socket's buffer is full; its descriptor becomes writable when there is space.
    Full,
    /// The device's queue is full. No event signals when there is space.
    Congested,
    /// The device is down or no longer exists.
    Down,
    /// The frame is longer than the device's MTU.
    TooLong,
    /// The kernel refuses this frame.
    Refused(Errno),
}

impl Refusal {
    pub(super) fn new(errno: Errno) -> Refusal {
        match errno {
            Errno::AGAIN | Errno::INTR => Refusal::Full,
            Errno::NOBUFS | Errno::NOMEM => Refusal::Congested,
            // TUN: EIO if the device is down, EBADFD if it no longer exists.
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV | Errno::IO | Errno::BADFD => Refusal::Down,
            Errno::MSGSIZE => Refusal::TooLong,
            other => Refusal::Refused(other),
        }
    }
    /// Whether sending the same frame may succeed later.
    pub fn is_for_now(self) -> bool {
        matches!(self, Refusal::Full | Refusal::Congested | Refusal::Down)
    }
}

/// The result of sending frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of sent frames.
    pub count: usize,
    /// Why the next frame was refused; `None` if all were sent.
    pub refusal: Option<Refusal>,
}

/// Sends frames on one device, bypassing its queueing discipline.
///
/// Ordinary frames are sent through a ring in shared memory. Super-packets, and frames that are too long for
/// the ring or for the device, are sent by sendmmsg(2) on a second socket. Both ways pass a frame to the device
/// before the call returns, so the order of frames is kept.
#[derive(Debug)]
pub struct PacketSender {
    ring: Option<SendRing>,
    messages: Messages,
    name: String,
    index: u32,
    /// Length of the link header before an IP packet, in bytes.
    header: usize,
    /// Frames shorter than this number of bytes are sent through the ring. The number follows from the length of a slot
    /// and the MTU, and is 0 without a ring.
    limit: usize,
    /// The number of calls of `send` until the device's MTU is read again.
    look: u32,
}

/// Opens a socket that bypasses the queueing discipline of a device. The kernel expects an offload header before each
/// frame sent through the socket.
fn open(name: &str, index: u32) -> Result<Arc<OwnedFd>, DeviceError> {
    let fd = open_socket(name, true)?;
    let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
    sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1u32)
        .map_err(failed("pass its queueing discipline by"))?;
    // Protocol 0: the socket receives nothing.
    match sys::bind_packet(fd.as_fd(), index, 0) {
        Ok(()) | Err(Errno::NETDOWN) => Ok(Arc::new(fd)),
        Err(e) => Err(failed("bind to it")(e)),
    }
}

impl PacketSender {
    /// Opens the device with this name.
    ///
    /// # Errors
    /// When the device is missing, or the kernel does not permit it.
    pub fn open(name: &str) -> Result<PacketSender, DeviceError> {
        let info = facts::link_info(name)?;
        let fd = open(name, info.index)?;
        let header = if info.link.is_ethernet() { ETHERNET } else { 0 };
        // The ring is optional: there may be no memory for it.
        let ring =
            SendRing::new(open(name, info.index)?, LONGEST.min(info.mtu as usize + header), SLOTS).ok();
        let bypassing = std::iter::once(&fd).chain(ring.as_ref().map(SendRing::fd)).cloned().collect();
        let messages = Messages::new(fd, bypassing)
            .map_err(|e| DeviceError::from_errno(name, "send without offload headers", e))?;
        let (name, index) = (name.to_owned(), info.index);
        Ok(PacketSender { ring, messages, name, index, header, limit: 0, look: 0 })
    }
    /// The descriptor. After [`Refusal::Full`] it becomes writable when there is space.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        self.ring.as_ref().map_or(self.messages.fd(), SendRing::fd)
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Reads the device's MTU again, because it may have changed. The kernel checks the MTU for frames that are sent by
    /// sendmmsg, but not for frames in the ring.
    #[cold]
    fn look(&mut self) {
        self.look = LOOK;
        let Some(ring) = &self.ring else { return };
        self.limit = match sys::mtu(ring.fd().as_fd(), &self.name) {
            Ok(mtu) => ring.longest().min(mtu as usize + self.header) + 1,
            // The device was renamed or removed. Without its MTU, no frame is sent through the ring.
            Err(_) => 0,
        };
    }

    /// Sends frames in order, at most [`MAX_BATCH`], without blocking, until one is refused.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> Sent {
        match self.look.checked_sub(1) {
            Some(left) => self.look = left,
            None => self.look(),
        }
        let mut frames = frames.take(MAX_BATCH).peekable();
        let mut count = 0;
        while let Some(frame) = frames.peek() {
            let sent = match &mut self.ring {
                Some(ring) if frame.is_below(self.limit) => send_short(ring, self.limit, &mut frames),
                _ => self.send_long(&mut frames),
            };
            count += sent.count;
            if sent.refusal.is_some() {
                return Sent { count, ..sent };
            }
        }
        Sent { count, refusal: None }
    }

    /// Sends frames by sendmmsg. Stops before the first frame that can be sent through the ring.
    fn send_long<'a>(&mut self, frames: &mut Peekable<impl Iterator<Item = Outgoing<'a>>>) -> Sent {
        let limit = self.limit;
        let mut sent =
            self.messages.send(std::iter::from_fn(|| frames.next_if(|frame| !frame.is_below(limit))));
        // `Full` means that the caller's descriptor becomes writable when there is free space. But the caller has the
        // descriptor of the ring, and this descriptor does not signal free space in the buffer of the second socket.
        // `Congested` makes the caller retry without waiting for a descriptor.
        if self.ring.is_some() && sent.refusal == Some(Refusal::Full) {
            sent.refusal = Some(Refusal::Congested);
        }
        sent
    }
}

/// Sends frames through the ring. Stops when the ring is full, or before a frame that must be sent by sendmmsg.
#[inline(always)]
fn send_short<'a>(
    ring: &mut SendRing,
    limit: usize,
    frames: &mut Peekable<impl Iterator<Item = Outgoing<'a>>>,
) -> Sent {
    let mut full = false;
    while let Some(frame) = frames.peek()
        && frame.is_below(limit)
    {
        if !ring.put(frame) {
            full = true;
            break;
        }
        frames.next();
    }
    let (count, errno) = ring.flush();
    let refusal = errno.map(Refusal::new).or(full.then_some(Refusal::Full));
    Sent { count, refusal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_goes_one_way() {
        let vnet = VnetHeader { gso_type: VnetHeader::TCP4, ..VnetHeader::NONE };
        let frames = [Outgoing::plain(&[]), Outgoing::plain(&[0; 9]), Outgoing { vnet, data: &[0; 9] }];
        // Without a ring the limit is 0, so not even an empty frame is sent through the ring.
        assert_eq!(frames.map(|f| f.is_below(0)), [false, false, false]);
        assert_eq!(frames.map(|f| f.is_below(9)), [true, false, false]);
        assert_eq!(frames.map(|f| f.is_below(10)), [true, true, false]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends packets through an AF_XDP socket.
#![allow(unsafe_code)]

use super::port::{Port, RING, SendHalf};
use super::ring::{Descriptor, MOST_PIECES};
use super::{Way, XdpOptions};
use crate::device::error::{DeviceError, OPEN_SOCKET};
use crate::device::{MAX_BATCH, Refusal, Sent, facts, sys};
use castanet_packet::region::BUFFER;
use castanet_packet::{DEFAULT_HEADROOM, Packet};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The sender reads the device's MTU again after this number of calls of [`XdpSender::send`].
const LOOK: u32 = 16;

/// Sends packets through one queue of a device. The buffers of packets that were received by an
/// [`XdpReceiver`](super::XdpReceiver) are sent as they are, those of other packets are copied.
#[derive(Debug)]
pub struct XdpSender {
    port: Arc<Port>,
    /// `None` only while the sender is being dropped.
    half: Option<SendHalf>,
    name: String,
    /// A socket for requests about the device, which AF_XDP sockets do not take.
    requests: OwnedFd,
    /// The maximum length of a frame in bytes, as of the last reading of the MTU.
    limit: usize,
    /// The number of calls of `send` until the device's MTU is read again.
    look: u32,
}

impl XdpSender {
    /// Opens a socket on the first queue of the device that no other sender of this process uses.
    ///
    /// # Errors
    /// When the device is missing, has no Ethernet header, or is in use; when the kernel does not support or permit it.
    pub fn open(name: &str, options: &XdpOptions) -> Result<XdpSender, DeviceError> {
        let info = facts::link_info(name)?;
        if !info.link.is_ethernet() {
            let what = format!("AF_XDP needs Ethernet, but its link type is {}", info.link);
            return Err(DeviceError::Invalid { name: name.to_owned(), what });
        }
        let requests = sys::any_socket().map_err(|e| DeviceError::from_errno(name, OPEN_SOCKET, e))?;
        for queue in 0..crate::device::receive_queues(name) {
            let port = match Port::of(name, info.index, queue, options.buffers) {
                Ok(port) => port,
                // A socket of another program.
                Err(DeviceError::Busy { .. }) => continue,
                Err(e) => return Err(e),
            };
            if let Some(half) = port.take_send_half() {
                let (half, name) = (Some(half), name.to_owned());
                return Ok(XdpSender { port, half, name, requests, limit: 0, look: 0 });
            }
        }
        Err(DeviceError::Busy { name: name.to_owned() })
    }

    /// The socket. It is writable while half of the ring is free.
    ///
    /// # Errors
    /// Never while the sender is in use.
    pub fn fd(&self) -> Result<&Arc<OwnedFd>, DeviceError> {
        self.port.fd().map_err(|e| DeviceError::from_errno(&self.name, "send on it", e))
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        self.port.index()
    }
    /// How frames are sent.
    pub fn way(&self) -> Way {
        Way {
            generic: false,
            zero_copy: self.port.is_zero_copy(),
            queues: 1,
            whole: self.port.takes_several_buffers(),
        }
    }
    /// Whether frames in the ring still wait for the kernel. If so, [`XdpSender::send`] must be called again, even without
    /// packets.
    pub fn is_waiting(&mut self) -> bool {
        self.half.as_mut().is_some_and(|h| h.tx.waiting() > 0)
    }
    /// The number of packets that were copied, because their buffers are not in the region or are shared.
    pub fn copied(&self) -> u64 {
        self.half.as_ref().map_or(0, |h| h.copied)
    }
    /// The number of frames that the kernel rejected because of an invalid descriptor.
    pub fn refused_by_kernel(&self) -> u64 {
        self.port.statistics().tx_invalid
    }

    /// Sends packets from the front of `packets`, at most [`MAX_BATCH`], without blocking, until one is refused. Removes
    /// the sent packets. They must have no pending offloads.
    pub fn send(&mut self, packets: &mut Vec<Packet>) -> Sent {
        match self.look.checked_sub(1) {
            Some(left) => self.look = left,
            None => {
                self.look = LOOK;
                let mtu = sys::mtu(self.requests.as_fd(), &self.name);
                // If the device was renamed or removed, no frame fits; the kernel says which it is.
                self.limit = mtu.map_or(0, |mtu| mtu as usize + super::HEADER);
            }
        }
        let (several, limit) = (self.port.takes_several_buffers(), self.limit);
        let Some(half) = &mut self.half else { return refused(0, Refusal::Down) };
        half.complete();
        let mut refusal = None;
        let mut entries = 0;
        let mut room = half.tx.room().min(RING.saturating_sub(half.lent)) as usize;
        let mut n = 0;
        for p in packets.iter().take(MAX_BATCH) {
            let parts = p.len().div_ceil(BUFFER).max(1);
            if limit > 0 && p.len() > limit || parts > if several { MOST_PIECES } else { 1 } {
                refusal = Some(Refusal::TooLong);
                break;
            }
            if p.is_empty() {
                refusal = Some(Refusal::Refused(Errno::INVAL));
                break;
            }
            if parts > room {
                refusal = Some(Refusal::Congested);
                break;
            }
            room -= parts;
            entries += parts;
            n += 1;
        }
        let mut count = 0;
        let mut sent = packets.drain(..n);
        let mut rest = None;
        for p in sent.by_ref() {
            if let Err(p) = half.put(p) {
                // No buffer is free for a copy.
                rest = Some(p);
                break;
            }
            count += 1;
        }
        if let Some(p) = rest {
            let rest: Vec<Packet> = std::iter::once(p).chain(sent).collect();
            packets.splice(0..0, rest);
            refusal = Some(Refusal::Congested);
        } else {
            drop(sent);
        }
        if entries > 0 {
            half.tx.publish();
        }
        match self.kick() {
            Some(kick) => refused(count, refusal.filter(|r| !r.is_for_now()).unwrap_or(kick)),
            None => Sent { count, refusal },
        }
    }

    /// Makes the kernel send the frames in the ring. Returns why it did not take all of them.
    fn kick(&mut self) -> Option<Refusal> {
        let half = self.half.as_mut()?;
        let mut waiting = half.tx.waiting();
        while waiting > 0 && half.tx.needs_wakeup() {
            let fd = match self.port.fd() {
                Ok(fd) => fd,
                Err(e) => return Some(Refusal::new(e)),
            };
            let told = rustix::net::send(fd, &[], rustix::net::SendFlags::DONTWAIT);
            let left = half.tx.waiting();
            // The kernel has taken a frame that the device did not send, and has dropped it. While the device goes down, it still
            // counts as up. To ask for its state waits until it is down.
            if told == Err(Errno::BUSY)
                && left < waiting
                && !self.port.is_zero_copy()
                && !sys::is_running(self.requests.as_fd(), &self.name).unwrap_or(true)
                && facts::state(&self.name).is_none_or(|(_, up)| !up)
            {
                half.put_back();
                return Some(Refusal::Down);
            }
            match told {
                // The kernel sends a part of the ring in each call.
                Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS) if left < waiting => waiting = left,
                Ok(_) => return (left > 0).then_some(Refusal::Congested),
                Err(Errno::AGAIN | Errno::BUSY | Errno::INTR) => return Some(Refusal::Congested),
                Err(e) => return Some(Refusal::new(e)),
            }
            if waiting > 0 {
                half.complete();
            }
        }
        None
    }
}

impl Drop for XdpSender {
    fn drop(&mut self) {
        if let Some(half) = self.half.take() {
            self.port.put_send_half(half);
        }
    }
}

fn refused(count: usize, refusal: Refusal) -> Sent {
    Sent { count, refusal: Some(refusal) }
}

impl SendHalf {
    /// Takes back the buffers of frames that were sent.
    #[inline]
    fn complete(&mut self) {
        let n = self.completion.available();
        if n == 0 {
            return;
        }
        let SendHalf { completion, dropped, .. } = self;
        let before = dropped.len();
        let offsets = (0..n).filter_map(|_| {
            let address = completion.take();
            let again = dropped.iter().position(|d| *d == address);
            again.map(|i| dropped.swap_remove(i)).is_none().then_some(address)
        });
        // SAFETY: the kernel has passed the buffers back by the entries of the ring, and `offsets` leaves those out that are in
        // `tx` once more.
        unsafe { self.holder.finish(offsets) };
        self.completion.release();
        self.lent = self.lent.saturating_sub(n - (before - self.dropped.len()) as u32);
    }

    /// Puts the frame that the kernel has taken and dropped back before those that wait.
    #[cold]
    fn put_back(&mut self) {
        let SendHalf { tx, dropped, .. } = self;
        tx.put_back(|address| dropped.push(address));
    }

    /// Adds a packet to the ring. Returns the packet if it would have to be copied and no buffer is free.
    #[inline]
    fn put(&mut self, p: Packet) -> Result<(), Packet> {
        let len = p.len() as u32;
        match self.holder.lend(p) {
            Ok(address) => {
                self.tx.put(Descriptor { address, len, options: 0 });
                self.lent += 1;
                Ok(())
            }
            Err(p) => self.put_copy(p),
        }
    }

    /// Copies a packet to buffers of the region, and adds these to the ring.
    #[cold]
    fn put_copy(&mut self, p: Packet) -> Result<(), Packet> {
        let region = self.holder.region().clone();
        let headroom = if p.len() + DEFAULT_HEADROOM <= BUFFER { DEFAULT_HEADROOM } else { 0 };
        let mut copies = Vec::with_capacity(1);
        for part in p.data().chunks(BUFFER) {
            let Some(mut copy) = region.packet(headroom, part.len()) else { return Err(p) };
            copy.data_mut().copy_from_slice(part);
            copies.push(copy);
        }
        self.copied = self.copied.saturating_add(1);
        let last = copies.len().saturating_sub(1);
        for (i, copy) in copies.into_iter().enumerate() {
            let len = copy.len() as u32;
            let options = if i < last { Descriptor::MORE } else { 0 };
            // A fresh buffer of the region, so it is lent.
            if let Ok(address) = self.holder.lend(copy) {
                self.tx.put(Descriptor { address, len, options });
                self.lent += 1;
            }
        }
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives the frames of a device through AF_XDP sockets.
#![allow(unsafe_code)]

use super::port::{Port, ReceiveHalf};
use super::ring::Descriptor;
use super::steering::Steering;
use super::sys;
use super::{Way, XdpOptions};
use crate::device::bpf::XdpMode;
use crate::device::error::DeviceError;
use crate::device::facts;
use crate::device::packet::Witness;
use castanet_packet::{DEFAULT_HEADROOM, Packet};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The number of buffers that a socket gets together, so that few system calls and locks are needed.
const TOGETHER: u32 = 64;
/// The maximum length of a frame in bytes. Longer frames do not exist, but the kernel does not say so.
const LONGEST: usize = 65_535;

/// Why a received frame is not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostFrame {
    /// No memory for the packet.
    NoBuffer,
    /// The frame is longer than any packet.
    TooLong,
    /// The kernel described the frame wrongly.
    Invalid,
}

/// Receives the frames of some queues of a device. The host does not see these frames.
#[derive(Debug)]
pub struct XdpReceiver {
    queues: Vec<Queue>,
    /// The queue that is asked first.
    first: usize,
    name: String,
    index: u32,
    ether: Option<[u8; 6]>,
    steering: Arc<Steering>,
    started: bool,
    busy: bool,
    /// The number of bytes before a frame that its packet has.
    lead: usize,
    /// Tells when the device goes down or vanishes.
    witness: Witness,
    /// Whether frames up to the MTU can be received: they fit into one buffer, or the kernel can use several.
    whole: bool,
}

#[derive(Debug)]
struct Queue {
    port: Arc<Port>,
    /// `None` only while the receiver is being dropped.
    half: Option<ReceiveHalf>,
    /// The beginning of a frame that lies in several buffers.
    parts: Vec<Packet>,
    /// How many buffers the kernel is to have.
    wanted: u32,
}

impl XdpReceiver {
    /// Opens sockets on the device's queues, and attaches an XDP program to the device. Until
    /// [`XdpReceiver::start`], the host gets the frames.
    ///
    /// # Errors
    /// When the device is missing, has no Ethernet header or no such queue, or is in use; when the kernel does not
    /// support or permit it.
    pub fn open(name: &str, options: &XdpOptions) -> Result<XdpReceiver, DeviceError> {
        let info = facts::link_info(name)?;
        let invalid = |what: String| DeviceError::Invalid { name: name.to_owned(), what };
        if !info.link.is_ethernet() {
            return Err(invalid(format!("AF_XDP needs Ethernet, but its link type is {}", info.link)));
        }
        let all = crate::device::receive_queues(name);
        let numbers = options.share.queues(all);
        if numbers.is_empty() {
            return Err(invalid(format!(
                "it has {all} receive queues, too few for every element of the group; give it more: ethtool -L {name} \
                 combined N"
            )));
        }
        let steering = Steering::of(name, info.index, all)?;
        let wanted = (super::port::RING * 32 / numbers.len() as u32).clamp(TOGETHER, super::port::RING);
        let queues = numbers.into_iter().map(|number| {
            let port = Port::of(name, info.index, number, options.buffers)?;
            if options.busy_poll {
                let fd = port.fd().map_err(|e| DeviceError::from_errno(name, "poll it", e))?;
                sys::poll_busily(fd.as_fd(), TOGETHER)
                    .map_err(|e| DeviceError::from_errno(name, "poll it busily (Linux 5.11)", e))?;
            }
            let half = Some(port.take_receive_half().ok_or(DeviceError::Busy { name: name.to_owned() })?);
            let mut queue = Queue { port, half, parts: Vec::new(), wanted };
            queue.refill(1);
            Ok(queue)
        });
        let queues = queues.collect::<Result<Vec<Queue>, DeviceError>>()?;
        let fits = castanet_packet::region::BUFFER - sys::FRAME_HEADROOM as usize;
        let mut receiver = XdpReceiver {
            whole: info.mtu as usize + super::HEADER <= fits
                || queues.iter().all(|q| q.port.takes_several_buffers()),
            queues,
            first: 0,
            name: name.to_owned(),
            index: info.index,
            ether: info.ether,
            steering,
            started: false,
            busy: options.busy_poll,
            lead: 0,
            witness: Witness::open(name, info.index)?,
        };
        receiver.set_promiscuous(options.promiscuous)?;
        Ok(receiver)
    }

    /// Makes the frames of the device go to this receiver instead of the host. Does nothing if they do already.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[inline]
    pub fn start(&mut self) -> Result<(), DeviceError> {
        if self.started { Ok(()) } else { self.start_now() }
    }
    #[cold]
    fn start_now(&mut self) -> Result<(), DeviceError> {
        for q in &self.queues {
            let fd = q.port.fd().map_err(|e| DeviceError::from_errno(&self.name, "receive from it", e))?;
            self.steering.start(q.port.queue(), fd.as_fd(), q.port.number())?;
        }
        self.started = true;
        Ok(())
    }

    /// Makes the frames of the device go to no socket any more: the program treats them as those of a device without sockets.
    /// Frames that have come can be received.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&mut self) -> Result<(), DeviceError> {
        self.started = false;
        // All queues are stopped, even if one cannot be.
        let stopped: Vec<_> = self.queues.iter().map(|q| self.steering.stop(q.port.queue())).collect();
        stopped.into_iter().collect()
    }

    /// Makes the data of received packets begin this number of bytes before the frame: the metadata of programs. At most
    /// 256.
    #[inline]
    pub fn set_lead(&mut self, lead: usize) {
        self.lead = lead;
    }

    /// The sockets: one for each queue, which is readable while it has frames, and one that is readable when
    /// [`XdpReceiver::check`] must be called.
    pub fn fds(&self) -> impl Iterator<Item = &Arc<OwnedFd>> {
        self.queues.iter().filter_map(|q| q.port.fd().ok()).chain(std::iter::once(self.witness.fd()))
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The interface index of the device when it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }
    /// The device's Ethernet address when it was opened.
    pub fn ether(&self) -> Option<[u8; 6]> {
        self.ether
    }
    /// How the frames come.
    pub fn way(&self) -> Way {
        Way {
            generic: self.steering.mode() == XdpMode::Generic,
            zero_copy: self.queues.iter().all(|q| q.port.is_zero_copy()),
            queues: self.queues.len(),
            whole: self.whole,
        }
    }
    /// The maximum number of frames that can wait.
    pub fn slots(&self) -> usize {
        self.queues.len() * super::port::RING as usize
    }

    /// Makes the device promiscuous, or ends that.
    ///
    /// # Errors
    /// When the kernel does not permit it.
    pub fn set_promiscuous(&mut self, promiscuous: bool) -> Result<(), DeviceError> {
        let done = self.witness.set_promiscuous(promiscuous);
        done.map_err(|e| DeviceError::from_errno(&self.name, "make it promiscuous, or not", e))
    }

    /// Calls `each` for up to `max` received frames, without blocking. The data of each packet are a frame, after 286
    /// bytes of headroom, or less if the frame was in several buffers. Returns the number of frames.
    #[inline]
    pub fn receive(&mut self, max: usize, mut each: impl FnMut(Result<Packet, LostFrame>)) -> usize {
        let mut n = 0;
        for i in 0..self.queues.len() {
            let at = (self.first + i) % self.queues.len();
            let Some(queue) = self.queues.get_mut(at) else { break };
            n += queue.receive(max.saturating_sub(n), self.lead, &mut each);
            if n >= max {
                // The next queue comes first at the next call.
                self.first = at + 1;
                return n;
            }
        }
        if n == 0 && self.busy {
            self.queues.iter().for_each(Queue::kick);
        }
        n
    }

    /// Returns the pending error of the sockets. Each error is returned once.
    ///
    /// # Errors
    /// [`DeviceError::Down`] when the device has gone down or vanished.
    pub fn check(&mut self) -> Result<(), DeviceError> {
        for fd in self.fds() {
            let failed = |e| DeviceError::from_errno(&self.name, "receive from it", e);
            match crate::device::sys::get_option::<u32>(fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR) {
                Ok(0) => {}
                Ok(e) => return Err(failed(Errno::from_raw_os_error(i32::try_from(e).unwrap_or(i32::MAX)))),
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }

    /// The number of frames that the kernel dropped because no buffer was free, the receive ring was full, or the frame
    /// did not fit.
    pub fn drops(&self) -> u64 {
        let all = self.queues.iter().map(|q| q.port.statistics());
        all.map(|s| s.rx_dropped.saturating_add(s.rx_full)).sum()
    }
}

impl Drop for XdpReceiver {
    fn drop(&mut self) {
        for queue in &mut self.queues {
            if let Some(half) = queue.half.take() {
                queue.port.put_receive_half(half);
            }
        }
    }
}

impl Queue {
    #[inline]
    fn receive(
        &mut self,
        max: usize,
        lead: usize,
        each: &mut impl FnMut(Result<Packet, LostFrame>),
    ) -> usize {
        let Some(half) = &mut self.half else { return 0 };
        let available = half.rx.available().min(u32::try_from(max).unwrap_or(u32::MAX));
        if available == 0 {
            return 0;
        }
        let mut frames = 0;
        for _ in 0..available {
            let descriptor = half.rx.take();
            // The address is that of the buffer. Its upper 16 bits say where the frame starts in the buffer.
            let (at, headroom) = (descriptor.address & 0xffff_ffff_ffff, descriptor.address >> 48);
            half.lent = half.lent.saturating_sub(1);
            // Only the first buffer of a frame has metadata.
            let lead = if self.parts.is_empty() { lead.min(headroom as usize) } else { 0 };
            let (headroom, len) = (headroom as usize - lead, descriptor.len as usize + lead);
            // SAFETY: the kernel has passed the buffer to this program by the entry of the ring.
            let packet = unsafe { half.holder.receive(at, headroom, len) };
            if descriptor.options & Descriptor::MORE == 0 && self.parts.is_empty() {
                frames += 1;
                each(packet.ok_or(LostFrame::Invalid));
                continue;
            }
            std::hint::cold_path();
            self.parts.extend(packet);
            if descriptor.options & Descriptor::MORE == 0 {
                frames += 1;
                each(join(&mut self.parts));
            }
        }
        half.rx.release();
        self.refill(TOGETHER);
        frames
    }

    /// Gives buffers to the kernel if at least `least` are missing.
    #[inline]
    fn refill(&mut self, least: u32) {
        let Some(half) = &mut self.half else { return };
        let missing = self.wanted.saturating_sub(half.lent).min(half.fill.room());
        if missing < least {
            return;
        }
        let fill = &mut half.fill;
        let n = half.holder.fill(missing as usize, |at| fill.put(at));
        half.lent += n as u32;
        fill.publish();
        if fill.needs_wakeup() {
            self.kick();
        }
    }

    /// Makes the kernel poll the device.
    #[cold]
    fn kick(&self) {
        if let Ok(fd) = self.port.fd() {
            // There is nothing to read, and an error of the socket is read by `check`.
            let _ = rustix::net::recv(fd, &mut [0u8; 0][..], rustix::net::RecvFlags::DONTWAIT);
        }
    }
}

/// Joins the parts of a frame.
#[cold]
fn join(parts: &mut Vec<Packet>) -> Result<Packet, LostFrame> {
    let len: usize = parts.iter().map(Packet::len).sum();
    let parts = std::mem::take(parts);
    if len > LONGEST {
        return Err(LostFrame::TooLong);
    }
    let mut whole = Packet::with_headroom(DEFAULT_HEADROOM + 2, len).ok_or(LostFrame::NoBuffer)?;
    let mut rest = whole.data_mut();
    for part in &parts {
        let (to, after) = rest.split_at_mut_checked(part.len()).ok_or(LostFrame::Invalid)?;
        to.copy_from_slice(part.data());
        rest = after;
    }
    Ok(whole)
}

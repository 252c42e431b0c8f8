// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sending frames by a device, many in one system call.
#![allow(unsafe_code)]

use super::error::DeviceError;
use super::facts;
use super::packet::{open_socket, set_buffer};
use super::sys;
use super::vnet::VnetHeader;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// The most frames of one call.
pub const MAX_BATCH: usize = 64;
/// Bytes of frames that the device has not sent yet.
const SEND_BUFFER: u32 = 4 << 20;
/// Calls without a frame that needs a header, after which headers are left out: for the system they are a copy and a check a
/// frame.
const PATIENCE: u32 = 64;

/// A frame to be sent, and what is left to be done about it.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// What the device is to do.
    pub vnet: VnetHeader,
    /// The frame.
    pub data: &'a [u8],
}

impl<'a> Outgoing<'a> {
    /// A frame about which nothing is left to be done.
    pub fn plain(data: &'a [u8]) -> Outgoing<'a> {
        Outgoing { vnet: VnetHeader::NONE, data }
    }
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The socket's buffer is full; its descriptor is writable when there is room.
    Full,
    /// The device's queue is full; nothing tells when there is room.
    Congested,
    /// The device is down or gone.
    Down,
    /// The frame is longer than the device takes.
    TooLong,
    /// The system does not take this frame.
    Refused(Errno),
}

impl Refusal {
    pub(super) fn new(errno: Errno) -> Refusal {
        match errno {
            Errno::AGAIN | Errno::INTR => Refusal::Full,
            Errno::NOBUFS | Errno::NOMEM => Refusal::Congested,
            // A TUN device that is down says EIO, one that is gone EBADFD.
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV | Errno::IO | Errno::BADFD => Refusal::Down,
            Errno::MSGSIZE => Refusal::TooLong,
            other => Refusal::Refused(other),
        }
    }
    /// Whether the frame may be sent later, as it is.
    pub fn is_for_now(self) -> bool {
        matches!(self, Refusal::Full | Refusal::Congested | Refusal::Down)
    }
}

/// Whether the system takes the first bytes of what is sent for a header that tells of offloads.
fn expect_headers(fd: &OwnedFd, expect: bool) -> Result<(), Errno> {
    sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &u32::from(expect))
}

/// What became of frames that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// So many went, from the first on.
    pub count: usize,
    /// Why the next one did not; none when all went.
    pub refusal: Option<Refusal>,
}

/// A socket that sends frames by one device, past its queueing discipline.
#[derive(Debug)]
pub struct PacketSender {
    fd: Arc<OwnedFd>,
    name: String,
    index: u32,
    /// Whether frames pass the queueing discipline by.
    bypass: bool,
    /// For how many more calls the system expects a header before each frame that tells what is left to be done.
    headers: u32,
}

impl PacketSender {
    /// Opens the device of that name.
    ///
    /// # Errors
    /// When it is missing, or the system does not permit it.
    pub fn open(name: &str) -> Result<PacketSender, DeviceError> {
        let index = facts::index(name)?;
        let fd = open_socket(name)?;
        let failed = |doing| move |e| DeviceError::from_errno(name, doing, e);
        // That it understands headers was seen; the first frame that needs one has them back.
        expect_headers(&fd, false).map_err(failed("send without offload headers"))?;
        sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1u32)
            .map_err(failed("pass its queueing discipline by"))?;
        set_buffer(&fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER);
        // No protocol: nothing is received.
        match sys::bind_packet(fd.as_fd(), index, 0) {
            Ok(()) | Err(Errno::NETDOWN) => {}
            Err(e) => return Err(failed("bind to it")(e)),
        }
        Ok(PacketSender { fd: Arc::new(fd), name: name.to_owned(), index, bypass: true, headers: 0 })
    }
    /// The descriptor, which is writable while the socket's buffer has room.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its number when it was opened.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// From here on frames go by the queueing discipline: the direct way refuses super-packets that the device cannot
    /// segment by itself. Once is for ever, because frames that take both ways could overtake each other.
    #[cold]
    fn end_bypass(&mut self) -> bool {
        let was = std::mem::replace(&mut self.bypass, false);
        was && sys::set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &0u32).is_ok()
    }

    /// Lets the system expect headers as long as some of the frames need them, and some calls longer.
    #[inline]
    fn headers_for(&mut self, needed: bool) -> Result<bool, Errno> {
        match (needed, self.headers) {
            (false, 0) => {}
            (true, 0) => {
                std::hint::cold_path();
                expect_headers(&self.fd, true)?;
                self.headers = PATIENCE;
            }
            (true, _) => self.headers = PATIENCE,
            (false, 1) => {
                std::hint::cold_path();
                expect_headers(&self.fd, false)?;
                self.headers = 0;
            }
            (false, _) => self.headers -= 1,
        }
        Ok(self.headers > 0)
    }

    /// Sends frames in order, at most [`MAX_BATCH`], without waiting, until one is refused.
    pub fn send<'a>(&mut self, frames: impl Iterator<Item = Outgoing<'a>>) -> Sent {
        let mut parts = [const { MaybeUninit::<[libc::iovec; 2]>::uninit() }; MAX_BATCH];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
        let mut heads = [const { MaybeUninit::<VnetHeader>::uninit() }; MAX_BATCH];
        let (mut n, mut supers, mut needed) = (0, 0u64, false);
        for ((frame, head), part) in frames.zip(&mut heads).zip(&mut parts) {
            let head: &VnetHeader = head.write(frame.vnet);
            part.write([
                libc::iovec {
                    iov_base: std::ptr::from_ref(head).cast_mut().cast(),
                    iov_len: VnetHeader::LEN,
                },
                libc::iovec { iov_base: frame.data.as_ptr().cast_mut().cast(), iov_len: frame.data.len() },
            ]);
            supers |= u64::from(frame.vnet.is_super()) << n;
            needed |= frame.vnet.needs_checksum();
            n += 1;
        }
        let headers = match self.headers_for(needed || supers != 0) {
            Ok(headers) => headers,
            Err(e) => return Sent { count: 0, refusal: Some(Refusal::new(e)) },
        };
        for (part, message) in parts.iter_mut().take(n).zip(&mut messages) {
            // SAFETY: all bytes zero is a valid mmsghdr: null pointers and zero lengths.
            let m = message.write(unsafe { std::mem::zeroed() });
            let first = part.as_mut_ptr().cast::<libc::iovec>();
            // SAFETY: the part holds two, of which the second is the frame.
            m.msg_hdr.msg_iov = if headers { first } else { unsafe { first.add(1) } };
            m.msg_hdr.msg_iovlen = if headers { 2 } else { 1 };
        }
        let mut count = 0;
        while count < n {
            let Some(rest) = messages.get_mut(count..n) else { break };
            // SAFETY: the first `n` messages were written above; each points to its parts, and these to a header and to data
            // that outlive the call ('a, and `heads` and `parts` are not moved). Sending only reads them; the system writes nothing
            // but msg_len of the messages.
            let r = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    rest.as_mut_ptr().cast(),
                    // At most MAX_BATCH.
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(r) {
                // Fewer than asked for: why is told to who asks again.
                Ok(sent) if sent > 0 => count += sent,
                _ => {
                    let e = Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::AGAIN);
                    let is_super = supers >> count & 1 != 0;
                    if e != Errno::INTR && !(e == Errno::NOBUFS && is_super && self.end_bypass()) {
                        return Sent { count, refusal: Some(Refusal::new(e)) };
                    }
                }
            }
        }
        Sent { count, refusal: None }
    }
}

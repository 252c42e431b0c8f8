// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends frames by sendmmsg(2) on a packet socket, many in one system call.
#![allow(unsafe_code)]

use super::{MAX_BATCH, Outgoing, Refusal, Sent};
use crate::device::sys;
use crate::device::vnet::VnetHeader;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// Offload headers are switched off after this number of calls without a frame that needs one, because
/// headers cost the kernel a copy and a check per frame.
const PATIENCE: u32 = 64;

/// A socket that sends frames of any kind by sendmmsg(2).
#[derive(Debug)]
pub struct Messages {
    fd: Arc<OwnedFd>,
    /// Offload headers stay switched on for this number of further calls; 0 means that they are off.
    headers: u32,
    /// The sockets that bypass the queueing discipline: this socket, and sockets whose frames must keep their
    /// order relative to the frames of this socket. Empty after the end of the bypass.
    bypassing: Vec<Arc<OwnedFd>>,
}

/// Sets whether the kernel expects an offload header before each frame.
fn expect_headers(fd: &OwnedFd, expect: bool) -> Result<(), Errno> {
    sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &u32::from(expect))
}

impl Messages {
    /// Makes a sender from `fd`, a socket that is bound to a device and expects headers. `bypassing` are the
    /// sockets, including `fd`, that bypass the queueing discipline.
    pub fn new(fd: Arc<OwnedFd>, bypassing: Vec<Arc<OwnedFd>>) -> Result<Messages, Errno> {
        // Headers are off until the first frame that needs one.
        expect_headers(&fd, false)?;
        Ok(Messages { fd, headers: 0, bypassing })
    }
    /// The descriptor. It is writable while the socket's buffer has space.
    pub fn fd(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Ends the bypass of the queueing discipline, because the bypass refuses super-packets that the device
    /// cannot segment. This is permanent, because frames could overtake each other if some took the bypass
    /// and others did not. Returns whether the bypass was in use and has ended.
    #[cold]
    fn end_bypass(&mut self) -> bool {
        let end = |fd: Arc<OwnedFd>| {
            sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &0u32)
        };
        let ended: Vec<_> = self.bypassing.drain(..).map(end).collect();
        !ended.is_empty() && ended.iter().all(Result::is_ok)
    }

    /// Switches offload headers on when a frame needs one, and off after `PATIENCE` calls without such a frame. Returns
    /// whether offload headers are on.
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

    /// Sends frames in order, at most [`MAX_BATCH`], without blocking, until one is refused.
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
            // SAFETY: the array has two elements; the second is the frame.
            m.msg_hdr.msg_iov = if headers { first } else { unsafe { first.add(1) } };
            m.msg_hdr.msg_iovlen = if headers { 2 } else { 1 };
        }
        let mut count = 0;
        while count < n {
            let Some(rest) = messages.get_mut(count..n) else { break };
            // SAFETY: the first `n` messages were written above. Each message points to its parts, and the
            // parts point to a header and to data. All of them outlive the call: the data live for 'a, and
            // `heads` and `parts` are not moved. Sending only reads them; the kernel writes only msg_len of
            // the messages.
            let r = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    rest.as_mut_ptr().cast(),
                    // The cast is lossless: there are at most MAX_BATCH messages.
                    rest.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(r) {
                // A partial send: the next call returns the error.
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

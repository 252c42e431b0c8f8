// SPDX-License-Identifier: MIT OR Apache-2.0
//! An AF_PACKET socket on one device. It receives every frame as it was on the link.
//!
//! It is a separate implementation, so that the tests do not depend on the device layer under test.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// Requested size of the receive buffer, in bytes.
const RECEIVE_BUFFER: i32 = 16 << 20;

/// A received frame.
pub struct Frame {
    /// The bytes, with the VLAN tag reinserted.
    pub bytes: Vec<u8>,
    /// Time of arrival, in seconds since 1970.
    pub seconds: f64,
    /// Whether the transport checksum is partial (TP_STATUS_CSUMNOTREADY).
    pub partial: bool,
}

/// A packet socket.
pub struct PacketSocket(OwnedFd);

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl PacketSocket {
    /// Opens a socket on a device for all frames except those sent by this host.
    pub fn open(device: &str) -> io::Result<PacketSocket> {
        let name = CString::new(device)?;
        // SAFETY: the name is a string that ends with a zero byte and outlives the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let every = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the call takes numbers only. With protocol 0 nothing arrives before the socket is bound.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        checked(raw as isize)?;
        // SAFETY: the descriptor is open and has no other owner.
        let socket = PacketSocket(unsafe { OwnedFd::from_raw_fd(raw) });
        socket.enlarge_buffer();
        socket.set(libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        socket.set(libc::PACKET_AUXDATA, &1i32)?;
        // SAFETY: the structure consists of integers, for which zero is valid.
        let mut group: libc::packet_mreq = unsafe { zeroed() };
        (group.mr_ifindex, group.mr_type) = (index as i32, libc::PACKET_MR_PROMISC as u16);
        socket.set(libc::PACKET_ADD_MEMBERSHIP, &group)?;
        // SAFETY: the structure consists of integers, for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        (address.sll_family, address.sll_protocol, address.sll_ifindex) =
            (libc::AF_PACKET as u16, every, index as i32);
        // SAFETY: the address outlives the call, and the length is that of the address.
        let bound = unsafe {
            libc::bind(raw, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        checked(bound as isize)?;
        Ok(socket)
    }

    /// Requests a receive buffer of [`RECEIVE_BUFFER`] bytes. The default holds 256 short frames, which is
    /// too few on a busy machine. Without privileges the kernel limits the size to net.core.rmem_max.
    fn enlarge_buffer(&self) {
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            // SO_RCVBUFFORCE needs privileges.
            let _ = self.set_at(libc::SOL_SOCKET, option, &RECEIVE_BUFFER);
        }
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        self.set_at(libc::SOL_PACKET, option, value)
    }

    fn set_at<T>(&self, level: i32, option: i32, value: &T) -> io::Result<()> {
        let (fd, size) = (self.0.as_raw_fd(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the value outlives the call, and the length is that of the value.
        let done = unsafe { libc::setsockopt(fd, level, option, (&raw const *value).cast(), size) };
        checked(done as isize).map(drop)
    }

    /// A second handle to the same socket, for another thread.
    pub fn try_clone(&self) -> io::Result<PacketSocket> {
        self.0.try_clone().map(PacketSocket)
    }

    /// Returns whether [`PacketSocket::receive`] would return immediately. If `wait` is set, waits until it would, or
    /// until a signal arrives.
    pub fn ready(&self, wait: bool) -> io::Result<bool> {
        let mut one = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer refers to one structure, as the count states, and it outlives the call.
        let found = checked(unsafe { libc::poll(&raw mut one, 1, if wait { -1 } else { 0 }) } as isize);
        match found {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            other => Ok(other? > 0),
        }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: pointer and length are those of a slice that outlives the call.
        checked(unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) }).map(drop)
    }

    /// Waits for a frame. Returns `None` if the device was removed or is down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        let mut control = [0u64; 16];
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the structure consists of integers and pointers, for which zero is valid.
        let mut message: libc::msghdr = unsafe { zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) =
            (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        let len = loop {
            // SAFETY: the message refers to a buffer and a control buffer with their own lengths, which outlive
            // the call.
            match checked(unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) }) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => return Ok(None),
                other => break other?,
            }
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        let mut frame =
            Frame { bytes: buffer.get(..len).unwrap_or_default().to_vec(), seconds: now, partial: false };
        // SAFETY: the kernel filled the control buffer and set its length. The first header, if any, is inside
        // it.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
        if let Some(header) = header
            && (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
        {
            // SAFETY: a PACKET_AUXDATA message contains this structure; it need not be aligned.
            let auxiliary: libc::tpacket_auxdata =
                unsafe { libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned() };
            frame.partial = auxiliary.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0;
            if auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && frame.bytes.len() >= 12 {
                let [t0, t1] = auxiliary.tp_vlan_tpid.to_be_bytes();
                let [v0, v1] = auxiliary.tp_vlan_tci.to_be_bytes();
                frame.bytes.splice(12..12, [t0, t1, v0, v1]);
            }
        }
        Ok(Some(frame))
    }
}

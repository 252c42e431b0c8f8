// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of rtnetlink (RFC 3549) that devices need: requests with acknowledgement, dumps, attributes.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

pub const RTM_NEWLINK: u16 = 16;
pub const RTM_GETLINK: u16 = 18;
pub const RTM_SETLINK: u16 = 19;
pub const RTM_NEWADDR: u16 = 20;
pub const RTM_DELADDR: u16 = 21;
pub const RTM_GETADDR: u16 = 22;
pub const RTM_NEWROUTE: u16 = 24;
pub const RTM_DELROUTE: u16 = 25;
pub const RTM_GETROUTE: u16 = 26;
pub const RTM_NEWQDISC: u16 = 36;
pub const RTM_DELQDISC: u16 = 37;
pub const RTM_NEWTFILTER: u16 = 44;
pub const RTM_DELTFILTER: u16 = 45;
pub const RTM_GETTFILTER: u16 = 46;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
/// Flag: fail if the object already exists.
pub const EXCL: u16 = 0x200;
/// Flag: create the object if it does not exist.
pub const CREATE: u16 = 0x400;
/// Flag: replace the object if it exists.
pub const REPLACE: u16 = 0x100;

const KIND_ERROR: u16 = 2;
const KIND_DONE: u16 = 3;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;

/// A message under construction.
pub struct Message(Vec<u8>);

impl Message {
    /// Makes a request of type `kind` with the fixed part `head`.
    pub fn new(kind: u16, flags: u16, head: &[u8]) -> Message {
        let mut m = Message(Vec::with_capacity(256));
        m.0.extend([0; 4]);
        m.0.extend(kind.to_ne_bytes());
        m.0.extend((flags | REQUEST).to_ne_bytes());
        m.0.extend([0; 8]);
        m.0.extend(head);
        m.pad();
        m
    }
    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
    fn set16(&mut self, at: usize, value: usize) {
        // Messages are a few hundred bytes long, so offsets and lengths fit into 16 bits.
        if let Some(b) = self.0.get_mut(at..at.saturating_add(2)) {
            b.copy_from_slice(&u16::try_from(value).unwrap_or(u16::MAX).to_ne_bytes());
        }
    }
    /// Adds an attribute.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        let at = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.set16(at, self.0.len().saturating_sub(at));
        self.pad();
        self
    }
    /// Adds a nested attribute with the attributes that `inner` adds.
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Message) -> Message) -> Message {
        let at = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        self = inner(self);
        self.set16(at, self.0.len().saturating_sub(at));
        self
    }
    /// The bytes of the message, for tests.
    #[cfg(test)]
    pub fn bytes(self) -> Vec<u8> {
        self.finish(0)
    }
    fn finish(mut self, flags: u16) -> Vec<u8> {
        let flags = flags
            | u16::from_ne_bytes([self.0.get(6).copied().unwrap_or(0), self.0.get(7).copied().unwrap_or(0)]);
        let len = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if let Some(head) = self.0.first_chunk_mut::<8>() {
            head[..4].copy_from_slice(&len.to_ne_bytes());
            head[6..].copy_from_slice(&flags.to_ne_bytes());
        }
        self.0
    }
}

/// Reads a 32-bit number in native byte order at offset `at`.
pub fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
pub fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the kinds and values of the attributes in `bytes`.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(number16(bytes, 0)?);
        let kind = number16(bytes, 2)? & !NESTED;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A connection to the kernel's tables of links, addresses and routes.
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens a connection. Queries need no privileges.
    pub fn open() -> Result<Netlink, Errno> {
        // `None` means protocol 0, which is NETLINK_ROUTE.
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).map(Netlink)
    }
    /// Opens a connection to generic netlink.
    pub fn open_generic() -> Result<Netlink, Errno> {
        const GENERIC: u32 = 16;
        let protocol = NonZeroU32::new(GENERIC).map(Protocol::from_raw);
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol).map(Netlink)
    }
    /// The socket, for system calls that need a socket of any kind.
    pub fn socket(&self) -> &OwnedFd {
        &self.0
    }
    /// Sends a request and waits for its acknowledgement.
    pub fn request(&self, message: Message) -> Result<(), Errno> {
        self.exchange(&message.finish(ACK), |_, _| ())
    }
    /// Requests a table. Calls `each` with the kind and the content of every message of the answer.
    pub fn dump(&self, message: Message, each: impl FnMut(u16, &[u8])) -> Result<(), Errno> {
        self.exchange(&message.finish(DUMP), each)
    }
    /// Sends a request, waits for its acknowledgement, and calls `each` with the kind and the content of every message
    /// that precedes it.
    pub fn query(&self, message: Message, each: impl FnMut(u16, &[u8])) -> Result<(), Errno> {
        self.exchange(&message.finish(ACK), each)
    }
    fn exchange(&self, request: &[u8], mut each: impl FnMut(u16, &[u8])) -> Result<(), Errno> {
        send(&self.0, request, SendFlags::empty())?;
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            let (n, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = buffer.get(..n).unwrap_or_default();
            while let (Some(len), Some(kind)) = (number32(rest, 0), number16(rest, 4)) {
                let Some(body) = rest.get(HEADER..len as usize) else { return Err(Errno::BADMSG) };
                match kind {
                    KIND_DONE => return Ok(()),
                    KIND_ERROR => {
                        return match number32(body, 0).map(|e| (e as i32).wrapping_neg()) {
                            Some(0) => Ok(()),
                            Some(e) => Err(Errno::from_raw_os_error(e)),
                            None => Err(Errno::BADMSG),
                        };
                    }
                    kind => each(kind, body),
                }
                rest = rest.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_written() {
        let m = Message::new(RTM_NEWLINK, CREATE, &[7; 16])
            .attribute(3, b"eth0\0")
            .nested(18, |m| m.attribute(1, b"veth").attribute(2, &[1, 2, 3]))
            .attribute(4, &1500u32.to_ne_bytes());
        let bytes = m.finish(ACK);
        assert_eq!(number32(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(number16(&bytes, 6), Some(CREATE | REQUEST | ACK));
        let all: Vec<_> = attributes(&bytes[32..]).collect();
        assert_eq!(all[0], (3, &b"eth0\0"[..]));
        assert_eq!(attributes(all[1].1).collect::<Vec<_>>(), [(1, &b"veth"[..]), (2, &[1, 2, 3])]);
        assert_eq!(all[2], (4, &1500u32.to_ne_bytes()[..]));
        // The list ends at an attribute that is truncated or has a wrong length.
        for cut in 0..bytes.len() {
            let _ = attributes(&bytes[..cut]).count();
        }
        assert_eq!(attributes(&[0, 0, 1, 0, 9, 9]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0, 9, 9]).count(), 0);
    }

    #[test]
    fn the_kernel_answers() {
        let n = Netlink::open().unwrap();
        let mut links = 0;
        n.dump(Message::new(RTM_GETLINK, 0, &[0; 16]), |kind, _| {
            assert_eq!(kind, RTM_NEWLINK);
            links += 1;
        })
        .unwrap();
        assert!(links > 0, "there is a loopback device everywhere");
        assert_eq!(n.request(Message::new(0xfff0, 0, &[0; 16])), Err(Errno::OPNOTSUPP));
    }
}

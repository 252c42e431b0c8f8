// SPDX-License-Identifier: MIT OR Apache-2.0
//! One received frame.

use super::vnet::VnetHeader;
use rustix::io::Errno;
use std::cell::Cell;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use zerocopy::IntoBytes;

/// How a received frame was addressed, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// To this host.
    Host,
    /// To the broadcast address.
    Broadcast,
    /// To a multicast group.
    Multicast,
    /// To another host.
    OtherHost,
    /// Sent by this host.
    Outgoing,
}

impl FrameKind {
    pub(super) fn from_number(n: u8) -> FrameKind {
        match n {
            1 => FrameKind::Broadcast,
            2 => FrameKind::Multicast,
            3 => FrameKind::OtherHost,
            4 => FrameKind::Outgoing,
            _ => FrameKind::Host,
        }
    }
}

/// Length of the two Ethernet addresses in bytes. A VLAN tag is inserted after them.
const ADDRESSES: usize = 12;

/// The location of the bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bytes<'a> {
    /// In the ring.
    Here(&'a [u8]),
    /// In the socket's receive queue in the kernel.
    Behind(&'a Behind<'a>),
}

impl Bytes<'_> {
    fn len(self) -> usize {
        match self {
            Bytes::Here(data) => data.len(),
            Bytes::Behind(behind) => behind.len,
        }
    }
}

/// The next frame in a socket's receive queue, preceded by its offload header. The frame can be read only once.
#[derive(Debug)]
pub(super) struct Behind<'a> {
    fd: &'a OwnedFd,
    len: usize,
    taken: Cell<bool>,
    /// The error that a read returned instead of the frame; `None` if no read failed.
    error: Cell<Option<Errno>>,
}

impl<'a> Behind<'a> {
    /// Describes the next frame in the queue, which has `len` bytes.
    pub(super) fn new(fd: &'a OwnedFd, len: usize) -> Behind<'a> {
        Behind { fd, len, taken: Cell::new(false), error: Cell::new(None) }
    }
    /// Reads the start of the frame into `a`, and the bytes that do not fit into `a` into `b`. Further bytes are lost.
    /// Returns false if the frame is missing or shorter than expected.
    fn read(&self, [a, b]: [&mut [u8]; 2]) -> bool {
        if self.taken.replace(true) {
            return false;
        }
        let wanted = self.len.min(a.len().saturating_add(b.len())).saturating_add(VnetHeader::LEN);
        let mut vnet = VnetHeader::NONE;
        let parts = &mut [IoSliceMut::new(vnet.as_mut_bytes()), IoSliceMut::new(a), IoSliceMut::new(b)];
        let mut read = rustix::io::readv(self.fd, parts);
        // If an error is pending, a read returns the error and clears it. The frame stays in the queue. The deletion
        // of a device causes two errors, so retry twice.
        for _ in 0..2 {
            if read == Err(Errno::NETDOWN) {
                self.error.set(read.err());
                read = rustix::io::readv(self.fd, parts);
            }
        }
        read == Ok(wanted)
    }
    /// The error that a read returned instead of the frame; `None` if no read failed. The kernel does not report it
    /// again.
    pub(super) fn error(&self) -> Option<Errno> {
        self.error.get()
    }
    /// Removes the frame from the queue, so that the following frame comes first. Does nothing if `read` has already
    /// removed the frame.
    pub(super) fn discard(&self) {
        if !self.taken.get() {
            self.read([&mut [], &mut []]);
        }
    }
}

/// A received frame, in the ring or in the socket's receive queue.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    data: Bytes<'a>,
    tag: Option<[u8; 4]>,
    wire_len: usize,
    /// The time of reception, in nanoseconds since 1970.
    pub time_ns: i64,
    /// How the frame was addressed.
    pub kind: FrameKind,
    /// The outstanding offloads: checksum and segmentation.
    pub vnet: VnetHeader,
}

impl<'a> Frame<'a> {
    /// Makes a frame. A VLAN tag that the kernel removed is inserted again.
    pub(super) fn new(
        data: Bytes<'a>,
        wire_len: usize,
        tag: Option<[u8; 4]>,
        time_ns: i64,
        kind: FrameKind,
        vnet: VnetHeader,
    ) -> Frame<'a> {
        match tag.filter(|_| data.len() >= ADDRESSES) {
            Some(t) => {
                let wire_len = wire_len.saturating_add(t.len());
                Frame { data, tag: Some(t), wire_len, time_ns, kind, vnet: vnet.shifted(4) }
            }
            None => Frame { data, tag: None, wire_len, time_ns, kind, vnet },
        }
    }

    /// The number of captured bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.data.len() + if self.tag.is_some() { 4 } else { 0 }
    }
    /// Whether no byte was captured.
    pub fn is_empty(&self) -> bool {
        self.data.len() == 0
    }
    /// The length of the frame on the wire, in bytes.
    pub fn wire_len(&self) -> usize {
        self.wire_len
    }
    /// Whether the frame was truncated.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.len() < self.wire_len
    }
    /// Copies the frame, or as much as `out` holds. Returns false if the frame could not be read from the
    /// kernel. A frame that is longer than a slot of the ring can be read only once.
    #[inline]
    #[must_use]
    pub fn copy_to(&self, out: &mut [u8]) -> bool {
        match (self.tag, self.data) {
            (None, Bytes::Here(data)) => {
                copy(data, out);
                true
            }
            _ => self.copy_parts(out),
        }
    }

    #[cold]
    fn copy_parts(&self, out: &mut [u8]) -> bool {
        let tag = self.tag.as_ref().map_or(&[][..], |t| t);
        let (before, rest) = out.split_at_mut(out.len().min(ADDRESSES));
        let (place, after) = rest.split_at_mut(rest.len().min(tag.len()));
        copy(tag, place);
        match self.data {
            Bytes::Here(data) => {
                let (addresses, rest) = data.split_at(ADDRESSES.min(data.len()));
                copy(addresses, before);
                copy(rest, after);
                true
            }
            Bytes::Behind(behind) => behind.read([before, after]),
        }
    }
}

#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    let n = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tags_are_put_back() {
        let data: Vec<u8> = (0..20).collect();
        let vnet = VnetHeader { flags: 1, checksum_start: 34, header_len: 54, ..VnetHeader::NONE };
        let here = Bytes::Here(&data);
        let plain = Frame::new(here, 20, None, 0, FrameKind::Host, vnet);
        let tagged = Frame::new(here, 20, Some([0x81, 0, 0, 7]), 0, FrameKind::Host, vnet);
        let short = Frame::new(Bytes::Here(&data[..11]), 20, Some([0x81, 0, 0, 7]), 0, FrameKind::Host, vnet);
        assert_eq!((plain.len(), tagged.len(), short.len()), (20, 24, 11));
        assert_eq!((plain.wire_len(), tagged.wire_len()), (20, 24));
        assert_eq!((plain.is_cut(), tagged.is_cut(), short.is_cut()), (false, false, true));
        assert_eq!((tagged.vnet.checksum_start, tagged.vnet.header_len), (38, 58));
        let whole = [&data[..12], &[0x81, 0, 0, 7], &data[12..]].concat();
        for room in 0..40 {
            let mut out = vec![0xee; room];
            assert!(tagged.copy_to(&mut out));
            let n = room.min(24);
            assert_eq!(out[..n], whole[..n]);
            assert!(out[n..].iter().all(|b| *b == 0xee));
            let mut out = vec![0xee; room];
            assert!(plain.copy_to(&mut out));
            assert_eq!(out[..room.min(20)], data[..room.min(20)]);
        }
    }

    #[test]
    fn frames_are_fetched_from_the_system_once() {
        let vnet = VnetHeader { flags: 1, checksum_start: 34, ..VnetHeader::NONE };
        let data: Vec<u8> = (0..20).collect();
        let (ours, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::DGRAM,
            rustix::net::SocketFlags::NONBLOCK,
            None,
        )
        .unwrap();
        let send = |n: u8| {
            let message = [vnet.as_bytes(), &[n], &data[1..]].concat();
            rustix::io::write(&theirs, &message).unwrap();
        };
        (1..=5).for_each(send);
        // The five frames: complete; with a tag; longer than the buffer; discarded; shorter than the buffer.
        for (n, tag, room, len) in [
            (1, None, 20, 20),
            (2, Some([0x81, 0, 0, 7]), 24, 20),
            (3, None, 9, 20),
            (4, None, 0, 20),
            (5, None, 30, 20),
        ] {
            let behind = Behind::new(&ours, len);
            let frame = Frame::new(Bytes::Behind(&behind), len, tag, 0, FrameKind::Host, vnet);
            assert_eq!((frame.len(), frame.is_cut()), (len + if tag.is_some() { 4 } else { 0 }, false));
            if n == 4 {
                behind.discard();
            } else {
                let mut out = vec![0xee; room];
                assert!(frame.copy_to(&mut out));
                let tag = tag.as_ref().map_or(&[][..], |t| t);
                let whole = [&[n], &data[1..12], tag, &data[12..]].concat();
                assert_eq!(out[..room.min(whole.len())], whole[..room.min(whole.len())]);
            }
            assert!(!frame.copy_to(&mut [0; 20]), "it is given once");
        }
        let nothing = Behind::new(&ours, 20);
        let frame = Frame::new(Bytes::Behind(&nothing), 20, None, 0, FrameKind::Host, vnet);
        assert!(!frame.copy_to(&mut [0; 20]));
    }
}

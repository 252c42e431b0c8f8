// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets that wait to be sent. Segments of a connection that follow each other become a super-packet, if they may: it
//! stands for all of them, and whoever sends it cuts it into segments.

use super::Flow;
use super::call::LARGEST_HEADER;
use castanet_element::packet::{Offload, Packet};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::{TcpHeader, flag};
use castanet_wire::{Be16, checksum};
use std::collections::VecDeque;

/// The type of a super-packet of TCP over IPv4 (virtio 1.2, section 5.1.6).
const TCP_OVER_IPV4: u8 = 1;
/// The offset of the checksum in a TCP header.
const CHECKSUM: u16 = 16;

/// The header of a segment: the bytes, and their number. INVARIANT: the bytes after these are 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) bytes: [u8; LARGEST_HEADER],
    pub(super) length: usize,
}

impl Header {
    pub(super) fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
    /// The sum of its bytes.
    pub(super) fn sum(&self) -> u16 {
        // The number of bytes is known to the compiler, so there is no loop.
        checksum::sum(&self.bytes)
    }
    fn fields(&self) -> Option<&TcpHeader> {
        TcpHeader::from_prefix(&self.bytes)
    }
    /// Whether another header differs only in its number, and in the flag PSH.
    fn continues(&self, last: &Header) -> bool {
        let same = |range: std::ops::Range<usize>| self.get().get(range.clone()) == last.get().get(range);
        let flags = |h: &Header| h.fields().map(|h| h.flags & !flag::PSH);
        self.length == last.length
            && flags(self) == Some(flag::ACK)
            && flags(last) == Some(flag::ACK)
            && [0..4, 8..13, 14..16, 18..self.length].into_iter().all(same)
    }
}

/// The last packet, as long as segments may be added to it: each has as much data as the first one, but for the last.
#[derive(Debug)]
struct Run {
    flow: Flow,
    header: Header,
    /// The number of the next segment.
    next: u32,
    /// The data of a segment.
    size: u16,
}

/// The packets that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: VecDeque<Packet>,
    run: Option<Run>,
}

impl Outbox {
    /// Adds a packet.
    pub(super) fn push(&mut self, packet: Packet) {
        self.packets.push_back(packet);
        self.run = None;
    }
    /// Says that the last packet is a segment with so much data, to which others may be added.
    pub(super) fn begin(&mut self, flow: Flow, header: &Header, data: usize) {
        self.run = header.fields().filter(|h| data > 0 && h.flags == flag::ACK).and_then(|h| {
            let next = h.seq.get().wrapping_add(data as u32);
            Some(Run { flow, header: *header, next, size: u16::try_from(data).ok()? })
        });
    }
    /// Adds a segment to the last packet, if that has this type of service. `copy` copies its data, of so many bytes. Returns false if it does not fit.
    pub(super) fn append(
        &mut self,
        (flow, tos): (Flow, u8),
        header: &Header,
        data: usize,
        copy: impl FnOnce(&mut [u8]),
    ) -> bool {
        let (Some(run), Some(p), Some(h)) = (&mut self.run, self.packets.back_mut(), header.fields()) else {
            return false;
        };
        let follows = run.flow == flow && run.next == h.seq.get() && header.continues(&run.header);
        let (before, length) = (p.len(), p.len() + data);
        if !follows
            || data == 0
            || p.data().get(1) != Some(&tos)
            || data > usize::from(run.size)
            || length > usize::from(u16::MAX)
            || !p.put(data)
        {
            return false;
        }
        let Some((packet, place)) = p.data_mut().split_at_mut_checked(before) else { return false };
        copy(place);
        complete(packet, length, h.flags);
        let checksum = Some((Ipv4Header::LEN as u16, CHECKSUM));
        p.set_offload(Some(Offload { checksum, segments: Some((TCP_OVER_IPV4, run.size)) }));
        run.next = run.next.wrapping_add(data as u32);
        if data < usize::from(run.size) || h.flags != flag::ACK {
            self.run = None;
        }
        true
    }
    /// Takes the next packet.
    pub(super) fn take(&mut self) -> Option<Packet> {
        self.run = None;
        self.packets.pop_front()
    }
    /// Takes all packets.
    pub(super) fn take_all(&mut self) -> std::collections::vec_deque::Drain<'_, Packet> {
        self.run = None;
        self.packets.drain(..)
    }
}

/// Brings the headers of a super-packet up to date, whose last segment has these flags. The TCP checksum becomes a partial one.
fn complete(packet: &mut [u8], length: usize, flags: u8) {
    let Some((ip, segment)) = packet.split_first_chunk_mut::<{ Ipv4Header::LEN }>() else { return };
    let (Some(ip), Some(tcp)) = (Ipv4Header::from_prefix_mut(ip), TcpHeader::from_prefix_mut(segment)) else {
        return;
    };
    ip.total_len = Be16::new(length as u16);
    ip.set_checksum20();
    tcp.flags = flags;
    let length = (length - Ipv4Header::LEN) as u16;
    tcp.checksum = Be16::new(checksum::pseudo_header_sum(ip.src.get(), ip.dst.get(), protocol::TCP, length));
}

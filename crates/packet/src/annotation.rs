// SPDX-License-Identifier: MIT OR Apache-2.0
//! Annotations: 48 user bytes accessed by offset, header positions, packet type, timestamp.

use crate::chunk::{COLD, KIND, TRACED, UNSET};
use crate::packet::Packet;
use std::net::Ipv4Addr;

/// The packet type: how a packet was addressed on its link, as the kernel classifies it (PACKET_HOST and others).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// Sent to this host.
    #[default]
    Host = 0,
    /// Sent to all hosts.
    Broadcast = 1,
    /// Sent to a multicast group.
    Multicast = 2,
    /// Sent to another host.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
    /// Looped back.
    Loopback = 5,
    /// Forwarded by hardware or a fast path of the kernel.
    FastRoute = 6,
}

impl PacketType {
    fn from_number(n: u8) -> PacketType {
        match n {
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            4 => PacketType::Outgoing,
            5 => PacketType::Loopback,
            6 => PacketType::FastRoute,
            _ => PacketType::Host,
        }
    }
}

const HOT: usize = 24;
const DST_IP: usize = 0;
const PAINT: usize = 16;

impl Packet {
    /// All annotation bytes.
    pub fn annotations(&self) -> [u8; 48] {
        let mut out = self.meta().anno;
        if self.meta().flags & COLD == 0 {
            out[HOT..].fill(0);
        }
        out
    }

    /// The `N` annotation bytes at `offset`; zeros if they are out of range.
    #[inline]
    pub fn anno<const N: usize>(&self, offset: usize) -> [u8; N] {
        let m = self.meta();
        let mut bytes = m.anno.get(offset..).and_then(|a| a.first_chunk()).copied().unwrap_or([0; N]);
        if offset.saturating_add(N) > HOT && m.flags & COLD == 0 {
            // Without the flag [`COLD`], the second cache line holds values of an earlier packet, so its bytes are
            // returned as zeros.
            let from = HOT.saturating_sub(offset);
            bytes.iter_mut().skip(from).for_each(|b| *b = 0);
        }
        bytes
    }

    /// Sets the `N` annotation bytes at `offset`. Does nothing if they are out of range.
    #[inline]
    pub fn set_anno<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        if offset.saturating_add(N) > HOT {
            self.warm();
        }
        if let Some(a) = self.meta_mut().anno.get_mut(offset..).and_then(|a| a.first_chunk_mut()) {
            *a = value;
        }
    }

    /// Clears the annotations in the second cache line before their first use. Until then they hold values of
    /// an earlier packet.
    #[inline]
    fn warm(&mut self) {
        let m = self.meta_mut();
        if m.flags & COLD == 0 {
            m.flags |= COLD;
            m.anno[HOT..].fill(0);
            m.timestamp = 0;
        }
    }

    /// A one-byte annotation.
    #[inline]
    pub fn anno_u8(&self, offset: usize) -> u8 {
        u8::from_ne_bytes(self.anno(offset))
    }
    /// Sets a one-byte annotation.
    #[inline]
    pub fn set_anno_u8(&mut self, offset: usize, value: u8) {
        self.set_anno(offset, [value]);
    }
    /// A four-byte annotation in native byte order.
    #[inline]
    pub fn anno_u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.anno(offset))
    }
    /// Sets a four-byte annotation in native byte order.
    #[inline]
    pub fn set_anno_u32(&mut self, offset: usize, value: u32) {
        self.set_anno(offset, value.to_ne_bytes());
    }
    /// The destination address annotation, in host order.
    #[inline]
    pub fn dst_ip(&self) -> u32 {
        u32::from_be_bytes(self.anno(DST_IP))
    }
    /// Sets the destination address annotation, in host order.
    #[inline]
    pub fn set_dst_ip(&mut self, value: u32) {
        self.set_anno(DST_IP, value.to_be_bytes());
    }
    /// The destination address annotation.
    pub fn dst_addr(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.dst_ip())
    }
    /// The paint annotation.
    #[inline]
    pub fn paint(&self) -> u8 {
        self.anno_u8(PAINT)
    }
    /// Sets the paint annotation.
    #[inline]
    pub fn set_paint(&mut self, colour: u8) {
        self.set_anno_u8(PAINT, colour);
    }
    /// The packet type annotation.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        PacketType::from_number(self.meta().flags >> KIND)
    }
    /// Sets the packet type annotation.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        let m = self.meta_mut();
        m.flags = m.flags & !(u8::MAX << KIND) | (kind as u8) << KIND;
    }
    /// The number of the turn in which a task sent the packet, if the task has had several turns at once. The run loop
    /// sets it, and puts packets of several tasks in the order of their turns.
    #[inline(always)]
    pub fn turn(&self) -> u8 {
        self.meta().turn
    }
    /// Sets the number of the turn in which the packet was sent. A new packet that an element sends because of another
    /// packet gets the number of that packet.
    #[inline(always)]
    pub fn set_turn(&mut self, turn: u8) {
        self.meta_mut().turn = turn;
    }
    /// The timestamp in nanoseconds since 1970; 0 if not set.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        if self.meta().flags & COLD == 0 { 0 } else { self.meta().timestamp }
    }
    /// Sets the timestamp, in nanoseconds since 1970.
    #[inline]
    pub fn set_timestamp(&mut self, ns: i64) {
        self.warm();
        self.meta_mut().timestamp = ns;
    }
    /// Increments the number of times that the packet has passed through a cycle of the configuration.
    /// Returns the new number.
    #[inline]
    pub fn count_hop(&mut self) -> u16 {
        let m = self.meta_mut();
        m.hops = m.hops.saturating_add(1);
        m.hops
    }

    /// Sets the MAC header to `offset` bytes from the start of the data; a negative offset is before the data. Does
    /// nothing if the position is outside of the buffer.
    #[inline(always)]
    pub fn set_mac_header(&mut self, offset: isize) {
        if offset == 0 {
            // INVARIANT: the data begin in the buffer or at its end.
            let m = self.meta_mut();
            m.mac = m.data;
            return;
        }
        if let Some(at) = self.position(offset) {
            self.meta_mut().mac = at;
        }
    }
    /// Sets the network header to `offset` bytes from the start of the data, with a length of `length` bytes. A
    /// header that extends beyond the data is truncated. Does nothing if `offset` is beyond the data.
    #[inline]
    pub fn set_network_header(&mut self, offset: usize, length: usize) {
        let m = self.meta_mut();
        let end = offset.saturating_add(length);
        if end <= m.len as usize {
            m.network = m.data + offset as u32;
            m.transport = m.data + end as u32;
        } else if offset <= m.len as usize {
            // The header extends beyond the data: it is cut off at the end of the data, so the transport header is
            // empty.
            m.network = m.data + offset as u32;
            m.transport = m.data + m.len;
        }
    }
    /// Marks the MAC header as not set.
    pub fn clear_mac_header(&mut self) {
        self.meta_mut().mac = UNSET;
    }
    fn position(&self, offset: isize) -> Option<u32> {
        let at = (self.meta().data as usize).checked_add_signed(offset)?;
        u32::try_from(at).ok().filter(|&a| a <= self.meta().cap)
    }
    /// Whether no other packet shares the buffer, and the packet has no offloads, is not traced, and has the packet type
    /// [`PacketType::Host`].
    pub fn is_plain(&self) -> bool {
        self.meta().flags & !crate::layout::PLAIN == 0
    }
    /// The offset of the network header from the start of the data, negative if the header is before the data. `None`
    /// if the header is not set.
    pub fn network_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().network)
    }
    /// The offset of the transport header from the start of the data, negative if the header is before the data. `None`
    /// if the header is not set.
    pub fn transport_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().transport)
    }
    /// The offset of the MAC header from the start of the data, negative if the header is before the data. `None` if
    /// the header is not set.
    pub fn mac_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().mac)
    }
    fn offset_of(&self, at: u32) -> Option<isize> {
        (at != UNSET).then(|| at as isize - self.meta().data as isize)
    }
    /// The length of the network header, options included; 0 if the header is not set.
    pub fn network_header_length(&self) -> usize {
        let m = self.meta();
        if m.network == UNSET { 0 } else { m.transport.saturating_sub(m.network) as usize }
    }
    /// The mark of a traced packet, by which a router recognises the packet wherever it meets it. 0 if the packet is not
    /// traced. Clones have the mark of their original.
    #[inline(always)]
    pub fn mark(&self) -> u32 {
        if self.meta().flags & TRACED == 0 { 0 } else { self.cold_mark() }
    }
    #[cold]
    fn cold_mark(&self) -> u32 {
        let [a, b, c] = self.meta().mark;
        u32::from_le_bytes([a, b, c, 0])
    }
    /// Sets the mark of a traced packet, of which the lowest 24 bits count. 0 ends the trace of the packet.
    pub fn set_mark(&mut self, mark: u32) {
        let [a, b, c, _] = mark.to_le_bytes();
        let m = self.meta_mut();
        m.mark = [a, b, c];
        m.flags = if m.mark == [0; 3] { m.flags & !TRACED } else { m.flags | TRACED };
    }

    /// Copies all annotations except the header positions. Also copies the number of the turn ([`Packet::turn`]).
    pub fn copy_annotations(&mut self, from: &Packet) {
        const COPIED: u8 = COLD | u8::MAX << KIND;
        let (anno, time, flags, turn) =
            (from.annotations(), from.timestamp(), from.meta().flags, from.meta().turn);
        let m = self.meta_mut();
        m.anno = anno;
        m.timestamp = time;
        m.turn = turn;
        m.flags = m.flags & !COPIED | flags & COPIED;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn packet() -> Packet {
        Packet::copy_of(&[7; 60]).unwrap()
    }

    #[test]
    fn every_packet_type_is_kept() {
        use PacketType::*;
        let mut p = packet();
        for kind in [Broadcast, Multicast, OtherHost, Outgoing, Loopback, FastRoute, Host] {
            p.set_packet_type(kind);
            assert_eq!(p.packet_type(), kind);
        }
        assert_eq!(PacketType::from_number(7), Host);
    }

    #[test]
    fn named_annotations_have_their_places() {
        let mut p = packet();
        p.set_dst_ip(0x0a000102);
        p.set_paint(9);
        p.set_anno_u32(20, 0x01020304);
        assert_eq!((p.dst_ip(), p.dst_addr(), p.paint()), (0x0a000102, Ipv4Addr::new(10, 0, 1, 2), 9));
        assert_eq!((p.anno_u8(16), p.anno_u32(20)), (9, 0x01020304));
        assert_eq!((p.anno(0), p.anno(20)), ([10, 0, 1, 2], 0x01020304u32.to_ne_bytes()));
    }

    /// Setting the first 24 annotation bytes does not touch the second cache line. Setting a later byte or the
    /// timestamp first clears the line, unless the line is in use already.
    #[test]
    fn the_second_line_is_written_only_when_needed() {
        let used = || {
            let mut p = packet();
            p.set_anno(24, [0xff; 24]);
            p.set_timestamp(5);
            assert_eq!((p.anno(24), p.timestamp()), ([0xff; 24], 5));
        };
        used();
        let mut p = packet();
        p.set_anno(20, [1u8; 4]);
        assert_eq!(p.meta().flags & COLD, 0);
        p.set_anno_u8(47, 2);
        assert_eq!((p.meta().flags & COLD, p.timestamp(), p.anno(24)), (COLD, 0, [0; 23]));
        p.set_anno_u8(24, 3);
        assert_eq!((p.anno_u8(24), p.anno_u8(47)), (3, 2), "the line is cleared once");
        drop(p);
        used();
        let mut p = packet();
        p.set_timestamp(6);
        assert_eq!((p.timestamp(), p.anno(24)), (6, [0; 24]));
    }

    #[test]
    fn clones_and_copies_of_a_traced_packet_have_its_mark() {
        let mut p = packet();
        assert_eq!(p.mark(), 0);
        p.set_mark(0x12_3456);
        p.set_packet_type(PacketType::Outgoing);
        let mut clone = p.share().unwrap();
        assert_eq!((p.mark(), clone.mark()), (0x12_3456, 0x12_3456));
        // A write to the clone gives it a buffer of its own.
        clone.data_mut()[0] = 1;
        assert_eq!((clone.mark(), clone.packet_type()), (0x12_3456, PacketType::Outgoing));
        p.set_mark(1 << 24);
        assert_eq!((p.mark(), clone.mark()), (0, 0x12_3456), "the mark has 24 bits");
        // A packet with its annotations is another packet.
        let mut other = packet();
        other.copy_annotations(&clone);
        assert_eq!(other.mark(), 0);
        // The chunk of a packet that has ended is used again.
        drop((p, clone, other));
        assert!((0..8).map(|_| packet()).collect::<Vec<_>>().iter().all(|p| p.mark() == 0));
    }

    #[test]
    fn hops_are_counted_up_to_the_most() {
        let mut p = packet();
        assert_eq!((p.count_hop(), p.count_hop()), (1, 2));
        p.meta_mut().hops = u16::MAX - 1;
        assert_eq!((p.count_hop(), p.count_hop()), (u16::MAX, u16::MAX));
    }

    #[test]
    fn headers_lie_inside_the_data_or_are_cut_short() {
        // Each case: the offset and length of the header, and the resulting offsets of the network and
        // transport headers.
        let cases = [
            ((0, 20), Some((0, 20))),
            ((14, 20), Some((14, 34))),
            ((40, 20), Some((40, 60))),
            ((40, 21), Some((40, 60))),
            ((40, usize::MAX), Some((40, 60))),
            ((60, 0), Some((60, 60))),
            ((60, 20), Some((60, 60))),
            ((61, 0), None),
            ((usize::MAX, 1), None),
        ];
        for ((offset, length), want) in cases {
            let mut p = packet();
            assert_eq!(
                (p.network_offset(), p.transport_offset(), p.network_header_length()),
                (None, None, 0)
            );
            p.set_network_header(offset, length);
            assert_eq!(p.network_offset().zip(p.transport_offset()), want, "{offset} {length}");
            assert_eq!(p.network_header_length() as isize, want.map_or(0, |(n, t)| t - n));
        }
    }

    #[test]
    fn the_mac_header_lies_inside_the_buffer() {
        for (offset, inside) in [(0, true), (-28, true), (-29, false), (2020, true), (2021, false)] {
            let mut p = packet();
            p.set_mac_header(offset);
            assert_eq!(p.mac_offset(), inside.then_some(offset));
            p.set_mac_header(isize::MIN);
            p.set_mac_header(isize::MAX);
            assert_eq!(p.mac_offset(), inside.then_some(offset), "left alone");
            p.clear_mac_header();
            assert_eq!(p.mac_offset(), None);
        }
    }

    #[test]
    fn copies_take_all_annotations_and_leave_the_rest() {
        let blank = packet();
        let mut full = packet();
        full.set_anno(0, [1; 48]);
        full.set_timestamp(77);
        full.set_packet_type(PacketType::Multicast);
        full.set_mac_header(3);
        let mut p = packet();
        p.set_network_header(14, 20);
        let clone = p.share().unwrap();
        for (from, second_line) in [(&full, COLD), (&blank, 0), (&full, COLD)] {
            p.copy_annotations(from);
            assert_eq!(p.annotations(), from.annotations());
            assert_eq!((p.timestamp(), p.packet_type()), (from.timestamp(), from.packet_type()));
            assert_eq!(
                (p.mac_offset(), p.network_offset(), p.transport_offset()),
                (None, Some(14), Some(34))
            );
            assert_eq!((p.meta().flags & COLD, p.is_shared()), (second_line, true));
        }
        drop(clone);
        assert!(!p.is_shared());
    }
}

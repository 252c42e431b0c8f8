// SPDX-License-Identifier: MIT OR Apache-2.0
//! Annotations: 48 bytes by offset, header positions, packet type, timestamp.

use crate::chunk::{COLD, UNSET};
use crate::packet::Packet;
use std::net::Ipv4Addr;

/// How a packet was addressed at link level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// To this host.
    #[default]
    Host = 0,
    /// To all.
    Broadcast = 1,
    /// To a group.
    Multicast = 2,
    /// To another host.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
    /// Looped back.
    Loopback = 5,
}

impl PacketType {
    fn from_number(n: u8) -> PacketType {
        match n {
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            4 => PacketType::Outgoing,
            5 => PacketType::Loopback,
            _ => PacketType::Host,
        }
    }
}

const HOT: usize = 24;
const DST_IP: usize = 0;
const PAINT: usize = 16;

impl Packet {
    /// The annotation bytes.
    pub fn annotations(&self) -> [u8; 48] {
        let mut out = self.meta().anno;
        if self.meta().flags & COLD == 0 {
            out[HOT..].fill(0);
        }
        out
    }

    /// `N` bytes of annotations; zero where they would lie outside.
    #[inline]
    pub fn anno<const N: usize>(&self, offset: usize) -> [u8; N] {
        let m = self.meta();
        let mut bytes = m.anno.get(offset..).and_then(|a| a.first_chunk()).copied().unwrap_or([0; N]);
        if offset.saturating_add(N) > HOT && m.flags & COLD == 0 {
            // What an earlier packet left in the second line does not count.
            let from = HOT.saturating_sub(offset);
            bytes.iter_mut().skip(from).for_each(|b| *b = 0);
        }
        bytes
    }

    /// Sets `N` bytes of annotations; nothing happens where they would lie outside.
    #[inline]
    pub fn set_anno<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        if offset.saturating_add(N) > HOT {
            self.warm();
        }
        if let Some(a) = self.meta_mut().anno.get_mut(offset..).and_then(|a| a.first_chunk_mut()) {
            *a = value;
        }
    }

    /// Makes the second line valid: it keeps what an earlier packet left until somebody sets something there.
    #[inline]
    fn warm(&mut self) {
        let m = self.meta_mut();
        if m.flags & COLD == 0 {
            m.flags |= COLD;
            m.anno[HOT..].fill(0);
            m.timestamp = 0;
        }
    }

    /// An annotation of one byte.
    #[inline]
    pub fn anno_u8(&self, offset: usize) -> u8 {
        u8::from_ne_bytes(self.anno(offset))
    }
    /// Sets an annotation of one byte.
    #[inline]
    pub fn set_anno_u8(&mut self, offset: usize, value: u8) {
        self.set_anno(offset, [value]);
    }
    /// An annotation of four bytes in the machine's order.
    #[inline]
    pub fn anno_u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.anno(offset))
    }
    /// Sets an annotation of four bytes in the machine's order.
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
    /// How the packet was addressed at link level.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        PacketType::from_number(self.meta().kind)
    }
    /// Sets how the packet was addressed at link level.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        self.meta_mut().kind = kind as u8;
    }
    /// Nanoseconds since 1970; 0 when not set.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        if self.meta().flags & COLD == 0 { 0 } else { self.meta().timestamp }
    }
    /// Sets the timestamp.
    #[inline]
    pub fn set_timestamp(&mut self, ns: i64) {
        self.warm();
        self.meta_mut().timestamp = ns;
    }
    /// Counts one more round of a cycle and returns how many there were.
    #[inline]
    pub fn count_hop(&mut self) -> u16 {
        let m = self.meta_mut();
        m.hops = m.hops.saturating_add(1);
        m.hops
    }

    /// Says that the MAC header starts `offset` bytes into the data (negative: before it).
    pub fn set_mac_header(&mut self, offset: isize) {
        if let Some(at) = self.position(offset) {
            self.meta_mut().mac = at;
        }
    }
    /// Says that the network header starts `offset` bytes into the data and is `length` bytes long.
    #[inline]
    pub fn set_network_header(&mut self, offset: usize, length: usize) {
        let m = self.meta_mut();
        let end = offset.saturating_add(length);
        if end <= m.len as usize {
            m.network = m.data + offset as u32;
            m.transport = m.data + end as u32;
        } else if offset <= m.len as usize {
            // A header cut short: it is there, what follows it is not.
            m.network = m.data + offset as u32;
            m.transport = m.data + m.len;
        }
    }
    /// Forgets the network and transport headers.
    pub fn clear_network_header(&mut self) {
        let m = self.meta_mut();
        m.network = UNSET;
        m.transport = UNSET;
    }
    /// Forgets the MAC header.
    pub fn clear_mac_header(&mut self) {
        self.meta_mut().mac = UNSET;
    }
    fn position(&self, offset: isize) -> Option<u32> {
        let at = (self.meta().data as usize).checked_add_signed(offset)?;
        u32::try_from(at).ok().filter(|&a| a <= self.meta().cap)
    }
    /// Where the network header starts, in bytes from the data (negative: before it).
    pub fn network_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().network)
    }
    /// Where the transport header starts, in bytes from the data (negative: before it).
    pub fn transport_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().transport)
    }
    /// Where the MAC header starts, in bytes from the data (negative: before it).
    pub fn mac_offset(&self) -> Option<isize> {
        self.offset_of(self.meta().mac)
    }
    fn offset_of(&self, at: u32) -> Option<isize> {
        (at != UNSET).then(|| at as isize - self.meta().data as isize)
    }
    /// Bytes of the network header, options included.
    pub fn network_header_length(&self) -> usize {
        let m = self.meta();
        if m.network == UNSET { 0 } else { m.transport.saturating_sub(m.network) as usize }
    }
    /// Copies all annotations, header positions left out.
    pub fn copy_annotations(&mut self, from: &Packet) {
        let (anno, kind, time, cold) =
            (from.annotations(), from.meta().kind, from.timestamp(), from.meta().flags & COLD);
        let m = self.meta_mut();
        m.anno = anno;
        m.kind = kind;
        m.timestamp = time;
        m.flags = m.flags & !COLD | cold;
    }
}

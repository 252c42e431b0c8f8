// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that devices leave to software: partial checksums, and super-packets that stand for many segments.

use crate::chunk::OFFLOAD;
use crate::packet::Packet;

/// The work still to be done on a packet before it can be sent. Offsets count from the first byte of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The offset of the transport header, and the offset of the checksum field in that header. The field holds
    /// only the sum of the pseudo-header, not inverted.
    pub checksum: Option<(u16, u16)>,
    /// For a super-packet: its type, with the values of virtio 1.2 section 5.1.6, and the payload size of each segment.
    pub segments: Option<(u8, u16)>,
}

impl Packet {
    /// Whether the packet may have offloads.
    #[inline(always)]
    pub fn has_offload(&self) -> bool {
        self.meta().flags & OFFLOAD != 0
    }
    /// The offloads of the packet. `None` for an ordinary packet, and for a packet from which the header with the
    /// partial checksum has been stripped.
    #[inline(always)]
    pub fn offload(&self) -> Option<Offload> {
        if self.meta().flags & OFFLOAD == 0 { None } else { self.known_offload() }
    }
    #[cold]
    #[inline(never)]
    fn known_offload(&self) -> Option<Offload> {
        let m = self.meta();
        let start = m.offload_start.checked_sub(m.data).and_then(|s| u16::try_from(s).ok());
        let checksum = if m.offload_field == u16::MAX { None } else { Some((start?, m.offload_field)) };
        let segments = (m.offload_kind != 0).then_some((m.offload_kind, m.offload_size));
        Some(Offload { checksum, segments })
    }
    /// Sets the offloads.
    pub fn set_offload(&mut self, offload: Option<Offload>) {
        let m = self.meta_mut();
        let Some(o) = offload.filter(|o| *o != Offload::default()) else {
            m.flags &= !OFFLOAD;
            return;
        };
        m.flags |= OFFLOAD;
        let (start, field) = o.checksum.unwrap_or((0, u16::MAX));
        // The sum cannot overflow: the headroom is at most the size of a buffer, which is far below 2^31
        // bytes.
        (m.offload_start, m.offload_field) = (m.data + u32::from(start), field);
        (m.offload_kind, m.offload_size) = o.segments.unwrap_or((0, 0));
    }
    /// The number of packets and the number of bytes that this packet counts as: 1 and its length. For a
    /// super-packet, these are the numbers for all of its segments together, headers included.
    #[inline(always)]
    pub fn segments(&self) -> (u64, u64) {
        if self.meta().flags & OFFLOAD == 0 { (1, self.len() as u64) } else { self.count_segments() }
    }
    /// For a super-packet: the length of all headers, and the maximum payload of a segment.
    pub fn super_packet(&self) -> Option<(usize, u16)> {
        let Offload { checksum: Some((start, field)), segments: Some((_, size)) } = self.offload()? else {
            return None;
        };
        let start = usize::from(start);
        // The offset of the checksum field shows the protocol: 16 in a TCP header of at least 20 bytes, 6 in
        // a UDP header of 8 bytes.
        let header = match field {
            16 => usize::from(self.data().get(start + 12).copied().unwrap_or(0) >> 4) * 4,
            _ => 8,
        };
        Some((start + header, size))
    }
    #[cold]
    #[inline(never)]
    fn count_segments(&self) -> (u64, u64) {
        let whole = (1, self.len() as u64);
        let Some((headers, size @ 1..)) = self.super_packet() else { return whole };
        let headers = headers as u64;
        let Some(payload) = whole.1.checked_sub(headers) else { return whole };
        let n = payload.div_ceil(u64::from(size)).max(1);
        (n, whole.1 + (n - 1) * headers)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What devices leave to be done: partial checksums, and super-packets that stand for many segments.

use crate::chunk::OFFLOAD;
use crate::packet::Packet;

/// What is still to be done about a packet before it is one of the network. Offsets count from the first byte of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Where the transport header starts, whose checksum field holds the sum of the pseudo header only (not inverted), and
    /// where in that header the field is.
    pub checksum: Option<(u16, u16)>,
    /// For a super-packet its kind, as the system numbers them (virtio 1.2 section 5.1.6), and the bytes of payload for each
    /// segment.
    pub segments: Option<(u8, u16)>,
}

impl Packet {
    /// Whether something may still be to be done.
    #[inline(always)]
    pub fn has_offload(&self) -> bool {
        self.meta().flags & OFFLOAD != 0
    }
    /// What is still to be done; none for an ordinary packet, and none when the headers it is about were cut off.
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
    /// Says what is still to be done.
    pub fn set_offload(&mut self, offload: Option<Offload>) {
        let m = self.meta_mut();
        let Some(o) = offload.filter(|o| *o != Offload::default()) else {
            m.flags &= !OFFLOAD;
            return;
        };
        m.flags |= OFFLOAD;
        let (start, field) = o.checksum.unwrap_or((0, u16::MAX));
        // A frame and its headroom fit into a buffer, which is far smaller than 2^31 bytes.
        (m.offload_start, m.offload_field) = (m.data + u32::from(start), field);
        (m.offload_kind, m.offload_size) = o.segments.unwrap_or((0, 0));
    }
    /// As how many packets, and with how many bytes in all, this packet counts: those of its segments.
    #[inline(always)]
    pub fn segments(&self) -> (u64, u64) {
        if self.meta().flags & OFFLOAD == 0 { (1, self.len() as u64) } else { self.count_segments() }
    }
    /// For a super-packet the bytes of all headers, and the most bytes of payload of a segment.
    pub fn super_packet(&self) -> Option<(usize, u16)> {
        let Offload { checksum: Some((start, field)), segments: Some((_, size)) } = self.offload()? else {
            return None;
        };
        let start = usize::from(start);
        // The checksum of TCP is at 16 of at least 20 bytes, that of UDP at 6 of 8.
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

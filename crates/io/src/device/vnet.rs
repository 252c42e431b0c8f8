// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header with which the kernel describes offloads (virtio 1.2 section 5.1.6): partial checksums and super-packets.

use castanet_wire::checksum;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The outstanding offloads of a frame. Offsets count from the start of the frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct VnetHeader {
    /// The flags [`VnetHeader::NEEDS_CHECKSUM`] and [`VnetHeader::CHECKSUM_VALID`].
    pub flags: u8,
    /// The kind of super-packet; 0 for an ordinary packet.
    pub gso_type: u8,
    /// Length of all headers in bytes. This is only a hint.
    pub header_len: u16,
    /// Length of the payload of each segment, in bytes.
    pub gso_size: u16,
    /// The offset of the first byte that the checksum covers: the start of the transport header.
    pub checksum_start: u16,
    /// The offset of the checksum field, counted from `checksum_start`.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// Length in bytes of this header, which precedes each frame.
    pub const LEN: usize = size_of::<VnetHeader>();
    /// No offloads.
    pub const NONE: VnetHeader = VnetHeader {
        flags: 0,
        gso_type: 0,
        header_len: 0,
        gso_size: 0,
        checksum_start: 0,
        checksum_offset: 0,
    };
    /// Flag: the checksum field holds only the sum of the pseudo header.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// Flag: the checksum has been verified.
    pub const CHECKSUM_VALID: u8 = 2;
    /// Kind of super-packet: TCP over IPv4.
    pub const TCP4: u8 = 1;
    /// Kind of super-packet: a UDP datagram to be split into IP fragments.
    pub const UDP_FRAGMENTS: u8 = 3;
    /// Kind of super-packet: TCP over IPv6.
    pub const TCP6: u8 = 4;
    /// Kind of super-packet: UDP, to be split into datagrams of equal size.
    pub const UDP: u8 = 5;
    /// Additional bit for TCP super-packets: CWR is set.
    pub const ECN: u8 = 0x80;

    /// Whether the checksum is partial.
    pub fn needs_checksum(&self) -> bool {
        self.flags & VnetHeader::NEEDS_CHECKSUM != 0
    }
    /// Whether the frame is a super-packet.
    pub fn is_super(&self) -> bool {
        self.gso_type & !VnetHeader::ECN != 0
    }
    /// Returns the header for the same frame with `n` more bytes before the transport header.
    #[must_use]
    pub fn shifted(mut self, n: u16) -> VnetHeader {
        if self.needs_checksum() {
            self.checksum_start = self.checksum_start.saturating_add(n);
        }
        if self.header_len > 0 {
            self.header_len = self.header_len.saturating_add(n);
        }
        self
    }
}

/// The offset of the checksum field in a UDP header.
const UDP_CHECKSUM: u16 = 6;

/// Why an offload could not be done in software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOffload {
    /// The checksum would lie outside of the frame.
    #[error("checksum outside of the frame")]
    ChecksumOutside,
    /// The headers are truncated or do not match the kind of super-packet.
    #[error("headers of a super-packet that contradict its kind")]
    Headers,
    /// An unknown kind of super-packet.
    #[error("unknown kind of super-packet")]
    Kind,
    /// A super-packet without a segment size.
    #[error("super-packet without a segment size")]
    Size,
}

/// Completes a partial checksum, if the frame has one.
///
/// The checksum field holds the sum of the pseudo header, not inverted. So the checksum over everything from the
/// transport header on, including this field, is correct (RFC 793 section 3.1, RFC 768). UDP sends a checksum of zero
/// as all ones (RFC 768); other protocols send it as it is (RFC 1624 section 3). The offset of the checksum field shows
/// the protocol.
///
/// # Errors
/// When the checksum field is outside of the frame. In this case the frame is not changed.
pub fn complete(frame: &mut [u8], vnet: &VnetHeader) -> Result<(), BadOffload> {
    if !vnet.needs_checksum() {
        return Ok(());
    }
    let covered = frame.get_mut(usize::from(vnet.checksum_start)..).ok_or(BadOffload::ChecksumOutside)?;
    let at = usize::from(vnet.checksum_offset);
    if covered.len() < at.saturating_add(2) {
        return Err(BadOffload::ChecksumOutside);
    }
    let sum = match checksum::checksum(covered) {
        0 if vnet.checksum_offset == UDP_CHECKSUM => 0xffff,
        sum => sum,
    };
    if let Some(field) = covered.get_mut(at..).and_then(|c| c.first_chunk_mut()) {
        *field = sum.to_be_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The one's complement sum of 16-bit words (RFC 1071).
    fn slow_sum(bytes: &[u8], start: u32) -> u16 {
        let mut sum = start;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn partial(payload: &[u8], udp: bool) -> (Vec<u8>, Vec<u8>, VnetHeader) {
        let b = etherparse::PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9);
        let mut whole = Vec::new();
        if udp {
            b.udp(1, 2).write(&mut whole, payload).unwrap();
        } else {
            b.tcp(1, 2, 3, 4).write(&mut whole, payload).unwrap();
        }
        let offset = if udp { 6 } else { 16 };
        let mut frame = whole.clone();
        let protocol = if udp { 17 } else { 6 };
        let length = u16::try_from(frame.len() - 34).unwrap();
        let pseudo = [&whole[26..34], &[0, protocol], &length.to_be_bytes()].concat();
        frame[34 + offset..36 + offset].copy_from_slice(&slow_sum(&pseudo, 0).to_be_bytes());
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            checksum_start: 34,
            checksum_offset: offset as u16,
            ..VnetHeader::NONE
        };
        (frame, whole, vnet)
    }

    #[test]
    fn completes_what_another_writer_computes() {
        for len in 0..80usize {
            let payload: Vec<u8> = (0..len).map(|i| (i * 37) as u8).collect();
            for udp in [false, true] {
                let (mut frame, whole, vnet) = partial(&payload, udp);
                complete(&mut frame, &vnet).unwrap();
                assert_eq!(frame, whole, "length {len}, udp {udp}");
            }
        }
    }

    #[test]
    fn a_zero_sum_becomes_all_ones_in_udp_only() {
        let vnet = VnetHeader { flags: 1, checksum_start: 2, checksum_offset: 6, ..VnetHeader::NONE };
        let mut frame = [9, 9, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
        complete(&mut frame, &vnet).unwrap();
        assert_eq!(frame, [9, 9, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff]);
        // The last word of the payload makes the sum zero.
        for udp in [false, true] {
            let (_, whole, _) = partial(&[7, 7, 0, 0], udp);
            let field = if udp { &whole[40..42] } else { &whole[50..52] };
            let (mut frame, whole, vnet) = partial(&[7, 7, field[0], field[1]], udp);
            complete(&mut frame, &vnet).unwrap();
            assert_eq!(frame, whole, "udp {udp}");
            let sum = if udp { &frame[40..42] } else { &frame[50..52] };
            assert_eq!(sum, if udp { [0xff, 0xff] } else { [0, 0] });
        }
    }

    #[test]
    fn offsets_outside_are_errors_and_change_nothing() {
        let (frame, _, vnet) = partial(b"data", true);
        for (start, offset) in
            [(34, 40), (34, u16::MAX), (u16::MAX, 0), (45, 0), (46, 0), (47, 0), (u16::MAX, u16::MAX)]
        {
            let mut changed = frame.clone();
            let bad = VnetHeader { checksum_start: start, checksum_offset: offset, ..vnet };
            assert_eq!(complete(&mut changed, &bad), Err(BadOffload::ChecksumOutside), "{start} {offset}");
            assert_eq!(changed, frame);
        }
        let mut last = frame.clone();
        complete(&mut last, &VnetHeader { checksum_start: 44, checksum_offset: 0, ..vnet }).unwrap();
        let none = VnetHeader { flags: VnetHeader::CHECKSUM_VALID, ..vnet };
        let mut same = frame.clone();
        complete(&mut same, &none).unwrap();
        assert_eq!(same, frame);
    }

    proptest! {
        #[test]
        fn nothing_panics(mut frame: Vec<u8>, start: u16, offset: u16, small in 0u16..64) {
            for (s, o) in [(start, offset), (small, offset % 32)] {
                let vnet = VnetHeader { flags: 1, checksum_start: s, checksum_offset: o, ..VnetHeader::NONE };
                let before = frame.clone();
                let fits = usize::from(s) + usize::from(o) + 2 <= frame.len();
                prop_assert_eq!(complete(&mut frame, &vnet).is_ok(), fits);
                if fits {
                    // The sum over the data with the new checksum, plus the old content of the field (the
                    // pseudo header's sum), is all ones.
                    let old = &before[usize::from(s + o)..][..2];
                    let covered = &frame[usize::from(s)..];
                    if usize::from(o) % 2 == 0 {
                        let sum = slow_sum(old, u32::from(slow_sum(covered, 0)));
                        prop_assert_eq!(sum, 0xffff);
                    }
                }
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP (RFC 793 §3.1).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Be16, Be32, checksum, ipv4};

/// Flag bits.
pub mod flag {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// Congestion echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// The first 20 bytes of a TCP header; options follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: Be16,
    /// Destination port.
    pub dst_port: Be16,
    /// Sequence number.
    pub seq: Be32,
    /// Acknowledgement number.
    pub ack: Be32,
    /// Header length in 32-bit words (4 bits) and reserved bits (4 bits, of which the last is the historic
    /// nonce sum).
    pub offset: u8,
    /// Flag bits, see [`flag`].
    pub flags: u8,
    /// Receive window.
    pub window: Be16,
    /// Checksum with pseudo-header.
    pub checksum: Be16,
    /// Urgent pointer.
    pub urgent: Be16,
}
crate::views!(TcpHeader, 20);

impl TcpHeader {
    /// The header length in bytes, options included, from the header's own field: 0 to 60, at least 20 in a
    /// valid header.
    #[inline]
    pub const fn header_len(&self) -> usize {
        ((self.offset >> 4) as usize) << 2
    }

    /// Whether all bits of `flags` are set.
    #[inline]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// The options of the header at the start of `bytes`. Empty if the header is truncated or its length is
/// invalid.
#[inline]
pub fn options(bytes: &[u8]) -> &[u8] {
    TcpHeader::from_prefix(bytes)
        .and_then(|header| bytes.get(TcpHeader::LEN..header.header_len()))
        .unwrap_or_default()
}

/// Sets the checksum of a segment (header and data). A segment that is too short for a header or too long for
/// IPv4 is left unchanged.
#[inline]
pub fn set_checksum(src: u32, dst: u32, segment: &mut [u8]) {
    let Some(header) = TcpHeader::from_prefix_mut(segment) else { return };
    let before = header.checksum;
    header.checksum.set(0);
    let checksum = checksum::transport_checksum(src, dst, ipv4::protocol::TCP, segment);
    if let Some(header) = TcpHeader::from_prefix_mut(segment) {
        header.checksum = checksum.map_or(before, Be16::new);
    }
}

/// Whether the checksum of a segment (header and data) is correct.
#[inline]
pub fn checksum_ok(src: u32, dst: u32, segment: &[u8]) -> bool {
    segment.len() >= TcpHeader::LEN && checksum::transport_ok(src, dst, ipv4::protocol::TCP, segment)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use etherparse::TcpHeaderSlice;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::cases(500))]

        #[test]
        fn agrees_with_etherparse(bytes in proptest::collection::vec(any::<u8>(), 0..100), words in 0..16_u8) {
            let mut bytes = bytes;
            if let Some(byte) = bytes.get_mut(12) {
                *byte = *byte & 15 | words << 4;
            }
            let ours = TcpHeader::from_prefix(&bytes);
            prop_assert_eq!(ours.is_some(), bytes.len() >= 20);
            let Ok(theirs) = TcpHeaderSlice::from_slice(&bytes) else {
                prop_assert!(ours.is_none_or(|h| h.header_len() < 20 || h.header_len() > bytes.len()));
                prop_assert!(options(&bytes).is_empty());
                // There is nothing to compare, because etherparse rejects the header.
                return Ok(());
            };
            let ours = ours.unwrap();
            prop_assert_eq!((ours.src_port.get(), ours.dst_port.get()), (theirs.source_port(), theirs.destination_port()));
            prop_assert_eq!((ours.seq.get(), ours.ack.get()), (theirs.sequence_number(), theirs.acknowledgment_number()));
            prop_assert_eq!(ours.header_len(), theirs.slice().len());
            prop_assert_eq!((ours.window.get(), ours.urgent.get()), (theirs.window_size(), theirs.urgent_pointer()));
            prop_assert_eq!(options(&bytes), theirs.options());
            let flags = [theirs.fin(), theirs.syn(), theirs.rst(), theirs.psh(), theirs.ack(), theirs.urg(), theirs.ece(), theirs.cwr()];
            for (bit, set) in flags.into_iter().enumerate() {
                prop_assert_eq!(ours.has(1 << bit), set);
            }
            let payload = bytes[theirs.slice().len()..].to_vec();
            let want = theirs.calc_checksum_ipv4_raw([1, 2, 3, 4], [5, 6, 7, 8], &payload).unwrap();
            set_checksum(0x0102_0304, 0x0506_0708, &mut bytes);
            prop_assert_eq!(TcpHeader::from_prefix(&bytes).unwrap().checksum.get(), want);
            prop_assert!(checksum_ok(0x0102_0304, 0x0506_0708, &bytes));
        }
    }

    #[test]
    fn impossible_lengths() {
        let mut short = [0xaa; 19];
        set_checksum(1, 2, &mut short);
        assert!(short == [0xaa; 19] && !checksum_ok(1, 2, &short) && options(&short).is_empty());
        let mut long = vec![0xaa; 65536];
        set_checksum(1, 2, &mut long);
        assert!(long.iter().all(|&b| b == 0xaa) && !checksum_ok(1, 2, &long));
    }
}

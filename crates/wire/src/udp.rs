// SPDX-License-Identifier: MIT OR Apache-2.0
//! UDP (RFC 768).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Be16, checksum, ipv4};

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: Be16,
    /// Destination port.
    pub dst_port: Be16,
    /// Length of header and data in bytes.
    pub len: Be16,
    /// Checksum with pseudo-header; 0 means no checksum.
    pub checksum: Be16,
}
crate::views!(UdpHeader, 8);

impl UdpHeader {
    /// A header without a checksum; `len` counts header and data.
    #[inline]
    pub const fn new(src_port: u16, dst_port: u16, len: u16) -> Self {
        Self {
            src_port: Be16::new(src_port),
            dst_port: Be16::new(dst_port),
            len: Be16::new(len),
            checksum: Be16::new(0),
        }
    }
}

/// Sets the checksum of a datagram (header and data). A datagram that is too short for a header or too long for
/// IPv4 is left unchanged.
#[inline]
pub fn set_checksum(src: u32, dst: u32, datagram: &mut [u8]) {
    let Some(header) = UdpHeader::from_prefix_mut(datagram) else { return };
    let before = header.checksum;
    header.checksum.set(0);
    let checksum = checksum::transport_checksum(src, dst, ipv4::protocol::UDP, datagram);
    if let Some(header) = UdpHeader::from_prefix_mut(datagram) {
        header.checksum = checksum.map_or(before, Be16::new);
    }
}

/// Whether the checksum of a datagram (header and data) is correct or absent.
#[inline]
pub fn checksum_ok(src: u32, dst: u32, datagram: &[u8]) -> bool {
    UdpHeader::from_prefix(datagram).is_some_and(|header| {
        header.checksum.get() == 0 || checksum::transport_ok(src, dst, ipv4::protocol::UDP, datagram)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn agrees_with_etherparse() {
        for len in 0..70_u8 {
            let payload: Vec<u8> = (0..len).map(|i| i.wrapping_mul(37)).collect();
            let header = UdpHeader::new(1000, 53, 8 + u16::from(len));
            let mut datagram = [header.to_bytes().to_vec(), payload.clone()].concat();
            set_checksum(0x0a00_0001, 0xc0a8_0102, &mut datagram);
            let theirs = etherparse::UdpHeader::with_ipv4_checksum(
                1000,
                53,
                &etherparse::Ipv4Header {
                    source: [10, 0, 0, 1],
                    destination: [192, 168, 1, 2],
                    protocol: etherparse::IpNumber::UDP,
                    ..Default::default()
                },
                &payload,
            )
            .unwrap();
            assert_eq!(datagram[..8], theirs.to_bytes());
            assert!(checksum_ok(0x0a00_0001, 0xc0a8_0102, &datagram));
            assert!(!checksum_ok(0x0a00_0003, 0xc0a8_0102, &datagram));
        }
    }

    #[test]
    fn zero_checksums() {
        let mut datagram = UdpHeader::new(0, 0, 8).to_bytes();
        assert!(checksum_ok(1, 2, &datagram));
        // With these addresses the sum is 0xffff. The checksum would be 0 and is sent as 0xffff.
        set_checksum(0xffff_ffff - 17 - 8 - 8, 0, &mut datagram);
        assert_eq!(UdpHeader::from_prefix(&datagram).unwrap().checksum.get(), 0xffff);
        assert!(checksum_ok(0xffff_ffff - 17 - 8 - 8, 0, &datagram));
    }

    #[test]
    fn impossible_lengths() {
        let mut short = [0xaa; 7];
        set_checksum(1, 2, &mut short);
        assert!(short == [0xaa; 7] && !checksum_ok(1, 2, &short));
        let mut long = vec![0xaa; 65536];
        set_checksum(1, 2, &mut long);
        assert!(long.iter().all(|&b| b == 0xaa) && !checksum_ok(1, 2, &long));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ethernet: addresses, the 14-byte header, the 802.1Q tag.

use std::fmt;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Be16;

/// Values of the type field.
pub mod ethertype {
    /// IPv4 (RFC 894).
    pub const IPV4: u16 = 0x0800;
    /// ARP (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// Reverse ARP (RFC 903).
    pub const RARP: u16 = 0x8035;
    /// 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6 (RFC 2464).
    pub const IPV6: u16 = 0x86dd;
    /// 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
    /// The smallest type. Smaller values are 802.3 lengths (RFC 894).
    pub const FIRST: u16 = 0x0600;
}

/// An Ethernet address.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct EtherAddr(pub [u8; 6]);

impl EtherAddr {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// The all-zero address, which means "unknown" in ARP.
    pub const ZERO: Self = Self([0; 6]);

    /// Whether all bits are set.
    #[inline]
    pub const fn is_broadcast(&self) -> bool {
        let [a, b, c, d, e, f] = self.0;
        a & b & c & d & e & f == 0xff
    }

    /// Whether the group bit is set: multicast or broadcast.
    #[inline]
    pub const fn is_group(&self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether this is a group address other than broadcast.
    #[inline]
    pub const fn is_multicast(&self) -> bool {
        self.is_group() && !self.is_broadcast()
    }

    /// The Ethernet group address for an IPv4 multicast address (RFC 1112 §6.4), made from the low 23 bits of `addr`.
    #[inline]
    pub const fn from_ipv4_multicast(addr: u32) -> Self {
        let [_, b, c, d] = addr.to_be_bytes();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }
}

impl fmt::Display for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut text = [b'-'; 17];
        for (byte, place) in self.0.iter().zip(text.chunks_mut(3)) {
            if let [high, low, ..] = place {
                *high = HEX[usize::from(byte >> 4)];
                *low = HEX[usize::from(byte & 15)];
            }
        }
        f.pad(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six groups of one or two hex digits joined by `:` or by `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherAddrParseError;

impl fmt::Display for EtherAddrParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected six hex bytes joined by ':' or '-'")
    }
}

impl std::error::Error for EtherAddrParseError {}

impl FromStr for EtherAddr {
    type Err = EtherAddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut groups = text.split(separator);
        let mut addr = [0; 6];
        for byte in &mut addr {
            let group = groups.next().ok_or(EtherAddrParseError)?;
            // from_str_radix accepts a sign, which an address must not have.
            if !(1..=2).contains(&group.len()) || !group.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(EtherAddrParseError);
            }
            *byte = u8::from_str_radix(group, 16).map_err(|_| EtherAddrParseError)?;
        }
        if groups.next().is_some() { Err(EtherAddrParseError) } else { Ok(Self(addr)) }
    }
}

/// The header of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EtherHeader {
    /// Destination.
    pub dst: EtherAddr,
    /// Source.
    pub src: EtherAddr,
    /// Type of the payload, see [`ethertype`].
    pub ethertype: Be16,
}
crate::views!(EtherHeader, 14);

impl EtherHeader {
    /// Creates a header from its fields.
    #[inline]
    pub const fn new(dst: EtherAddr, src: EtherAddr, ethertype: u16) -> Self {
        Self { dst, src, ethertype: Be16::new(ethertype) }
    }
}

/// An 802.1Q tag: the four bytes after type [`ethertype::VLAN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanTag {
    /// Priority (3 bits), drop eligible (1), identifier (12).
    pub tci: Be16,
    /// Type of the payload.
    pub ethertype: Be16,
}
crate::views!(VlanTag, 4);

impl VlanTag {
    /// The VLAN identifier.
    #[inline]
    pub fn id(&self) -> u16 {
        self.tci.get() & 0x0fff
    }

    /// The priority code point.
    #[inline]
    pub fn priority(&self) -> u8 {
        (self.tci.get() >> 13) as u8
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_parse_and_print() {
        for (text, want) in [
            ("02-00-00-00-00-0A", Some("02-00-00-00-00-0A")),
            ("2:0:0:0:0:a", Some("02-00-00-00-00-0A")),
            ("Ff:fF:ff:FF:ff:ff", Some("FF-FF-FF-FF-FF-FF")),
            ("00:00:00:00:00:00", Some("00-00-00-00-00-00")),
            ("", None),
            ("1:2:3:4:5", None),
            ("1:2:3:4:5:", None),
            ("1:2:3:4:5:6:7", None),
            ("1:2:3:4:5:6:", None),
            ("1:2:3-4:5:6", None),
            ("1:2:3:4:5:006", None),
            ("1:2:3:4:5:+6", None),
            ("1:2:3:4:5:g", None),
            ("1:2:3:4:5: 6", None),
            ("1:2:3:4:5:é", None),
        ] {
            assert_eq!(text.parse::<EtherAddr>().ok().map(|a| a.to_string()).as_deref(), want, "{text}");
        }
        assert_eq!(format!("{:>19}", EtherAddr([1, 2, 3, 4, 5, 0xfe])), "  01-02-03-04-05-FE");
    }

    #[test]
    fn address_kinds() {
        let kinds = |a: EtherAddr| (a.is_broadcast(), a.is_group(), a.is_multicast());
        assert_eq!(kinds(EtherAddr::BROADCAST), (true, true, false));
        assert_eq!(kinds(EtherAddr::ZERO), (false, false, false));
        assert_eq!(kinds(EtherAddr([0xff, 0xff, 0xff, 0xff, 0xff, 0xfe])), (false, true, true));
        // RFC 1112 §6.4: 239.129.2.3 and 224.1.2.3 map to the same address.
        let group = EtherAddr([1, 0, 0x5e, 1, 2, 3]);
        assert_eq!(EtherAddr::from_ipv4_multicast(0xef81_0203), group);
        assert_eq!(EtherAddr::from_ipv4_multicast(0xe001_0203), group);
        assert_eq!(kinds(group), (false, true, true));
    }

    #[test]
    fn headers_agree_with_etherparse() {
        let mut bytes: Vec<u8> = (0..40_u8).map(|i| i.wrapping_mul(77)).collect();
        let (theirs, _) = etherparse::Ethernet2Header::from_slice(&bytes).unwrap();
        let ours = *EtherHeader::from_prefix(&bytes).unwrap();
        assert_eq!(ours.dst.0, theirs.destination);
        assert_eq!(ours.src.0, theirs.source);
        assert_eq!(ours.ethertype.get(), theirs.ether_type.0);
        assert_eq!(ours.to_bytes()[..], bytes[..14]);
        let (tag, rest) = VlanTag::split(&bytes[14..]).unwrap();
        let (theirs, _) = etherparse::SingleVlanHeader::from_slice(&bytes[14..]).unwrap();
        assert_eq!((tag.id(), tag.priority()), (theirs.vlan_id.value(), theirs.pcp.value()));
        assert_eq!((tag.ethertype.get(), rest.len()), (theirs.ether_type.0, 22));
        for len in 0..14 {
            assert!(EtherHeader::from_prefix(&bytes[..len]).is_none());
        }
        let (header, payload) = EtherHeader::split_mut(&mut bytes).unwrap();
        *header = EtherHeader::new(EtherAddr::BROADCAST, EtherAddr::ZERO, ethertype::ARP);
        assert_eq!(payload.len(), 26);
        assert_eq!(bytes[..14], [255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 8, 6]);
    }
}

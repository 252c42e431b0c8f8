// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of flows: addresses and ports, as they stand in packets.

use std::fmt;
use std::net::Ipv4Addr;

/// Addresses and ports of one direction of a flow, in the byte order of packets, so that reading takes two
/// loads and writing two stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Source and destination address: bytes 12 to 19 of the IP header, little-endian.
    pub addrs: u64,
    /// Source and destination port: the first four bytes of the transport header, little-endian.
    pub ports: u32,
}

/// The change of a checksum, as one's-complement sums in the byte order of memory (RFC 1071 section 2(B)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The change of the checksum that new addresses cause.
    pub addrs: u16,
    /// The change of the checksum that new ports cause.
    pub ports: u16,
}

fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Adds two changes.
pub fn both(a: u16, b: u16) -> u16 {
    fold(u64::from(a) + u64::from(b))
}

/// Returns a checksum after a change, in the byte order of memory (RFC 1624, equation 3).
#[inline(always)]
pub fn changed(checksum: u16, change: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(change);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Whether a change leaves checksums as they are. This is true for both zeros of one's complement, 0 and 0xffff.
#[inline(always)]
pub fn is_nothing(change: u16) -> bool {
    change == 0 || change == 0xffff
}

impl Tuple {
    /// Makes a tuple from numbers in host byte order.
    pub fn new(src: u32, sport: u16, dst: u32, dport: u16) -> Tuple {
        Tuple {
            addrs: u64::from(src.swap_bytes()) | u64::from(dst.swap_bytes()) << 32,
            ports: u32::from(sport.swap_bytes()) | u32::from(dport.swap_bytes()) << 16,
        }
    }
    /// Source address.
    pub fn src(self) -> u32 {
        (self.addrs as u32).swap_bytes()
    }
    /// Destination address.
    pub fn dst(self) -> u32 {
        ((self.addrs >> 32) as u32).swap_bytes()
    }
    /// Source port.
    pub fn sport(self) -> u16 {
        (self.ports as u16).swap_bytes()
    }
    /// Destination port.
    pub fn dport(self) -> u16 {
        ((self.ports >> 16) as u16).swap_bytes()
    }
    /// The tuple of replies.
    #[inline(always)]
    pub fn reversed(self) -> Tuple {
        Tuple { addrs: self.addrs.rotate_left(32), ports: self.ports.rotate_left(16) }
    }
    /// Returns how checksums change when this tuple is replaced by `new`.
    pub fn change(self, new: Tuple) -> Change {
        let half = |x: u64| (x & 0xffff_ffff) + (x >> 32);
        Change {
            addrs: fold(half(!self.addrs) + half(new.addrs)),
            ports: fold(u64::from(!self.ports) + u64::from(new.ports)),
        }
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst) = (Ipv4Addr::from_bits(self.src()), Ipv4Addr::from_bits(self.dst()));
        write!(f, "({src}, {}, {dst}, {})", self.sport(), self.dport())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_wire::checksum;
    use proptest::prelude::*;

    #[test]
    fn fields_and_text() {
        let t = Tuple::new(0x0100_0001, 10, 0x0200_0002, 65_000);
        assert_eq!(t.to_string(), "(1.0.0.1, 10, 2.0.0.2, 65000)");
        assert_eq!(t.reversed().to_string(), "(2.0.0.2, 65000, 1.0.0.1, 10)");
        assert_eq!((t.src(), t.sport(), t.dst(), t.dport()), (0x0100_0001, 10, 0x0200_0002, 65_000));
        assert_eq!(t.addrs.to_le_bytes(), [1, 0, 0, 1, 2, 0, 0, 2]);
        assert_eq!(t.ports.to_le_bytes(), [0, 10, 0xfd, 0xe8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
        #[test]
        fn changes_are_those_of_a_whole_sum(old in any::<[u8; 12]>(), new in any::<[u8; 12]>(), rest in any::<[u8; 8]>()) {
            let tuple = |b: &[u8; 12]| Tuple {
                addrs: u64::from_le_bytes(b[..8].try_into().unwrap()),
                ports: u32::from_le_bytes(b[8..].try_into().unwrap()),
            };
            let sum = |b: &[u8; 12]| checksum::checksum(&[&b[..], &rest[..]].concat());
            let c = tuple(&old).change(tuple(&new));
            let there = changed(sum(&old).to_be(), both(c.addrs, c.ports)).to_be();
            prop_assert_eq!(there, sum(&new));
            // The reverse change is the complement.
            prop_assert_eq!(changed(there.to_be(), !both(c.addrs, c.ports)).to_be(), sum(&old));
        }
    }

    #[test]
    fn no_change_is_nothing() {
        let t = Tuple::new(1, 2, 3, 4);
        assert!(
            is_nothing(t.change(t).addrs) && is_nothing(t.change(t).ports) && is_nothing(!t.change(t).ports)
        );
    }
}

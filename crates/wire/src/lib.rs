// SPDX-License-Identifier: MIT OR Apache-2.0
//! Header views and checksums over byte slices.
//!
//! Every header is a plain struct with the exact layout on the wire: fields in network order, no alignment
//! (`zerocopy`). A view costs only a length check. `T::from_prefix(bytes)` and `T::from_prefix_mut(bytes)`
//! return `None` if there are too few bytes; they check nothing else. Fields are read with `.get()` and written
//! with `.set()`. This crate never allocates, and no function panics on any input.
//!
//! - [`checksum`]: the Internet checksum (RFC 1071) and its incremental update (RFC 1624)
//! - [`ether`], [`arp`]: link layer
//! - [`ipv4`], [`options`]: Internet layer
//! - [`icmp`], [`udp`], [`tcp`]: the payload of IPv4 packets
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod ether;
pub mod icmp;
pub mod ipv4;
pub mod options;
pub mod tcp;
pub mod udp;

pub use arp::ArpHeader;
pub use ether::{EtherAddr, EtherHeader};
pub use icmp::IcmpHeader;
pub use ipv4::Ipv4Header;
pub use tcp::TcpHeader;
pub use udp::UdpHeader;

pub use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 16-bit field in network byte order.
pub type Be16 = zerocopy::byteorder::network_endian::U16;
/// A 32-bit field in network byte order.
pub type Be32 = zerocopy::byteorder::network_endian::U32;

/// Implements the views of a header struct, which must be zerocopy's `FromBytes + IntoBytes + Unaligned`.
macro_rules! views {
    ($name:ident, $len:literal) => {
        const _: () = assert!(size_of::<$name>() == $len);

        impl $name {
            /// The length on the wire in bytes.
            pub const LEN: usize = $len;

            /// The header at the start of `bytes`; `None` if there are fewer than [`Self::LEN`] bytes.
            #[inline]
            pub fn from_prefix(bytes: &[u8]) -> Option<&Self> {
                <Self as zerocopy::FromBytes>::ref_from_prefix(bytes).ok().map(|(header, _)| header)
            }

            /// The header at the start of `bytes`, mutable.
            #[inline]
            pub fn from_prefix_mut(bytes: &mut [u8]) -> Option<&mut Self> {
                <Self as zerocopy::FromBytes>::mut_from_prefix(bytes).ok().map(|(header, _)| header)
            }

            /// The header and the bytes after it.
            #[inline]
            pub fn split(bytes: &[u8]) -> Option<(&Self, &[u8])> {
                <Self as zerocopy::FromBytes>::ref_from_prefix(bytes).ok()
            }

            /// The header and the bytes after it, both mutable.
            #[inline]
            pub fn split_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
                <Self as zerocopy::FromBytes>::mut_from_prefix(bytes).ok()
            }

            /// A copy of the header's bytes.
            #[inline]
            pub fn to_bytes(&self) -> [u8; $len] {
                zerocopy::transmute!(*self)
            }

            /// The header's bytes by reference.
            #[inline]
            pub fn as_array(&self) -> &[u8; $len] {
                zerocopy::transmute_ref!(self)
            }
        }
    };
}
pub(crate) use views;

/// Configuration of a property test with this number of cases and a fixed seed.
#[cfg(test)]
fn cases(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x0ca5_7a9e),
        ..Default::default()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes for the TCP on IP headers, beside the addresses: marks of routers, and source routes.

use crate::engine::{Arrived, IpNotes};
use castanet_wire::ipv4::Ipv4Header;
use std::net::Ipv4Addr;

/// The first byte of an IP header without options.
const NO_OPTIONS: u8 = 0x45;
/// The codepoint of a packet that has met congestion (RFC 3168, section 5).
const CE: u8 = 3;

/// Whether a header says nothing, as most do.
#[inline]
pub(super) fn is_plain(ip: &Ipv4Header) -> bool {
    ip.version_ihl == NO_OPTIONS && ip.ecn() != CE
}

/// The notes on a header whose bytes begin with these.
#[cold]
pub(super) fn read(ip: &Ipv4Header, bytes: &[u8]) -> IpNotes {
    let options = bytes.get(Ipv4Header::LEN..ip.header_len()).unwrap_or_default();
    let route = Arrived::of(options, Ipv4Addr::from_bits(ip.src.get()));
    IpNotes { marked: ip.ecn() == CE, route }
}

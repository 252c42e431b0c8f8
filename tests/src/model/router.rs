// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router's addresses and routes: TOCS 2000, Figure 8, with the values of conf/ip-router-trace.click.
use std::net::Ipv4Addr;

/// The router's Ethernet addresses, by interface.
pub(super) const MAC: [[u8; 6]; 2] =
    [[0x00, 0x00, 0xc0, 0xae, 0x67, 0xef], [0x00, 0x00, 0xc0, 0x4f, 0x71, 0xef]];

/// The router's IP addresses, by interface.
pub(super) const ADDRESS: [Ipv4Addr; 2] = [Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 1)];

/// The longest packet sent without fragmentation.
pub(super) const MTU: usize = 1500;

/// The broadcast addresses of the two networks, including the old all-zero form.
pub(super) const BROADCASTS: [Ipv4Addr; 4] = [
    Ipv4Addr::new(1, 0, 0, 0),
    Ipv4Addr::new(1, 255, 255, 255),
    Ipv4Addr::new(2, 0, 0, 0),
    Ipv4Addr::new(2, 255, 255, 255),
];

/// The route of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Deliver to this host.
    Host,
    /// Send on an interface, to a next hop.
    Out(usize, Ipv4Addr),
    /// Drop, because the address is invalid.
    Martian,
    /// Drop, and send an error to the sender.
    Unreachable,
}

/// Whether packets to this address are for the host: its own addresses and broadcasts.
pub(super) fn is_host(dst: Ipv4Addr) -> bool {
    ADDRESS.contains(&dst) || BROADCASTS.contains(&dst) || dst.is_broadcast()
}

/// Returns the route of a destination. (A chain of cases instead of a prefix table, to be independent of the
/// implementation.)
pub(super) fn route(dst: Ipv4Addr) -> Way {
    match dst.octets() {
        _ if is_host(dst) => Way::Host,
        [0 | 127 | 224.., ..] => Way::Martian,
        [1, ..] => Way::Out(0, dst),
        [2, ..] => Way::Out(1, dst),
        [3, ..] => Way::Out(1, Ipv4Addr::new(2, 0, 0, 77)),
        [4, ..] => Way::Out(0, Ipv4Addr::new(1, 0, 0, 88)),
        [5, ..] => Way::Unreachable,
        _ => Way::Out(1, Ipv4Addr::new(2, 0, 0, 99)),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hosts on the router's two networks, and behind their gateways.
use std::net::Ipv4Addr;

/// The router's Ethernet addresses.
pub(super) const ROUTER_MAC: [[u8; 6]; 2] =
    [[0x00, 0x00, 0xc0, 0xae, 0x67, 0xef], [0x00, 0x00, 0xc0, 0x4f, 0x71, 0xef]];

/// The router's addresses.
pub(super) const ROUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 1)];

/// Last bytes of the addresses of hosts that answer ARP requests. Host 29 answers late.
pub(super) const ANSWERING: [u8; 8] = [5, 6, 7, 8, 9, 20, 21, 29];

/// The last byte of the address of the host that answers late.
pub(super) const LATE: u8 = 29;

/// Last bytes of addresses that no host has.
pub(super) const SILENT: [u8; 2] = [200, 201];

/// The gateways of each network (last byte), with the networks behind them (first byte).
pub(super) const GATEWAYS: [&[(u8, u8)]; 2] = [&[(88, 4)], &[(77, 3), (99, 7)]];

/// Returns the address of a host on the network of an interface.
pub(super) fn near(interface: usize, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(if interface == 0 { 1 } else { 2 }, 0, 0, last)
}

/// Returns the Ethernet address of a host, or of the gateway in front of it.
pub(super) fn mac(interface: usize, address: Ipv4Addr) -> [u8; 6] {
    let [first, _, _, last] = address.octets();
    let gateway = GATEWAYS[interface].iter().find(|(_, network)| *network == first);
    let last = gateway.map_or(last, |(gateway, _)| *gateway);
    [2, 0, if interface == 0 { 1 } else { 2 }, 0, 0, last]
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARP (RFC 826): finds the Ethernet addresses of IP addresses.

use castanet_element::{ClassDef, action, element};

pub mod arp_faker;
pub mod arp_print;
pub mod arp_querier;
pub mod arp_responder;
pub mod arp_table;
mod values;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<arp_faker::ArpFaker>(),
    action::<arp_print::ArpPrint>(),
    element::<arp_querier::ArpQuerier>(),
    action::<arp_responder::ArpResponder>(),
    element::<arp_table::ArpTable>(),
];

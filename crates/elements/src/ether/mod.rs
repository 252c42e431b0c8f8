// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ethernet: headers put on and taken off, frames for this host.

use castanet_element::{ClassDef, action};

pub mod ether_encap;
pub mod host_ether_filter;
pub mod strip_to_network_header;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<ether_encap::EtherEncap>(),
    action::<host_ether_filter::HostEtherFilter>(),
    action::<strip_to_network_header::StripToNetworkHeader>(),
];

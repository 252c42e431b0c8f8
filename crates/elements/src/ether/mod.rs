// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ethernet: adding and removing headers, 802.1Q tags, frames for this host, switches and their spanning tree.

use castanet_element::{ClassDef, action, element};

pub mod address_offset;
pub mod check_crc32;
pub mod ether_encap;
pub mod ether_mirror;
pub mod ether_rewrite;
pub mod ether_span_tree;
pub mod ether_switch;
pub mod ether_vlan_encap;
pub mod get_ether_address;
pub mod host_ether_filter;
pub mod listen_ether_switch;
pub mod port_flags;
pub mod set_crc32;
pub mod set_ether_address;
pub mod set_vlan_anno;
pub mod spanning_tree;
pub mod store_ether_address;
pub mod strip_ether_vlan_header;
pub mod strip_to_network_header;
pub mod suppressor;
pub mod vlan;
pub mod vlan_decap;
pub mod vlan_encap;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<check_crc32::CheckCrc32>(),
    action::<ether_encap::EtherEncap>(),
    action::<ether_mirror::EtherMirror>(),
    action::<ether_rewrite::EtherRewrite>(),
    element::<ether_span_tree::EtherSpanTree>(),
    element::<ether_switch::EtherSwitch>(),
    action::<ether_vlan_encap::EtherVlanEncap>(),
    action::<get_ether_address::GetEtherAddress>(),
    action::<host_ether_filter::HostEtherFilter>(),
    element::<listen_ether_switch::ListenEtherSwitch>(),
    action::<set_crc32::SetCrc32>(),
    action::<set_ether_address::SetEtherAddress>(),
    action::<set_vlan_anno::SetVlanAnno>(),
    action::<store_ether_address::StoreEtherAddress>(),
    action::<strip_ether_vlan_header::StripEtherVlanHeader>(),
    action::<strip_to_network_header::StripToNetworkHeader>(),
    element::<suppressor::Suppressor>(),
    action::<vlan_decap::VlanDecap>(),
    action::<vlan_encap::VlanEncap>(),
];

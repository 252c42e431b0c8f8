// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 forwarding: header checks, addresses, routes, options, time to live, fragments.
// Several handlers of one class may have the same flags.
#![allow(clippy::duplicated_attributes)]

use castanet_element::{ClassDef, action, element};

pub mod check_ip_header;
pub mod dec_ip_ttl;
pub mod direct_ip_lookup;
pub mod drop_broadcasts;
pub mod fix_ip_src;
pub mod get_ip_address;
pub mod ip_encap;
pub mod ip_fragmenter;
pub mod ip_gw_options;
pub mod ip_input_combo;
pub mod ip_mirror;
pub mod ip_output_combo;
pub mod ip_print;
pub mod ip_proto;
pub mod ip_reassembler;
mod ip_text;
pub mod linear_ip_lookup;
pub mod mark_ip_ce;
pub mod mark_ip_header;
pub(crate) mod numbers;
pub mod radix_ip_lookup;
mod routes;
pub mod set_ip_address;
pub mod set_ip_checksum;
pub mod set_ip_dscp;
pub mod set_ip_ecn;
mod sources;
pub mod static_ip_lookup;
pub mod store_ip_address;
pub mod strip_ip_header;
pub mod udp_ip_encap;
pub mod unstrip_ip_header;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<check_ip_header::CheckIpHeader>(),
    action::<mark_ip_header::MarkIpHeader>(),
    action::<get_ip_address::GetIpAddress>(),
    action::<set_ip_address::SetIpAddress>(),
    element::<static_ip_lookup::StaticIpLookup>(),
    element::<linear_ip_lookup::LinearIpLookup>(),
    element::<radix_ip_lookup::RadixIpLookup>(),
    element::<direct_ip_lookup::DirectIpLookup>(),
    action::<drop_broadcasts::DropBroadcasts>(),
    action::<ip_gw_options::IpGwOptions>(),
    action::<fix_ip_src::FixIpSrc>(),
    action::<dec_ip_ttl::DecIpTtl>(),
    action::<ip_fragmenter::IpFragmenter>(),
    element::<ip_reassembler::IpReassembler>(),
    action::<ip_encap::IpEncap>(),
    action::<ip_mirror::IpMirror>(),
    action::<ip_input_combo::IpInputCombo>(),
    action::<ip_output_combo::IpOutputCombo>(),
    action::<set_ip_checksum::SetIpChecksum>(),
    action::<set_ip_dscp::SetIpDscp>(),
    action::<set_ip_ecn::SetIpEcn>(),
    action::<mark_ip_ce::MarkIpCe>(),
    action::<store_ip_address::StoreIpAddress>(),
    action::<strip_ip_header::StripIpHeader>(),
    action::<unstrip_ip_header::UnstripIpHeader>(),
    action::<udp_ip_encap::UdpIpEncap>(),
    action::<ip_print::IpPrint>(),
];

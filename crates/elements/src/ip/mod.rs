// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 forwarding: header checks, addresses, routes, options, time to live, fragments.
// Handlers of one class may well have the same flags.
#![allow(clippy::duplicated_attributes)]

use castanet_element::{ClassDef, action, element};

pub mod check_ip_header;
pub mod dec_ip_ttl;
pub mod direct_ip_lookup;
pub mod drop_broadcasts;
pub mod fix_ip_src;
pub mod get_ip_address;
pub mod ip_fragmenter;
pub mod ip_gw_options;
pub mod ip_print;
mod ip_text;
pub mod linear_ip_lookup;
pub mod mark_ip_header;
pub mod radix_ip_lookup;
mod routes;
pub mod set_ip_address;
mod sources;
pub mod static_ip_lookup;
pub mod strip_ip_header;
pub mod udp_ip_encap;

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
    action::<strip_ip_header::StripIpHeader>(),
    action::<udp_ip_encap::UdpIpEncap>(),
    action::<ip_print::IpPrint>(),
];

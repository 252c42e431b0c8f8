// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP: error messages (RFC 792, RFC 1812 section 4.3), echo requests and replies, router advertisements (RFC 1256).

use castanet_element::{ClassDef, action, element};

pub mod check_icmp_header;
mod encap;
pub mod icmp_error;
pub mod icmp_ip_encap;
pub mod icmp_ping_encap;
pub mod icmp_ping_responder;
pub mod icmp_ping_source;
pub mod icmp_router_advertiser;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<check_icmp_header::CheckIcmpHeader>(),
    action::<icmp_error::IcmpError>(),
    action::<icmp_ip_encap::IcmpIpEncap>(),
    action::<icmp_ping_encap::IcmpPingEncap>(),
    action::<icmp_ping_responder::IcmpPingResponder>(),
    element::<icmp_ping_source::IcmpPingSource>(),
    element::<icmp_router_advertiser::IcmpRouterAdvertiser>(),
];

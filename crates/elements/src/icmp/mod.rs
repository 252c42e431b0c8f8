// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP: error messages (RFC 792, RFC 1812 section 4.3) and answers to echo requests.

use castanet_element::{ClassDef, action};

pub mod icmp_error;
pub mod icmp_ping_responder;

/// The classes of this family.
pub const CLASSES: &[ClassDef] =
    &[action::<icmp_error::IcmpError>(), action::<icmp_ping_responder::IcmpPingResponder>()];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 forwarding: header checks, addresses, routes, options, time to live, fragments.

use castanet_element::{ClassDef, action};

pub mod dec_ip_ttl;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[action::<dec_ip_ttl::DecIpTtl>()];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of the host, and sockets: where packets enter and leave the router.

use castanet_element::ClassDef;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[];

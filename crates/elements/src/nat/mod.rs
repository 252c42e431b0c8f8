// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation of addresses and ports.

use castanet_element::ClassDef;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[];

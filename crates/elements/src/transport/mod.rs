// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP and UDP headers.

use castanet_element::ClassDef;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[];

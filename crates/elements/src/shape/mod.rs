// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates and delays: meters, shapers, splitters.

use castanet_element::ClassDef;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: what drops packets before a queue is full.

use castanet_element::ClassDef;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[];

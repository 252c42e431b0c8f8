// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: packets from capture files and into them.
// Several handlers of a class may have the same flags.
#![allow(clippy::duplicated_attributes)]

use castanet_element::{ClassDef, element};

pub mod from_dump;
pub mod to_dump;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[element::<from_dump::FromDump>(), element::<to_dump::ToDump>()];

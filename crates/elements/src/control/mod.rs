// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of the router from within: scripts.

use castanet_element::{ClassDef, element};

pub mod driver_manager;
pub mod script;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[element::<script::Script>(), element::<driver_manager::DriverManager>()];

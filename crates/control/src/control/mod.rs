// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element classes that control the router from outside, of the family `control`.

use castanet_element::{ClassDef, element};

pub mod chatter_socket;
pub mod control_socket;
mod serving;

/// The classes.
pub const CLASSES: &[ClassDef] =
    &[element::<control_socket::ControlSocket>(), element::<chatter_socket::ChatterSocket>()];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of the router: from within by scripts, from outside over sockets.

use castanet_element::{ClassDef, element};

pub mod chatter_socket;
pub mod control_socket;
pub mod driver_manager;
pub mod script;
mod serving;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<script::Script>(),
    element::<driver_manager::DriverManager>(),
    element::<control_socket::ControlSocket>(),
    element::<chatter_socket::ChatterSocket>(),
];

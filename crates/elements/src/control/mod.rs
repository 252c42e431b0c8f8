// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control of the router: from within by scripts, from outside over sockets.

use castanet_element::{ClassDef, element};

pub mod block_thread;
pub mod chatter_socket;
pub mod control_socket;
pub mod driver_manager;
pub mod progress_bar;
pub mod script;
mod serving;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<block_thread::BlockThread>(),
    element::<progress_bar::ProgressBar>(),
    element::<script::Script>(),
    element::<driver_manager::DriverManager>(),
    element::<control_socket::ControlSocket>(),
    element::<chatter_socket::ChatterSocket>(),
];

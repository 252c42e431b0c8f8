// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that control or observe the router from within: scripts and progress bars. The control sockets are in
//! `castanet-control`.

use castanet_element::{ClassDef, element};

pub mod block_thread;
pub mod driver_manager;
pub mod progress_bar;
pub mod script;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<block_thread::BlockThread>(),
    element::<progress_bar::ProgressBar>(),
    element::<script::Script>(),
    element::<driver_manager::DriverManager>(),
];

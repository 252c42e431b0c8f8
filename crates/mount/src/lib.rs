// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of a running router as files.
//!
//! [`Mount::new`] mounts a folder in which every element is a folder and every handler a file; dropping it takes the
//! folder away again. A [`watch`]ing process of its own does so when the router was killed.
//!
//! - `tree` says what files there are in a configuration, `numbers` by which numbers the kernel knows them.
//! - `open` holds what was read when a file was opened, and what has been written to it.
//! - `handlers` answers from the router, `filesystem` in the terms of the kernel.
//! - `place` looks at the folder to be mounted on, `kernel` mounts and unmounts.
//! - `watchdog` leaves no dead mount behind a router that was killed.
#![forbid(unsafe_code)]

mod filesystem;
mod handlers;
mod kernel;
mod mount;
mod numbers;
mod open;
mod place;
mod tree;
mod watchdog;

pub use mount::{Mount, MountError, Options};
pub use watchdog::watch;

/// Shows a message: what a handler said to a write, what was cleaned up.
pub type Say = Box<dyn Fn(&str) + Send + Sync>;

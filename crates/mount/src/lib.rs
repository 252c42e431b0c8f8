// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of a running router as files.
//!
//! [`Mount::new`] mounts a directory in which every element is a directory and every handler a file. Dropping
//! the [`Mount`] unmounts it. A separate process, [`watch`], unmounts it if the router is killed.
//!
//! - `tree`: the files of a configuration. `numbers`: their inode numbers.
//! - `open`: open files, with their contents at opening and the data written since.
//! - `handlers`: serves file requests by handler calls. `filesystem`: the FUSE interface.
//! - `place`: checks the mount point. `kernel`: mounts and unmounts.
//! - `watchdog`: unmounts if the router was killed.
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

/// A function that shows a message about a failed write, or about a mount that was cleaned up.
pub type Report = Box<dyn Fn(&str) + Send + Sync>;

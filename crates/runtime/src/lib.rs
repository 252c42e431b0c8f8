// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runtime: elements built and linked, packets moved, tasks and timers run, handlers answered.
//!
//! Files use only files before them in this order:
//! - [`options`], [`ledger`], [`table`], [`tasks`], `session`, `mail`, [`shared`]: data.
//! - `node`, `nodes`, `trail`, `reach`, `push`, `pull`, `drive`: the elements of one worker, and how packets move among them.
//! - [`handlers`] lists the standard and global ones, `dispatch` answers reads and writes; `worker` is the run loop of tasks, timers
//!   and mail; `panics` guards both.
//! - `prepare`, `link`, `initialise`, `assemble`: a checked graph becomes an `assembly`, all workers of one configuration.
//! - [`swap`], [`running`], `remote`: the way to the router for threads outside, and how its configuration is replaced.
//! - [`router`] builds and runs all of it; [`text`] makes one from a text. [`naive`] is the obvious interpreter that the fast one is compared with.
#![forbid(unsafe_code)]

mod accounts;
mod assemble;
mod assembly;
mod dispatch;
mod drive;
mod errors;
pub mod handlers;
mod initialise;
pub mod ledger;
mod link;
mod mail;
mod meeting;
mod merge;
pub mod naive;
mod node;
mod nodes;
pub mod options;
mod panics;
mod prepare;
mod pull;
mod push;
mod reach;
mod reconfigure;
mod remote;
pub mod router;
pub mod running;
mod session;
pub mod shared;
mod sleep;
pub mod swap;
pub mod table;
pub mod tasks;
pub mod text;
mod trail;
mod worker;

pub use castanet_element::class::Classes;
pub use ledger::Ledger;
pub use options::{OnPanic, Options};
pub use prepare::{check, check_arguments, place};
pub use router::{Router, build};
pub use running::Running;
pub use shared::Shared;
pub use table::Table;
pub use text::TextError;

#[cfg(test)]
mod tests;

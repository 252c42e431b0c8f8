// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runtime: elements built and linked, packets moved, tasks and timers run, handlers answered.
//!
//! [`build`](mod@build) turns a checked graph into a [`Router`]; [`nodes`] owns the elements of one worker and moves packets among
//! them; [`worker`] is the run loop of tasks, timers and mail; [`handlers`] answers reads and writes; [`shared`] is what
//! workers have in common, [`running`] what those see who stand outside. [`naive`] is the obvious interpreter that the fast one is compared with.
#![forbid(unsafe_code)]

pub mod build;
pub mod handlers;
mod initialise;
pub mod ledger;
pub mod link;
mod meeting;
mod merge;
pub mod naive;
pub mod nodes;
mod panics;
mod pull;
mod push;
pub mod router;
pub mod running;
pub mod shared;
mod sleep;
pub mod swap;
pub mod table;
pub mod tasks;
pub mod worker;

pub use build::{Classes, Options, build, check, place};
pub use ledger::Ledger;
pub use panics::OnPanic;
pub use router::Router;
pub use running::Running;
pub use shared::Shared;
pub use table::Table;

#[cfg(test)]
mod tests;

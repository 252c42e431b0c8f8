// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runtime: builds and links elements, moves packets, runs tasks and timers, and answers handler calls.
//!
//! Each file uses only files that come before it in this list:
//! - `lock`, `meeting`, `node`, `quanta`, `unwind`, [`compiled`]: the nodes of the run loop, and code that was compiled for a configuration.
//!   `disabled` is the element that takes the place of another one, `wrapping` puts wrappers around elements, and
//!   `profile` measures what elements cost.
//! - [`options`], `errors`, [`ledger`]: the options of a router, the diagnostics of its errors, and its ledger.
//! - `observe::log`, `observe::trace`, `observe::tap`, `observe`, `observe::probe`: the packets that clients observe.
//!   `session` has these and the other state that hot swaps keep, such as the listeners to messages.
//! - [`tasks`], `sleep`, `mail`, `barrier`: what a worker runs next, how it sleeps, how workers send requests to each
//!   other, and how they wait for each other at a swap.
//! - [`kernel`]: the programs of the part of a router that runs in the kernel. `paths` has the paths that are machine code.
//! - `build_state`, [`driver_elements`], [`shared`], `observed`: the data of one configuration, and the elements that the driver
//!   adds to it. [`handlers`] and [`global_handlers`] have the handlers that no class declares. `replicas` decides
//!   which workers get a handler call, and combines their answers.
//! - `nodes`, `sample`, `probes`, `accounts`, `reach`, `visit`, `compile_paths`, `run_paths`, `push`, `pull`, `drive`,
//!   `run_quanta`: the elements of one worker, and how packets move among them.
//! - `task_handlers`, `dispatch` answer reads and writes. `polling` measures how long the tasks of a worker find
//!   nothing, and `worker` is the run loop of tasks, timers and mail.
//! - `pairs` decides which element of a new configuration replaces which element of the old one.
//! - `infos` and `ports` describe elements and their ports for the data of a configuration.
//! - `assembly` is all workers of one configuration. `link`, `prepare`, `initialise` and `assemble` make it from a
//!   checked graph. [`in_kernel`] runs a part of it in the kernel; `passage` keeps packets that come up from there in order. `explain_paths`
//!   lists the paths that a configuration can have. `reconfigure` replaces one element of it, and `panics` handles panics of elements.
//! - `swap::error`, `swap::loader`, `swap::plan`, `swap::candidate`, `swap::slot`: the errors of hot swaps, how hot
//!   swaps read configurations, the plan of a swap, and the new configuration that waits to be committed. [`running`]
//!   gives threads that are not workers access to the router. `swap::prepare`, `swap::cleaner` and `swap::commit` carry
//!   out a hot swap, and `remote` makes handler calls. [`swap`] has the public part of the `swap` files.
//! - [`router`] builds and runs a router. [`text`] makes one from the text of a configuration. [`naive`] is the simple
//!   interpreter that tests compare the run loop with.
#![forbid(unsafe_code)]

mod accounts;
mod assemble;
mod assembly;
mod barrier;
mod build_state;
mod compile_paths;
pub mod compiled;
mod disabled;
mod dispatch;
mod drive;
pub mod driver_elements;
mod errors;
mod explain_paths;
pub mod global_handlers;
pub mod handlers;
pub mod in_kernel;
mod infos;
mod initialise;
pub mod kernel;
pub mod ledger;
mod link;
mod lock;
mod mail;
mod meeting;
pub mod naive;
mod node;
mod nodes;
mod observe;
mod observed;
pub mod options;
mod pairs;
mod panics;
mod passage;
mod paths;
mod polling;
mod ports;
mod prepare;
mod probes;
mod profile;
mod pull;
mod push;
mod quanta;
mod reach;
mod reconfigure;
mod remote;
mod replicas;
pub mod router;
mod run_paths;
mod run_quanta;
pub mod running;
mod sample;
mod session;
pub mod shared;
mod sleep;
pub mod swap;
mod task_handlers;
pub mod tasks;
pub mod text;
mod unwind;
mod visit;
mod worker;
mod wrapping;

pub use castanet_element::class::Classes;
pub use driver_elements::DriverElement;
pub use explain_paths::explain_paths;
pub use ledger::Ledger;
pub use options::{Given, OnPanic, Options};
pub use paths::PathCompiler;
pub use prepare::{check, check_arguments, place, portable_names, several_turns, units};
pub use router::{Router, build};
pub use running::Running;
pub use shared::Shared;
pub use text::TextError;
pub use unwind::panic_began;

#[cfg(test)]
mod tests;

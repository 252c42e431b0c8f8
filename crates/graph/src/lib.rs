// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration graph and what is computed on it.
//!
//! Bottom up: [`graph`] (elements, ports in use, connections, push and pull), the checks behind [`Graph::new`], [`context`]
//! (flow-based router context), [`Graph::back_edges`] (where push paths close), [`placement`] (which worker reaches what), [`batch`]
//! (which tasks must move one packet at a time), [`mod@svg`] (a drawing).
//!
//! INVARIANT: everything here is computed from the flat configuration and the declarations of classes; no element is run.
#![forbid(unsafe_code)]

pub mod batch;
mod calls;
mod check;
mod columns;
pub mod context;
mod csr;
mod cycles;
mod flow;
pub mod graph;
mod layout;
pub mod offload;
pub mod placement;
mod pull_cycles;
mod resolve;
pub mod svg;
#[cfg(test)]
mod testing;

pub use batch::{Why, batch_limits};
pub use check::unknown_classes;
pub use context::Visit;
pub use graph::{Classes, Graph, Kind};
pub use placement::{Mode, Placement};
pub use svg::svg;

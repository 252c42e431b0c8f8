// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration graph and the analyses on it.
//!
//! Modules, bottom up: [`graph`] (elements, ports in use, connections, push and pull), the checks behind
//! [`Graph::new`], [`context`] (flow-based router context), [`Graph::back_edges`] (connections that close push
//! cycles), [`placement`] (tasks and elements on workers), [`batch`] (tasks that must move one packet at a
//! time), [`packets`] (packet types), [`filter`] (expressions that select packets), [`drawing`] (pictures), [`pretty`] (HTML pages), [`xml`] (configurations as XML),
//! [`markup`] (text in XML and HTML), [`network`] (several routers as one configuration), and the passes of the tools:
//! [`undead`], [`xform`], [`fastclassifier`], [`devirtualize`], [`align`].
//!
//! INVARIANT: everything here is computed from the flat configuration and the class declarations. No element is
//! run.
#![forbid(unsafe_code)]

pub mod align;
pub mod batch;
mod calls;
mod check;

pub mod context;
mod csr;
mod cycles;
pub mod devirtualize;
pub mod drawing;
mod excerpt;
pub mod fastclassifier;
pub mod filter;
mod flow;
pub mod graph;
pub mod markup;

pub mod network;
pub mod offload;
pub mod packets;
pub mod placement;
pub mod pretty;
mod pull_cycles;
pub mod quanta;
mod resolve;
mod sparse;
pub mod undead;
pub mod xform;
pub mod xml;

#[cfg(test)]
mod testing;

pub use batch::{Constraint, batch_limits};
pub use check::unknown_classes;
pub use context::Visit;
pub use drawing::{Drawing, Fold, Frame, Picture, PictureBox, PictureLine, PicturePort, Shown};
pub use excerpt::excerpt;
pub use graph::{Graph, PortKind};
pub use placement::{Mode, Placement};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks of several routers, from a combined configuration ([`castanet_graph::network`]): run in simulated time, and
//! checked.
//!
//! Modules, bottom up: [`net_link`] (the element class that carries frames), [`classes`] (the classes of a simulated
//! network), [`topology`] (devices, their addresses, and the links between them), [`options`] (what users may set),
//! [`host`] (hosts at devices that no link reaches), [`traffic`] (pings between hosts), [`simulation`] (the configuration of the whole network), [`report`] (what
//! became of packets), [`check`](mod@check) (what is wrong with the network).
#![forbid(unsafe_code)]

pub mod check;
pub mod classes;
pub mod host;
pub mod net_link;
pub mod options;
pub mod report;
pub mod simulation;
pub mod topology;
pub mod traffic;

pub use check::{Checked, check};
pub use classes::NetClasses;
pub use options::Options;
pub use report::Report;
pub use simulation::Simulation;
pub use topology::Topology;

/// Why a network cannot be simulated or checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetError(pub String);

impl From<String> for NetError {
    fn from(text: String) -> NetError {
        NetError(text)
    }
}

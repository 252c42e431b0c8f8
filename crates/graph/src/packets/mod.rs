// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks packet types: whether elements get the packets they want, such as IP packets and not Ethernet frames. SOSP
//! 1999, section 2.5, plans such a static type system.
//!
//! `types.rs` has the types, and what elements do to them. `flow.rs` spreads types from the outputs where they begin along
//! connections and through elements. `report.rs` writes the diagnostics.
//!
//! A diagnostic is given only if all packets on a path are certainly wrong. Where nothing is known about packets, they
//! count as right.

mod flow;
mod report;
mod types;

pub use flow::Types;
pub use types::{Data, PacketType};

use crate::Graph;
use castanet_lang::Diagnostic;

/// Returns a diagnostic for each input whose packets cannot be what the element wants. It is a warning if the element
/// passes wrong packets on unchanged, else an error.
pub fn check(graph: &Graph) -> Vec<Diagnostic> {
    if Types::are_free(graph) {
        return Vec::new();
    }
    let types = Types::new(graph);
    report::diagnostics(graph, &types)
}

#[cfg(test)]
mod tests;

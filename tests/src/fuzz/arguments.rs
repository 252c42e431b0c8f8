// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for the configuration string of each class.

use super::settings::chosen;
use super::{at_most, load};
use castanet_runtime::{Options, check};

/// Builds an element, but does not initialise it. The first two bytes of `data` select the class of the element. The
/// rest is the configuration string.
pub fn arguments(data: &[u8]) {
    let Some((setting, rest)) = chosen(at_most(data, 2048), |_| true) else { return };
    let text = setting.router(&String::from_utf8_lossy(rest), 1, |_| "Idle".into());
    let (graph, sources, mut diagnostics) = load::graph(&text);
    // With two workers, the router also builds replicas. It is not run.
    let options = Options { workers: 2, ..Options::default() };
    diagnostics.extend(check(graph, load::classes(), &options));
    load::show(&sources, &diagnostics);
}

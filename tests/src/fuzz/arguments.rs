// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for the configuration string of each class.

use super::settings::chosen;
use super::{at_most, load};
use castanet_runtime::{Options, check};

/// The first two bytes select a class. The rest is the configuration string of an element, which is built but
/// not initialised.
pub fn arguments(data: &[u8]) {
    let Some((setting, rest)) = chosen(at_most(data, 2048), |_| true) else { return };
    let text = setting.router(&String::from_utf8_lossy(rest), 1, |_| "Idle".into());
    let (graph, sources, mut diagnostics) = load::graph(&text);
    // With several workers, replicas are built too. Nothing runs.
    let options = Options { workers: 2, ..Options::default() };
    diagnostics.extend(check(graph, load::classes(), &options));
    load::show(&sources, &diagnostics);
}

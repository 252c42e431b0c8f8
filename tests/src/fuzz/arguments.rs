// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration strings of each class.

use super::settings::chosen;
use super::{at_most, load};
use castanet_runtime::{Options, check};

/// The first two bytes choose a class, the rest is the configuration string of an element, which is built and not initialised.
pub fn arguments(data: &[u8]) {
    let Some((setting, rest)) = chosen(at_most(data, 2048), |_| true) else { return };
    let text = setting.router(&String::from_utf8_lossy(rest), 1, |_| "Idle".into());
    let (graph, sources, mut diagnostics) = load::graph(&text);
    // Several workers, so that replicas are made too; nothing runs.
    let options = Options { workers: 2, ..Options::default() };
    diagnostics.extend(check(graph, load::table().0, &options));
    load::show(&sources, &diagnostics);
}

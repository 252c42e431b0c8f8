// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structures that workers share, under every interleaving that loom finds.
//!
//! Their sources are compiled a second time here, of loom's atomics instead of those of the standard library.

mod atomics;
#[path = "../flag.rs"]
#[allow(clippy::duplicate_mod)]
mod flag;
#[path = "../ring.rs"]
#[allow(clippy::duplicate_mod, dead_code)]
mod ring;

mod flag_models;
mod ring_models;

/// Every interleaving with at most so many switches that no thread asked for; more of them find nothing new in practice.
fn model(switches: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(test);
}

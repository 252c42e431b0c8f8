// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of the structures that workers share, run under every interleaving that loom generates.
//!
//! The sources are compiled a second time here, with loom's atomics instead of those of the standard library.

mod atomics;
#[path = "../flag.rs"]
#[allow(clippy::duplicate_mod)]
mod flag;
#[path = "../ring.rs"]
#[allow(clippy::duplicate_mod, dead_code)]
mod ring;

mod flag_models;
mod ring_models;

/// Runs a test under every interleaving with at most `switches` preemptions. In practice, more preemptions find
/// nothing new.
fn model(switches: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(test);
}

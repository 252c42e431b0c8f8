// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bodies of the fuzz targets as plain functions. The targets in fuzz/ call them, and so does the replay of
//! stored inputs.
//!
//! Each target is bounded in time and memory, and accesses no files outside the repository. It panics if
//! Castanet panics or violates a guarantee.

pub mod archive;
pub mod arguments;
pub mod bpdu;
pub mod capture;
pub mod classifier;
pub mod control;
pub mod elements;
mod fuse;
pub mod handlers;
pub mod language;
pub(crate) mod load;
pub mod paths;
pub mod prolac;
pub mod rewriter;
pub mod router;
pub mod script;
pub mod settings;
pub mod summary;
pub mod tcp;

/// A fuzz target.
pub struct Target {
    /// The name of the target and of its directories.
    pub name: &'static str,
    /// The function that processes an input.
    pub body: fn(&[u8]),
}

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    Target { name: "archive", body: archive::archive },
    Target { name: "arguments", body: arguments::arguments },
    Target { name: "bpdu", body: bpdu::bpdu },
    Target { name: "capture", body: capture::capture },
    Target { name: "classifier", body: classifier::classifier },
    Target { name: "control", body: control::control },
    Target { name: "elements", body: elements::elements },
    Target { name: "handlers", body: handlers::handlers },
    Target { name: "jit", body: classifier::jit },
    Target { name: "language", body: language::language },
    Target { name: "paths", body: paths::paths },
    Target { name: "prolac", body: prolac::prolac },
    Target { name: "rewriter", body: rewriter::rewriter },
    Target { name: "router", body: router::router },
    Target { name: "script", body: script::script },
    Target { name: "summary", body: summary::summary },
    Target { name: "tcp", body: tcp::tcp },
];

/// Returns the first `longest` bytes, or all if there are fewer.
fn at_most(data: &[u8], longest: usize) -> &[u8] {
    data.get(..longest).unwrap_or(data)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet align`: prints the configuration with the Align elements that it needs.

use crate::args::Align;
use castanet_graph::align::align;
use castanet_lang::Flat;
use castanet_spec::ClassSpecs;
use std::process::ExitCode;

/// Inserts Align elements, or CheckAlign elements with `assertions`, and removes redundant ones. Returns one line for each
/// element that is removed or inserted.
pub fn pass(assertions: bool) -> impl Fn(Flat, &dyn ClassSpecs) -> (Flat, Vec<String>) {
    move |flat, classes| {
        let (flat, changes) = align(flat, classes, assertions);
        let removed = changes.removed.iter().map(|r| format!("removed {r}"));
        let inserted = changes.inserted.iter().map(|i| format!("inserted {i}"));
        (flat, removed.chain(inserted).collect())
    }
}

/// Prints the flat configuration with aligned packets. Unknown classes are accepted.
pub fn main(args: &Align) -> ExitCode {
    crate::pass::main(&args.configuration, args.output.as_deref(), args.verbose, &pass(args.assertions))
}

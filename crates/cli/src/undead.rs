// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet undead`: prints the configuration without its dead code.

use crate::args::Undead;
use castanet_graph::undead::undead;
use castanet_lang::Flat;
use castanet_spec::ClassSpecs;
use std::process::ExitCode;

/// Removes dead code. Returns one line for each element that is removed.
pub fn pass(flat: Flat, classes: &dyn ClassSpecs) -> (Flat, Vec<String>) {
    let (flat, removed) = undead(flat, classes);
    (flat, removed.iter().map(|r| format!("removed {}: {}", r.element, r.why)).collect())
}

/// Prints the flat configuration without dead code. Unknown classes are accepted.
pub fn main(args: &Undead) -> ExitCode {
    crate::pass::main(&args.configuration, args.output.as_deref(), args.verbose, &pass)
}

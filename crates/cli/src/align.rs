// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet align`: prints the configuration with the Align elements that it needs.

use crate::args::Align;
use crate::load::{Source, complain, elaborate, show, write_out};
use castanet_graph::Graph;
use castanet_graph::align::align;
use castanet_lang::{Diagnostic, Unknown};
use std::process::ExitCode;

/// Prints the flat configuration with aligned packets. Unknown classes are accepted.
pub fn main(args: &Align) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let (flat, sources, mut diagnostics, classes) =
        elaborate(&source, args.configuration.clickpath.as_deref(), Unknown::Opaque);
    let (graph, wrong) = Graph::new(flat, classes.as_ref());
    diagnostics.extend(wrong);
    show(&sources, &diagnostics, args.configuration.json);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return ExitCode::FAILURE;
    }
    let (flat, changes) = align(graph.flat, classes.as_ref(), args.assertions);
    if args.verbose {
        changes.removed.iter().for_each(|r| complain(&format!("removed {r}")));
        changes.inserted.iter().for_each(|i| complain(&format!("inserted {i}")));
    }
    match write_out(args.output.as_deref(), &castanet_lang::print::driver(&flat)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

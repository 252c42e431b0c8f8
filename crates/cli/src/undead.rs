// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet undead`: prints the configuration without its dead code.

use crate::args::Undead;
use crate::load::{Source, complain, elaborate, show, write_out};
use castanet_graph::Graph;
use castanet_graph::undead::undead;
use castanet_lang::{Diagnostic, Unknown};
use std::process::ExitCode;

/// Prints the flat configuration without dead code. Unknown classes are accepted.
pub fn main(args: &Undead) -> ExitCode {
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
    let (flat, removed) = undead(graph.flat, classes.as_ref());
    if args.verbose {
        for r in &removed {
            complain(&format!("removed {}: {}", r.element, r.why));
        }
    }
    match write_out(args.output.as_deref(), &castanet_lang::print::driver(&flat)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet explain`: which worker reaches which element, and why, and which tasks get several turns at once.

use crate::args::Explain;
use crate::load::{Source, complain, load, show, write_out};
use castanet_lang::{Diagnostic, Unknown};
use std::process::ExitCode;

/// Prints the placement of a configuration on workers.
pub fn main(args: &Explain) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Error);
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    let mut text = String::new();
    if !diagnostics.iter().any(Diagnostic::is_error) {
        // Add the CompleteOffload elements that `run` inserts, so that the placement includes them.
        let (graph, more) = castanet_graph::offload::complete(loaded.graph, loaded.classes.as_ref());
        diagnostics.extend(more);
        let (placement, more) = castanet_runtime::place(&graph, loaded.classes.as_ref(), args.workers);
        text = placement.explain(&graph);
        // Other workers may run between the turns of a worker.
        if args.workers == 1
            && let Some((graph, quanta)) = castanet_runtime::several_turns(graph, loaded.classes.as_ref())
        {
            text = format!("{text}\n{}", quanta.explain(&graph));
        }
        diagnostics.extend(more);
    }
    show(&loaded.sources, &diagnostics, args.configuration.json);
    if let Err(e) = write_out(None, &text) {
        complain(&e);
        return ExitCode::FAILURE;
    }
    if diagnostics.iter().any(Diagnostic::is_error) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet check`: every diagnostic, no run.

use crate::args::Check;
use crate::load::{Source, complain, load, show};
use castanet_lang::{Diagnostic, Unknown};
use castanet_runtime::Options;
use std::process::ExitCode;

/// Checks a configuration: language, graph, arguments of every element. Files are not opened.
pub fn main(args: &Check) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let mut loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Error);
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let n = loaded.graph.len();
        let options = Options { workers: args.workers, ..Options::default() };
        diagnostics.extend(castanet_runtime::check(loaded.graph, loaded.classes.0.clone(), &options));
        if !diagnostics.iter().any(Diagnostic::is_error) && !args.configuration.json {
            let text = format!("{}: {n} elements, configuration OK\n", source.name);
            // The exit code says it too.
            let _ = crate::load::write_out(None, &text);
        }
    }
    if args.configuration.json && diagnostics.is_empty() {
        let _ = crate::load::write_out(None, "[]\n");
    }
    show(&loaded.sources, &diagnostics, args.configuration.json);
    if diagnostics.iter().any(Diagnostic::is_error) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

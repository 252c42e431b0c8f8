// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet check`: all diagnostics of configurations, without a run.

mod paint;

use crate::args::{Check, Configuration};
use crate::load::{Source, complain, definition, json_values, load, show};
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_runtime::Options;
use std::io::Write;
use std::process::ExitCode;

/// Checks configurations: language, graph, arguments of every element. Files of elements are not opened.
pub fn main(args: &Check) -> ExitCode {
    let mut good = true;
    let mut json = Vec::new();
    for one in each(&args.configuration) {
        let source = match Source::read(&one) {
            Ok(s) => s,
            Err(e) => {
                complain(&e);
                good = false;
                continue;
            }
        };
        let (sources, diagnostics) = check(&source, args);
        good &= !diagnostics.iter().any(Diagnostic::is_error);
        if args.configuration.json {
            json.extend(json_values(&sources, &diagnostics));
        } else {
            show(&sources, &diagnostics, false);
        }
    }
    if args.configuration.json && json.is_empty() {
        let _ = crate::load::write_out(None, "[]\n");
    } else if args.configuration.json {
        let _ = writeln!(std::io::stderr().lock(), "{:#}", serde_json::Value::Array(json));
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One configuration for each file named, with the same variables. Other contradictions are left to [`Source::read`].
fn each(c: &Configuration) -> Vec<Configuration> {
    let (variables, files): (Vec<_>, Vec<_>) = c.words.iter().cloned().partition(|w| definition(w).is_some());
    if files.len() < 2 || c.expression.is_some() || c.file.is_some() {
        return vec![c.clone()];
    }
    let with = |file: String| Configuration { words: [vec![file], variables.clone()].concat(), ..c.clone() };
    files.into_iter().map(with).collect()
}

/// The diagnostics of one configuration.
fn check(source: &Source, args: &Check) -> (Sources, Vec<Diagnostic>) {
    let mut loaded = load(source, args.configuration.clickpath.as_deref(), Unknown::Error);
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let n = loaded.graph.len();
        diagnostics.extend(paint::redirects(&loaded.graph));
        let options = Options { workers: args.workers, ..Options::default() };
        diagnostics.extend(castanet_runtime::check(loaded.graph, loaded.classes.0.clone(), &options));
        if !diagnostics.iter().any(Diagnostic::is_error) && !args.configuration.json {
            let text = format!("{}: {n} elements, configuration OK\n", source.name);
            // A failed write changes nothing: the exit code has the result.
            let _ = crate::load::write_out(None, &text);
        }
    }
    (loaded.sources, diagnostics)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet check`: reports all diagnostics of configurations without running them.

mod characters;
mod merge;
mod paint;
mod scripts;

use crate::args::{Check, Configuration};
use crate::load::{Loaded, Source, complain, definition, load, show};
use castanet_lang::{Diagnostic, Sources, Span, Unknown};
use castanet_runtime::Options;
use std::process::ExitCode;

/// Checks configurations: language, graph, arguments of every element. Files that elements name are not opened.
pub fn main(args: &Check) -> ExitCode {
    let mut good = true;
    let json = args.configuration.json;
    for one in each(&args.configuration) {
        match Source::read(&one) {
            Ok(source) => {
                let (sources, diagnostics) = check(&source, args);
                good &= !diagnostics.iter().any(Diagnostic::is_error);
                show(&sources, &diagnostics, json);
            }
            Err(e) if json => {
                show(&Sources::new(), &[Diagnostic::error(e, None)], true);
                good = false;
            }
            Err(e) => {
                complain(&e);
                good = false;
            }
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Splits a command line with several files into one configuration per file, each with the same variables.
/// With `-e` or `-f` the command line is not split, and [`Source::read`] reports the files on it as an error.
pub fn each(c: &Configuration) -> Vec<Configuration> {
    let (variables, files): (Vec<_>, Vec<_>) = c.words.iter().cloned().partition(|w| definition(w).is_some());
    if files.len() < 2 || c.expression.is_some() || c.file.is_some() {
        return vec![c.clone()];
    }
    let with = |file: String| Configuration { words: [vec![file], variables.clone()].concat(), ..c.clone() };
    files.into_iter().map(with).collect()
}

/// Checks one configuration. Returns its sources and diagnostics, and prints a line if there is no error.
fn check(source: &Source, args: &Check) -> (Sources, Vec<Diagnostic>) {
    let loaded = load(source, args.configuration.clickpath.as_deref(), Unknown::Error);
    let n = loaded.graph.len();
    let (sources, diagnostics) = diagnose(loaded, args.workers);
    if !diagnostics.iter().any(Diagnostic::is_error) && !args.configuration.json {
        let text = format!("{}: {n} elements, configuration OK\n", source.name);
        // A failed write is ignored: the exit code still gives the result.
        let _ = crate::load::write_out(None, &text);
    }
    (sources, diagnostics)
}

/// Returns all diagnostics of a configuration that would run with this number of workers, and its sources. Builds the
/// elements, but opens no file.
pub fn diagnose(mut loaded: Loaded, workers: usize) -> (Sources, Vec<Diagnostic>) {
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    let errors = |all: &[Diagnostic]| all.iter().filter(|d| d.is_error()).count();
    let options = Options { workers, ..Options::default() };
    if errors(&diagnostics) == 0 {
        diagnostics.extend(paint::redirects(&loaded.graph));
        diagnostics.extend(scripts::calls(&loaded.graph));
        diagnostics.extend(characters::look_alikes(&loaded.graph));
        let packet_types = castanet_graph::packets::check(&loaded.graph);
        diagnostics.extend(castanet_runtime::check(loaded.graph, loaded.classes.clone(), &options));
        // Packet types depend on arguments, so they are reported once the arguments are right.
        if errors(&diagnostics) == 0 {
            diagnostics.extend(packet_types);
        }
    } else if diagnostics.iter().filter(|d| d.is_error()).all(|d| d.flat) {
        let held_back = std::mem::take(&mut loaded.held_back);
        diagnostics.extend(held_back.into_iter().filter(Diagnostic::is_error));
        let elements: Vec<Span> = loaded.graph.flat.elements.iter().map(|e| e.span).collect();
        let arguments = castanet_runtime::check_arguments(loaded.graph, loaded.classes.as_ref());
        merge::independent(&mut diagnostics, arguments, &elements);
        diagnostics.sort_by_key(|d| d.span.or_else(|| d.labels.iter().map(|l| l.span).min()));
    }
    diagnostics.retain(|d| !d.consequence);
    merge::variables(&mut diagnostics);
    (loaded.sources, diagnostics)
}

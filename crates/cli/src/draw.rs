// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet graph`: draws a configuration.

use crate::args::Graph;
use crate::load::{Source, complain, load, show, write_out};
use castanet_graph::{Drawing, Fold};
use castanet_lang::Unknown;
use std::process::ExitCode;

/// Draws the configuration. A configuration with errors is drawn as far as possible, and the errors are printed.
pub fn main(args: &Graph) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics, args.configuration.json);
    let fold = match (args.fold_all, args.fold.as_slice()) {
        (true, _) => Fold::All,
        (false, []) => Fold::None,
        (false, names) => Fold::Named(names.to_vec()),
    };
    let drawing = match Drawing::new(&loaded.graph, &fold) {
        Ok(d) => d,
        Err(e) => {
            complain(&e.to_string());
            return ExitCode::FAILURE;
        }
    };
    let text = match (args.dot, args.gml, args.graphml) {
        (true, ..) => drawing.dot(),
        (_, true, _) => drawing.gml(),
        (.., true) => drawing.graphml(),
        _ => drawing.svg(),
    };
    let written = write_out(args.output.as_deref(), &text);
    if let Err(e) = &written {
        complain(e);
    }
    if written.is_err() || loaded.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

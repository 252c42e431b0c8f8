// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet graph`: draws a configuration.

use crate::args::Graph;
use crate::load::{Source, complain, load, show, write_out};
use castanet_lang::Unknown;
use std::process::ExitCode;

/// Draws the configuration as SVG. A configuration with errors is drawn as far as possible, and the errors are printed.
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
    let written = write_out(args.output.as_deref(), &castanet_graph::svg(&loaded.graph));
    if let Err(e) = &written {
        complain(e);
    }
    if written.is_err() || loaded.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet flatten`: prints the configuration with all compounds expanded.

use crate::args::Flatten;
use crate::load::{Source, complain, elaborate, show, write_out};
use castanet_lang::{Diagnostic, Unknown};
use std::process::ExitCode;

/// Prints the flat configuration. Unknown classes are accepted.
pub fn main(args: &Flatten) -> ExitCode {
    let source = match Source::read(&args.configuration) {
        Ok(s) => s,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let (flat, sources, diagnostics, _) =
        elaborate(&source, args.configuration.clickpath.as_deref(), Unknown::Opaque);
    show(&sources, &diagnostics, args.configuration.json);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return ExitCode::FAILURE;
    }
    match write_out(args.output.as_deref(), &castanet_lang::print::driver(&flat)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

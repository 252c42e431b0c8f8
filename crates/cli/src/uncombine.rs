// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet uncombine`: prints one router of a combined configuration.

use crate::load::{Source, complain, elaborate, show, write_out};
use castanet_graph::network::{components, uncombine};
use castanet_lang::{Diagnostic, Flat, Unknown};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `castanet uncombine`.
#[derive(Args)]
pub struct Uncombine {
    /// The combined configuration (`-` is standard input).
    #[arg(value_name = "FILE")]
    file: String,
    /// The name of the router. It may be left out if there is only one.
    #[arg(value_name = "ROUTER")]
    router: Option<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print diagnostics as JSON on standard error, one object a line.
    #[arg(long)]
    json: bool,
}

/// Returns the configuration of one router. Without a name, it is the only router.
///
/// # Errors
/// The name is missing or unknown, or the configuration does not separate the routers.
pub fn router_of(flat: &Flat, router: Option<&str>) -> Result<Flat, String> {
    let all = components(flat);
    let name = match (router, all.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => return Err("the configuration is not one of several routers".into()),
        (None, _) => return Err(format!("which router? The configuration has {}", all.join(", "))),
    };
    uncombine(flat, name).map_err(|e| e.to_string())
}

/// Prints the configuration of one router.
pub fn main(args: &Uncombine) -> ExitCode {
    match run(args) {
        Ok(done) => ExitCode::from(u8::from(!done)),
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Uncombine) -> Result<bool, String> {
    let source = Source::file(&args.file, Vec::new())?;
    let (flat, sources, diagnostics, _) = elaborate(&source, None, Unknown::Opaque);
    show(&sources, &diagnostics, args.json);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let flat = router_of(&flat, args.router.as_deref())?;
    write_out(args.output.as_deref(), &castanet_lang::print::driver(&flat))?;
    Ok(true)
}

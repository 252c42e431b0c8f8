// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subcommands that run a pass over the flat configuration and print the result.

use crate::args::Configuration;
use crate::load::{Source, complain, elaborate, exit, show, write_out};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Flat, Unknown};
use castanet_spec::ClassSpecs;
use std::path::Path;
use std::process::ExitCode;

/// A pass over a configuration without errors. Returns the new configuration, and one line for each change.
pub type Pass<'a> = dyn Fn(Flat, &dyn ClassSpecs) -> (Flat, Vec<String>) + 'a;

/// Runs a pass over a configuration, and writes the flat result. Unknown classes are accepted. `verbose` prints the
/// changes.
pub fn main(
    configuration: &Configuration,
    output: Option<&Path>,
    verbose: bool,
    pass: &Pass<'_>,
) -> ExitCode {
    exit(run(configuration, output, verbose, pass))
}

fn run(
    configuration: &Configuration,
    output: Option<&Path>,
    verbose: bool,
    pass: &Pass<'_>,
) -> Result<bool, String> {
    let source = Source::read(configuration)?;
    let (flat, sources, mut diagnostics, classes) =
        elaborate(&source, configuration.clickpath.as_deref(), Unknown::Opaque);
    let (graph, wrong) = Graph::new(flat, classes.as_ref());
    diagnostics.extend(wrong);
    show(&sources, &diagnostics, configuration.json);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let (flat, changes) = pass(graph.flat, classes.as_ref());
    if verbose {
        changes.iter().for_each(|line| complain(line));
    }
    write_out(output, &castanet_lang::print::driver(&flat))?;
    Ok(true)
}

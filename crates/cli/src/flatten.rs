// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet flatten`: prints the configuration with all compounds expanded, or lists its classes or elements.

use crate::args::Flatten;
use crate::load::{Source, elaborate_with, exit, show, write_out};
use castanet_lang::elaborate::{Globals, Loaded};
use castanet_lang::{Diagnostic, Flat, Unknown, print};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The part of a flat configuration that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The configuration.
    Config,
    /// The names of the classes, in order.
    Classes,
    /// The names of the elements, in order.
    Names,
    /// The elements as `NAME :: CLASS`, in order.
    Declarations,
    /// Nothing: errors are reported only.
    Nothing,
}

impl Listing {
    /// Returns the list, one line each, or `None` if the configuration is to be printed.
    pub fn lines(self, flat: &Flat) -> Option<String> {
        let all: BTreeSet<String> = match self {
            Listing::Config => return None,
            Listing::Classes => flat.elements.iter().map(|e| e.class.to_string()).collect(),
            Listing::Names => flat.elements.iter().map(|e| e.name.clone()).collect(),
            Listing::Declarations => flat.elements.iter().map(|e| e.declaration()).collect(),
            Listing::Nothing => BTreeSet::new(),
        };
        Some(all.into_iter().fold(String::new(), |text, line| text + &line + "\n"))
    }
}

/// Returns the definitions of a configuration whose variables are not substituted. Those from the command line
/// (`given`) replace those in the text.
pub fn definitions(loaded: &Loaded, given: &[(String, String)]) -> Vec<(String, String)> {
    let mut all = loaded.defines.clone();
    for (name, value) in given {
        match all.iter_mut().find(|d| d.0 == *name) {
            Some(d) => d.1.clone_from(value),
            None => all.push((name.clone(), value.clone())),
        }
    }
    all
}

/// Prints the flat configuration or a list. Unknown classes are accepted.
pub fn main(args: &Flatten) -> ExitCode {
    exit(flatten(args))
}

/// Returns false if the configuration has errors, which have been printed.
fn flatten(args: &Flatten) -> Result<bool, String> {
    let source = Source::read(&args.configuration)?;
    let globals = if args.no_expand_vars { Globals::Keep } else { Globals::Substitute };
    let clickpath = args.configuration.clickpath.as_deref();
    let (loaded, sources, _) = elaborate_with(&source, clickpath, Unknown::Opaque, globals);
    show(&sources, &loaded.diagnostics, args.configuration.json);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let text = match args.listing().lines(&loaded.flat) {
        Some(lines) => lines,
        None if args.no_expand_vars => {
            print::driver_with(&loaded.flat, &definitions(&loaded, &source.defines))
        }
        None => print::driver(&loaded.flat),
    };
    write_out(args.output.as_deref(), &text)?;
    Ok(true)
}

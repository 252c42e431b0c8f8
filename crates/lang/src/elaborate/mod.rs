// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elaboration: source text to a flat configuration.
//!
//! There are three steps. `files` parses the configuration and the libraries it requires. `scope` resolves the
//! names of each scope once, at its definition. `expand` expands compounds into elements and connections.
//! Everything that can grow without bound has a limit, and exceeding it gives a diagnostic.

mod body;
mod chain;
mod expand;
mod files;
mod missing;
pub mod names;
mod overload;
mod ports;
mod report;
mod scope;
pub mod structure;
mod tunnels;
mod undeclared;
mod variables;

use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::flat::{Element, Flat};
use crate::source::{FileId, Sources};
use std::collections::HashSet;
use std::ops::Range;

/// The classes defined outside the configuration.
pub trait ClassNames {
    /// Whether a class of this name or alias exists.
    fn knows(&self, name: &str) -> bool;
    /// All names, aliases included. For a misspelt name, the nearest of them is suggested.
    fn names(&self) -> Vec<&str>;
}

impl ClassNames for [&str] {
    fn knows(&self, name: &str) -> bool {
        self.contains(&name)
    }
    fn names(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> ClassNames for [&str; N] {
    fn knows(&self, name: &str) -> bool {
        self.contains(&name)
    }
    fn names(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// Why a library cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No file of this name was found. A client also gets this error for a file that it may not read.
    #[error("no such file")]
    Missing,
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    /// A configuration from a client requires a library, but the operator has not allowed libraries for clients.
    #[error(
        "a configuration from a client may require no library; the operator allows those of a folder by --library-path"
    )]
    NoneAllowed,
    /// The name leads out of the directory that clients may use.
    #[error("a configuration from a client may require libraries from the operator's directory only")]
    Outside,
}

/// Where `require(library NAME)` finds files.
pub trait Library {
    /// Reads library `name`, required by the file `from`. Returns the file name and the bytes, or the reason it
    /// cannot be read. The file name appears in messages and identifies the file, so that each file is read
    /// once.
    fn read(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), LibraryError>;
}

/// A library source without any libraries.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn read(&self, _: &str, _: &str) -> Result<(String, Vec<u8>), LibraryError> {
        Err(LibraryError::Missing)
    }
}

/// The treatment of undeclared classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Report an error; used when the configuration is to be run.
    Error,
    /// Accept the class without knowing anything about it; used by the tools.
    Opaque,
}

/// How to load a configuration.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The classes defined outside the configuration.
    pub classes: &'a dyn ClassNames,
    /// Variables from the command line. They override definitions at file scope.
    pub defines: &'a [(String, String)],
    /// The source of required libraries.
    pub library: &'a dyn Library,
    /// The treatment of undeclared classes.
    pub unknown: Unknown,
}

/// Limit on the number of elements, and on the number of compounds expanded to get them.
pub(crate) const MAX_ELEMENTS: usize = 1_000_000;
/// Limit on the number of connections, and on the number of steps to trace them through compounds.
pub(crate) const MAX_CONNECTIONS: usize = 4_000_000;
/// Limit on the bytes of all element names and configuration strings together.
pub(crate) const MAX_TEXT: usize = 64 << 20;

/// Whether variables of the file scope are substituted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Globals {
    /// Substitute them.
    Substitute,
    /// Keep the uses of these variables as written, for printing by the tools.
    Keep,
}

/// A flat configuration together with the variable definitions of its file scope.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The flat configuration.
    pub flat: Flat,
    /// Variables defined at file scope, in order, without `$`.
    pub defines: Vec<(String, String)>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Elaborates a file of `sources`. On errors, the result holds everything that could be elaborated.
pub fn load(sources: &mut Sources, file: FileId, options: &Options<'_>) -> (Flat, Vec<Diagnostic>) {
    let loaded = load_with(sources, file, options, Globals::Substitute);
    (loaded.flat, loaded.diagnostics)
}

/// Like [`load`], with a choice of whether file-scope variables are substituted.
pub fn load_with(sources: &mut Sources, file: FileId, options: &Options<'_>, globals: Globals) -> Loaded {
    let mut report = report::Report::default();
    let files = files::read(sources, file, options, &mut report);
    let sources = &*sources;
    let mut scopes = scope::Scopes::new(sources, options, &mut report);
    let top = scopes.top(&files);
    let (classes, inner) = (scopes.classes, scopes.requirements);
    // The statements of a large configuration take much memory, and from here on nothing reads them.
    drop(files.statements);
    let mut loaded = expand::flatten(sources, options, globals, &classes, top, &mut report);
    loaded.flat.file = file;
    let all = files.requirements.into_iter().chain(inner);
    let mut seen = HashSet::new();
    for (kind, name, span) in all {
        if seen.insert((kind.clone(), name.clone())) {
            loaded.flat.requirements.push((kind, name));
            loaded.flat.required_at.push(span);
        }
    }
    loaded.diagnostics = report.finish();
    loaded
}

/// Elaborates bytes: plain text, or an archive whose member `config` is the text. Bytes that are not UTF-8 are
/// converted to characters as described in [`crate::bytes`].
pub fn load_bytes(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    options: &Options<'_>,
) -> (Flat, Vec<Diagnostic>) {
    let loaded = load_bytes_with(sources, name, bytes, options, Globals::Substitute);
    (loaded.flat, loaded.diagnostics)
}

/// Like [`load_bytes`], with a choice of whether file-scope variables are substituted.
pub fn load_bytes_with(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    options: &Options<'_>,
    globals: Globals,
) -> Loaded {
    let (file, archive, mut diagnostics) = files::add(sources, name, bytes);
    let mut loaded = load_with(sources, file, options, globals);
    loaded.flat.archive = archive;
    diagnostics.append(&mut loaded.diagnostics);
    loaded.diagnostics = diagnostics;
    loaded
}

/// The compound classes of a file, each expanded on its own.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    /// The contents of the classes, in order.
    pub fragments: Vec<Fragment>,
    /// The requirements of the file, such as `("package", "foo")`.
    pub requirements: Vec<(String, String)>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the compound classes that a file defines at file scope. Elements outside classes are ignored.
pub fn load_fragments(sources: &mut Sources, name: &str, bytes: &[u8], options: &Options<'_>) -> Fragments {
    let (file, _, mut diagnostics) = files::add(sources, name, bytes);
    let mut report = report::Report::default();
    let files = files::read(sources, file, options, &mut report);
    let sources = &*sources;
    let mut scopes = scope::Scopes::new(sources, options, &mut report);
    let top = scopes.top(&files);
    let (classes, inner) = (scopes.classes, scopes.requirements);
    let fragments = expand::fragments(sources, options, &classes, &top, &mut report);
    let requirements = files.requirements.iter().cloned().chain(inner).map(|(kind, name, _)| (kind, name));
    diagnostics.append(&mut report.finish());
    Fragments { fragments, requirements: requirements.collect(), diagnostics }
}

/// Returns the variables that a configuration string uses, without `$`.
pub fn variables_of(config: &str) -> Vec<&str> {
    variables::all_uses(config).into_iter().map(|(_, name)| name).collect()
}

/// Substitutes variables of a configuration string by their values, given by name without `$`.
pub fn substitute(config: &str, values: &[(String, String)]) -> String {
    let mut budget = variables::Budget { left: MAX_TEXT, cycle: false, spent: false };
    match variables::Env::top(&[], values).substitute(config, &mut budget) {
        Some(pieces) => pieces.into_iter().map(|p| p.text).collect(),
        None => config.to_string(),
    }
}

/// The largest number of variables that a help text names.
const MOST_SHOWN: usize = 6;

/// Returns a warning for each variable that remains in a configuration string because it is not defined. `defined` are
/// the variables of the file.
pub fn undefined_variables(element: &Element, defined: &[&str]) -> Vec<Diagnostic> {
    let uses = variables::uses(&element.config).into_iter();
    let parameters = element.origin.last().map_or(&[][..], |o| o.parameters.as_slice());
    let defined: Vec<&str> = parameters.iter().map(String::as_str).chain(defined.iter().copied()).collect();
    let warning = |(range, name): (Range<usize>, &str)| {
        let d =
            Diagnostic::warning(format!("variable '${name}' is not defined"), element.config_place(range))
                .kind(DiagnosticKind::UndefinedVariable)
                .at("left as written");
        match nearest(name, defined.iter().copied()) {
            Some(near) => d.did_you_mean(&format!("${near}")),
            None if (1..=MOST_SHOWN).contains(&defined.len()) => {
                let all: Vec<_> = defined.iter().map(|d| format!("${d}")).collect();
                d.help(format!("the variables here: {}", all.join(", ")))
            }
            None => {
                d.help(format!("write 'define(${name} VALUE);', or give {name}=VALUE on the command line"))
            }
        }
    };
    uses.map(warning).collect()
}

#[cfg(test)]
mod tests;

pub use expand::Fragment;
pub use missing::{MissingFrom, missing_class, missing_classes, unknown_class};
pub use names::nearest;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! From text to a flat configuration.
//!
//! Three steps: `files` parses the configuration and the libraries it requires; `scope` resolves the names of each scope
//! once, where it is defined; `expand` unfolds compounds into elements and connections. What can grow without bound is
//! counted, and ends in a diagnostic.

mod body;
mod chain;
mod expand;
mod files;
pub mod names;
mod overload;
mod ports;
mod report;
mod scope;
mod tunnels;
mod variables;

use crate::diagnostic::Diagnostic;
use crate::flat::{Element, Flat};
use crate::source::{FileId, Sources};
use std::collections::HashSet;
use std::ops::Range;

/// The classes that exist outside the configuration.
pub trait ClassNames {
    /// Whether there is a class of this name, aliases included.
    fn knows(&self, name: &str) -> bool;
    /// All names, to find the nearest one to a misspelt name.
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

/// Where `require(library NAME)` finds files.
pub trait Library {
    /// The file's name for messages (and to know it again: each is read once) and its bytes, or why it cannot be read.
    /// `from` names the file that requires it.
    fn read(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String>;
}

/// No libraries at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn read(&self, _: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        Err("no such file".into())
    }
}

/// What becomes of a class that nobody declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// An error, as where the configuration is to be run.
    Error,
    /// A class of unknown kind, as the tools take it.
    Opaque,
}

/// How to load a configuration.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The classes that exist.
    pub classes: &'a dyn ClassNames,
    /// Variables from the command line; they win over definitions at file scope.
    pub defines: &'a [(String, String)],
    /// Where libraries come from.
    pub library: &'a dyn Library,
    /// What becomes of unknown classes.
    pub unknown: Unknown,
}

/// The limits on growth. Elements, and compounds expanded on the way.
pub(crate) const MAX_ELEMENTS: usize = 1_000_000;
/// Connections, and steps to find them through compounds.
pub(crate) const MAX_CONNECTIONS: usize = 4_000_000;
/// Bytes of names and configuration strings.
pub(crate) const MAX_TEXT: usize = 64 << 20;

/// Whether variables of the file scope are substituted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Globals {
    /// They are.
    Substitute,
    /// Their uses stay as written, as the tools print them.
    Keep,
}

/// A configuration with the definitions of its file scope.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The flat configuration.
    pub flat: Flat,
    /// Variables defined at file scope, in order, without `$`.
    pub defines: Vec<(String, String)>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// Elaborates a file of `sources`. Always returns what it could make of it.
pub fn load(sources: &mut Sources, file: FileId, options: &Options<'_>) -> (Flat, Vec<Diagnostic>) {
    let loaded = load_with(sources, file, options, Globals::Substitute);
    (loaded.flat, loaded.diagnostics)
}

/// Like [`load`], with a choice about variables of the file scope.
pub fn load_with(sources: &mut Sources, file: FileId, options: &Options<'_>, globals: Globals) -> Loaded {
    let mut report = report::Report::default();
    let files = files::read(sources, file, options, &mut report);
    let sources = &*sources;
    let mut scopes = scope::Scopes::new(sources, options, &mut report);
    let top = scopes.top(&files);
    let (classes, inner) = (scopes.classes, scopes.requirements);
    let mut loaded = expand::flatten(sources, options, globals, &classes, top, &mut report);
    loaded.flat.file = file;
    let all = files.requirements.iter().cloned().chain(inner);
    let mut seen = HashSet::new();
    loaded.flat.requirements = all.filter(|r| seen.insert(r.clone())).collect();
    loaded.diagnostics = report.finish();
    loaded
}

/// Elaborates bytes: text, or an archive whose member `config` is the text. Text that is not UTF-8 is read with
/// replacement characters and a warning.
pub fn load_bytes(
    sources: &mut Sources,
    name: &str,
    bytes: &[u8],
    options: &Options<'_>,
) -> (Flat, Vec<Diagnostic>) {
    let loaded = load_bytes_with(sources, name, bytes, options, Globals::Substitute);
    (loaded.flat, loaded.diagnostics)
}

/// Like [`load_bytes`], with a choice about variables of the file scope.
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

/// A warning for each variable that is left in a configuration string because nothing defines it.
pub fn undefined_variables(element: &Element) -> Vec<Diagnostic> {
    let uses = variables::uses(&element.config).into_iter();
    let warning = |(range, name): (Range<usize>, &str)| {
        Diagnostic::warning(format!("variable '${name}' is not defined"), element.config_place(range))
            .at("stays as it is written")
            .help(format!("write 'define(${name} VALUE);', or give {name}=VALUE on the command line"))
    };
    uses.map(warning).collect()
}

#[cfg(test)]
mod tests;

pub use names::nearest;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classic tools that read one configuration: the options that they share, and the tools that run a pass over the
//! flat configuration.

use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, Opt, Value, Word, Wrong};
use crate::load::elaborate_with;
use crate::pass::Pass;
use castanet_graph::Graph;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

/// `--file`: where the configuration is.
pub const FILE: Opt = Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE");
/// `--expression`: the configuration itself.
pub const EXPRESSION: Opt =
    Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration");
/// `--output`: where the result goes.
pub const OUTPUT: Opt = Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE");
/// `--clickpath`: where libraries are.
pub const CLICKPATH: Opt =
    Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH");
/// The documentation of options that choose a driver.
pub const DRIVER: &str = "accepted for old scripts; there is one driver";

/// The values of the shared options.
#[derive(Default)]
pub struct Given {
    /// The configuration.
    pub input: Input,
    /// The file for the result.
    pub output: Option<String>,
}

/// Runs a tool. `own` stores an option of the tool in its settings: the option's first long name, its value, and whether
/// it is on. `work` does the rest. It returns whether all went well; errors that it returns are printed.
pub fn run<S>(
    about: &About,
    words: Vec<OsString>,
    settings: S,
    own: impl Fn(&mut S, &'static str, Option<String>, bool),
    work: impl FnOnce(Given, S) -> Result<bool, String>,
) -> ExitCode {
    about.exit(read(about, words, settings, own, work))
}

fn read<S>(
    about: &About,
    words: Vec<OsString>,
    mut settings: S,
    own: impl Fn(&mut S, &'static str, Option<String>, bool),
    work: impl FnOnce(Given, S) -> Result<bool, String>,
) -> Result<bool, Wrong> {
    let mut given = Given::default();
    for word in about.read(words)? {
        match word {
            Word::Plain(w) => given.input.word(w)?,
            Word::Option("file", v, _) => given.input.file(v)?,
            Word::Option("expression", v, _) => given.input.text(v)?,
            Word::Option("output", v, _) => given.output = v,
            Word::Option("clickpath", v, _) => given.input.clickpath = v,
            Word::Option("version", ..) => return Ok(print(about.name, &about.version())),
            Word::Option("help", ..) => return Ok(print(about.name, &about.help())),
            Word::Option(name, v, on) => own(&mut settings, name, v, on),
        }
    }
    Ok(work(given, settings).unwrap_or_else(|e| {
        say(&e);
        false
    }))
}

/// Runs a pass over a configuration, and writes the result. `alone` leaves out the other members of an archive; `verbose`
/// prints what the pass has done.
///
/// # Errors
/// The configuration cannot be read, or the archive cannot be written.
pub fn transform(
    about: &About,
    mut given: Given,
    alone: bool,
    verbose: bool,
    pass: &Pass<'_>,
) -> Result<bool, String> {
    let source = given.input.read()?;
    let (mut loaded, sources, classes) =
        elaborate_with(&source, given.input.clickpath.as_deref(), Unknown::Opaque, Globals::Keep);
    let (graph, wrong) = Graph::new(std::mem::take(&mut loaded.flat), classes.as_ref());
    loaded.diagnostics.extend(wrong);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let (flat, done) = pass(graph.flat, classes.as_ref());
    loaded.flat = flat;
    if alone {
        loaded.flat.archive.clear();
    }
    if verbose {
        done.iter().for_each(|line| say(&format!("{}: {line}", about.name)));
    }
    let text =
        tool_text(&loaded, &source.defines, &sources, true).map_err(|e| format!("{}: {e}", about.name))?;
    Ok(write(about.name, given.output.as_deref(), &text))
}

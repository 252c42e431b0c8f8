// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-align`: inserts the Align elements that a configuration needs.

use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, elaborate_with};
use castanet_graph::Graph;
use castanet_graph::align::align;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-align",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Inserts Align elements where packets need another alignment than they have, and removes redundant ones.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["assertions"], "", Value::None, "insert CheckAlign elements in place of Align elements"),
        Opt::new(&["bsdmodule"], "b", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["linuxmodule"], "l", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["userlevel"], "u", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["verbose"], "V", Value::None, "print what is inserted and removed"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-align`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

#[derive(Default)]
struct Settings {
    input: Input,
    output: Option<String>,
    assertions: bool,
    verbose: bool,
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let mut s = Settings::default();
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => s.input.word(w)?,
            Word::Option("file", v, _) => s.input.file(v)?,
            Word::Option("expression", v, _) => s.input.text(v)?,
            Word::Option("output", v, _) => s.output = v,
            Word::Option("clickpath", v, _) => s.input.clickpath = v,
            Word::Option("assertions", ..) => s.assertions = true,
            Word::Option("verbose", ..) => s.verbose = true,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    Ok(match s.input.read() {
        Ok(source) => transform(&source, &s),
        Err(e) => {
            say(&e);
            false
        }
    })
}

/// Writes the configuration with aligned packets.
fn transform(source: &Source, s: &Settings) -> bool {
    let (mut loaded, sources, classes) =
        elaborate_with(source, s.input.clickpath.as_deref(), Unknown::Opaque, Globals::Keep);
    let (graph, wrong) = Graph::new(std::mem::take(&mut loaded.flat), classes.as_ref());
    loaded.diagnostics.extend(wrong);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    let (flat, changes) = align(graph.flat, classes.as_ref(), s.assertions);
    loaded.flat = flat;
    if s.verbose {
        changes.removed.iter().for_each(|r| say(&format!("{}: removed {r}", ABOUT.name)));
        changes.inserted.iter().for_each(|i| say(&format!("{}: inserted {i}", ABOUT.name)));
    }
    match tool_text(&loaded, &source.defines, &sources, true) {
        Ok(text) => write(ABOUT.name, s.output.as_deref(), &text),
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    }
}

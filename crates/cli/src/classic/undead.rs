// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-undead`: removes dead code from a configuration.

use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, elaborate_with};
use castanet_graph::Graph;
use castanet_graph::undead::undead;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-undead",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Removes elements that no packet can reach or leave, and redundant ones, from a configuration.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["kernel"], "k", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["user"], "u", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(
            &["config"],
            "c",
            Value::None,
            "write only the configuration, even if the input is an archive",
        ),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["verbose"], "V", Value::None, "print what is removed"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-undead`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut output, mut alone, mut verbose) = (Input::default(), None, false, false);
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => input.word(w)?,
            Word::Option("file", v, _) => input.file(v)?,
            Word::Option("expression", v, _) => input.text(v)?,
            Word::Option("output", v, _) => output = v,
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("config", ..) => alone = true,
            Word::Option("verbose", ..) => verbose = true,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    Ok(match input.read() {
        Ok(source) => transform(&source, input.clickpath.as_deref(), output.as_deref(), alone, verbose),
        Err(e) => {
            say(&e);
            false
        }
    })
}

/// Writes the configuration without dead code. `alone` leaves out the other members of an archive.
fn transform(
    source: &Source,
    clickpath: Option<&str>,
    output: Option<&str>,
    alone: bool,
    verbose: bool,
) -> bool {
    let (mut loaded, sources, classes) = elaborate_with(source, clickpath, Unknown::Opaque, Globals::Keep);
    let (graph, wrong) = Graph::new(std::mem::take(&mut loaded.flat), classes.as_ref());
    loaded.diagnostics.extend(wrong);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    let (flat, removed) = undead(graph.flat, classes.as_ref());
    loaded.flat = flat;
    if alone {
        loaded.flat.archive.clear();
    }
    if verbose {
        removed.iter().for_each(|r| say(&format!("{}: removed {}: {}", ABOUT.name, r.element, r.why)));
    }
    match tool_text(&loaded, &source.defines, &sources, true) {
        Ok(text) => write(ABOUT.name, output, &text),
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-viz`: describes the graph of a configuration for Graphviz.

use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::load;
use castanet_graph::{Drawing, Fold};
use castanet_lang::Unknown;
use castanet_lang::bytes::encode;
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-viz",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Describes the graph of a configuration in the DOT language of Graphviz.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-viz`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut output) = (Input::default(), None);
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => input.word(w)?,
            Word::Option("file", v, _) => input.file(v)?,
            Word::Option("expression", v, _) => input.text(v)?,
            Word::Option("output", v, _) => output = v,
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option(..) => return Ok(print(ABOUT.name, &ABOUT.help())),
        }
    }
    let source = match input.read() {
        Ok(source) => source,
        Err(e) => {
            say(&e);
            return Ok(false);
        }
    };
    let loaded = load(&source, input.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics);
    Ok(match Drawing::new(&loaded.graph, &Fold::None) {
        Ok(drawing) => write(ABOUT.name, output.as_deref(), &encode(&drawing.dot())) && !loaded.failed(),
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    })
}

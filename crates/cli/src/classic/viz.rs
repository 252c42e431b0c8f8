// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-viz`: describes the graph of a configuration for Graphviz.

use super::filter::{CLICKPATH, EXPRESSION, FILE, Given, OUTPUT, run};
use super::input::{show, write};
use super::options::{About, HELP, VERSION};
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
    options: &[FILE, EXPRESSION, OUTPUT, CLICKPATH, HELP, VERSION],
};

/// Runs as `click-viz`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    run(&ABOUT, words, (), |(), _, _, _| {}, |given, ()| describe(given))
}

fn describe(mut given: Given) -> Result<bool, String> {
    let source = given.input.read()?;
    let loaded = load(&source, given.input.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics);
    let drawing = Drawing::new(&loaded.graph, &Fold::None).map_err(|e| format!("{}: {e}", ABOUT.name))?;
    Ok(write(ABOUT.name, given.output.as_deref(), &encode(&drawing.dot())) && !loaded.failed())
}

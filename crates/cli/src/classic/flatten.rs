// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-flatten`: prints the configuration with all compounds expanded, or its classes, names or declarations.

use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::flatten::{Listing, definitions};
use crate::load::{Source, archived, elaborate_with};
use castanet_lang::bytes::encode;
use castanet_lang::elaborate::{Globals, Loaded};
use castanet_lang::{Diagnostic, Sources, Unknown, print as printed};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-flatten",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Expands the compound elements of a configuration.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["classes"], "c", Value::None, "print the classes used").negatable(),
        Opt::new(&["names", "elements"], "n", Value::None, "print the names of elements").negatable(),
        Opt::new(&["declarations", "decls"], "d", Value::None, "print the elements with their classes")
            .negatable(),
        Opt::new(&["config"], "", Value::None, "print the configuration (the default)").negatable(),
        Opt::new(&["expand-vars"], "", Value::None, "substitute variables").negatable(),
        HELP,
        VERSION,
    ],
};

/// Returns a configuration in the output format of Click's tools: with line directives, and as an archive if the
/// input was an archive. Definitions from the command line replace those in the text.
pub fn tool_text(
    loaded: &Loaded,
    given: &[(String, String)],
    sources: &Sources,
    keep: bool,
) -> Result<Vec<u8>, String> {
    let text =
        if keep { tool_printer(given)(loaded, sources) } else { printed::tool(&loaded.flat, &[], sources) };
    archived(&text, &loaded.flat.archive)
}

/// Returns a function that prints a configuration in the output format of Click's tools, with the variables that its text
/// and the command line define.
pub fn tool_printer(given: &[(String, String)]) -> impl Fn(&Loaded, &Sources) -> String + '_ {
    move |loaded, sources| printed::tool(&loaded.flat, &definitions(loaded, given), sources)
}

/// Runs as `click-flatten`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(code) => code,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<ExitCode, Wrong> {
    let (mut input, mut output, mut what, mut expand) = (Input::default(), None, Listing::Config, false);
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => input.word(w)?,
            Word::Option("file", v, _) => input.file(v)?,
            Word::Option("expression", v, _) => input.text(v)?,
            Word::Option("output", v, _) => output = v,
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("expand-vars", _, on) => expand = on,
            Word::Option("version", ..) => return Ok(done(print(ABOUT.name, &ABOUT.version()))),
            Word::Option("help", ..) => return Ok(done(print(ABOUT.name, &ABOUT.help()))),
            Word::Option(name, _, on) => what = selected(what, name, on),
        }
    }
    let source = match input.read() {
        Ok(s) => s,
        Err(e) => {
            say(&e);
            return Ok(ExitCode::FAILURE);
        }
    };
    Ok(done(flatten(&source, input.clickpath.as_deref(), output.as_deref(), what, expand)))
}

/// Returns what is to be printed after the option `name`, or after its opposite if `on` is false.
fn selected(before: Listing, name: &str, on: bool) -> Listing {
    let named = match name {
        "classes" => Listing::Classes,
        "names" => Listing::Names,
        "declarations" => Listing::Declarations,
        _ => Listing::Config,
    };
    match (on, named) {
        (true, _) => named,
        (false, _) if named != before => before,
        (false, Listing::Config) => Listing::Nothing,
        (false, _) => Listing::Config,
    }
}

fn done(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn flatten(
    source: &Source,
    clickpath: Option<&str>,
    output: Option<&str>,
    what: Listing,
    expand: bool,
) -> bool {
    let globals = if expand { Globals::Substitute } else { Globals::Keep };
    let (loaded, sources, _) = elaborate_with(source, clickpath, Unknown::Opaque, globals);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    let text = match what.lines(&loaded.flat) {
        None => tool_text(&loaded, &source.defines, &sources, !expand),
        Some(lines) => Ok(encode(&lines).into_owned()),
    };
    match text {
        Ok(text) => write(ABOUT.name, output, &text),
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-flatten`: prints the configuration with all compounds expanded, or its classes, names or declarations.

use super::filter::{CLICKPATH, EXPRESSION, FILE, Given, OUTPUT, run};
use super::input::{show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
use crate::flatten::{Listing, definitions};
use crate::load::{archived, elaborate_with};
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
        FILE,
        EXPRESSION,
        OUTPUT,
        CLICKPATH,
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
    // What to print, and whether variables are expanded.
    let own = |(what, expand): &mut (Listing, bool), name: &str, _, on| match name {
        "expand-vars" => *expand = on,
        _ => *what = selected(*what, name, on),
    };
    run(&ABOUT, words, (Listing::Config, false), own, |given, (what, expand)| flatten(given, what, expand))
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

fn flatten(mut given: Given, what: Listing, expand: bool) -> Result<bool, String> {
    let source = given.input.read()?;
    let globals = if expand { Globals::Substitute } else { Globals::Keep };
    let (loaded, sources, _) =
        elaborate_with(&source, given.input.clickpath.as_deref(), Unknown::Opaque, globals);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let text = match what.lines(&loaded.flat) {
        None => tool_text(&loaded, &source.defines, &sources, !expand)
            .map_err(|e| format!("{}: {e}", ABOUT.name))?,
        Some(lines) => encode(&lines).into_owned(),
    };
    Ok(write(ABOUT.name, given.output.as_deref(), &text))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-xform`: replaces parts of a configuration, as patterns say. `click-ipopt`: the same with the patterns for IP routers.

use super::filter::{CLICKPATH, EXPRESSION, FILE, OUTPUT};
use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, definition, elaborate_with};
use crate::xform::{NO_PATTERNS, Rules, refusal};
use castanet_graph::Graph;
use castanet_graph::xform::{Direction, Shipped};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const OPTIONS: &[Opt] = &[
    FILE,
    EXPRESSION,
    OUTPUT,
    Opt::new(&["patterns"], "p", Value::Required("FILE"), "read patterns from FILE; may be repeated"),
    Opt::new(&["reverse"], "r", Value::None, "replace replacements by their patterns"),
    CLICKPATH.own(),
    Opt::new(&["verbose"], "V", Value::None, "print the replacements").own(),
    HELP,
    VERSION,
];

const XFORM: About = About {
    name: "click-xform",
    usage: "[OPTION]... [ROUTERFILE] [NAME=VALUE]... [PATTERNFILE]...",
    summary: "Replaces parts of a configuration: each class X of a pattern file by the class X_Replacement.",
    options: OPTIONS,
};

const IPOPT: About = About {
    name: "click-ipopt",
    usage: "[OPTION]... [ROUTERFILE] [NAME=VALUE]... [PATTERNFILE]...",
    summary: "Puts combination elements into the configuration of an IP router.",
    options: OPTIONS,
};

/// Runs as `click-xform`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    XFORM.exit(run(&XFORM, None, words))
}

/// Runs as `click-ipopt`.
pub fn ipopt(words: Vec<OsString>) -> ExitCode {
    IPOPT.exit(run(&IPOPT, Shipped::named("ip"), words))
}

/// The command line, apart from the configuration.
#[derive(Default)]
struct Given {
    output: Option<String>,
    patterns: Vec<String>,
    reverse: bool,
    verbose: bool,
}

fn run(about: &About, shipped: Option<&Shipped>, words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut given, mut named) = (Input::default(), Given::default(), false);
    for word in about.read(words)? {
        match word {
            // The first file is the router, all others have patterns.
            Word::Plain(w) if definition(&w).is_some() => input.word(w)?,
            Word::Plain(w) if named => given.patterns.push(w),
            Word::Plain(w) => {
                input.word(w)?;
                named = true;
            }
            Word::Option("file", v, _) => {
                input.file(v)?;
                named = true;
            }
            Word::Option("expression", v, _) => {
                input.text(v)?;
                named = true;
            }
            Word::Option("output", v, _) => given.output = v,
            Word::Option("patterns", v, _) => given.patterns.extend(v),
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("reverse", ..) => given.reverse = true,
            Word::Option("verbose", ..) => given.verbose = true,
            Word::Option("version", ..) => return Ok(print(about.name, &about.version())),
            Word::Option("help", ..) => return Ok(print(about.name, &about.help())),
            Word::Option(..) => {}
        }
    }
    let source = input.read();
    let done = source.and_then(|s| transform(about, &s, input.clickpath.as_deref(), shipped, &given));
    Ok(done.unwrap_or_else(|e| {
        say(&e);
        false
    }))
}

/// Writes the configuration with the replacements. Returns false after errors that have been printed.
fn transform(
    about: &About,
    source: &Source,
    clickpath: Option<&str>,
    shipped: Option<&Shipped>,
    given: &Given,
) -> Result<bool, String> {
    let (mut loaded, sources, classes) = elaborate_with(source, clickpath, Unknown::Opaque, Globals::Keep);
    let (graph, wrong) = Graph::new(std::mem::take(&mut loaded.flat), classes.as_ref());
    loaded.diagnostics.extend(wrong);
    show(&sources, &loaded.diagnostics);
    let direction = if given.reverse { Direction::Reverse } else { Direction::Forward };
    let mut rules = Rules::default();
    if let Some(shipped) = shipped {
        rules.add_shipped(shipped, direction, classes.as_ref(), &show);
    }
    for file in &given.patterns {
        let file = Source::file(file, source.defines.clone())?;
        rules.add(&file, clickpath, direction, classes.as_ref(), &show);
    }
    if rules.failed || loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    if rules.rules.is_empty() {
        say(NO_PATTERNS);
    }
    let outcome = rules.apply(graph.flat, classes.as_ref()).map_err(|e| format!("{}: {e}", about.name))?;
    for a in outcome.applied.iter().filter(|_| given.verbose) {
        let added = if a.added.is_empty() { "nothing".to_string() } else { a.added.join(", ") };
        say(&format!("{}: {}: {} by {added}", about.name, a.rule, a.removed.join(", ")));
    }
    outcome.refused.iter().for_each(|r| say(&refusal(r)));
    loaded.flat = outcome.flat;
    let text = tool_text(&loaded, &source.defines, &sources, true)?;
    Ok(write(about.name, given.output.as_deref(), &text))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-fastclassifier`: replaces classifiers by classes that hold their decision trees.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, Given, OUTPUT, run};
use super::flatten::tool_printer;
use super::input::{say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
use crate::fastclassifier::{Report, forward, reverse};
use crate::load::{archived, elaborate_with};
use castanet_classify::definitions::MEMBER;
use castanet_graph::fastclassifier::Options;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-fastclassifier",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Replaces the classifiers of a configuration by classes that hold their decision trees.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
        Opt::new(&["combine"], "", Value::None, "combine adjacent classifiers (the default)").negatable(),
        Opt::new(
            &["classes"],
            "",
            Value::None,
            "make classes (the default), not arguments of FastClassifier",
        )
        .negatable(),
        Opt::new(&["kernel"], "k", Value::None, DRIVER),
        Opt::new(&["user"], "u", Value::None, DRIVER),
        Opt::new(&["source"], "s", Value::None, "write only the definitions of the classes"),
        Opt::new(&["config"], "c", Value::None, "write only the configuration"),
        Opt::new(&["reverse"], "r", Value::None, "bring the original classifiers back"),
        Opt::new(&["show"], "", Value::None, "print the decision trees").own(),
        Opt::new(&["quiet"], "q", Value::None, "accepted for old scripts; no compiler runs"),
        CLICKPATH,
        Opt::new(&["verbose"], "V", Value::None, "print what is replaced"),
        HELP,
        VERSION,
    ],
};

/// The part of the result that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    All,
    Definitions,
    Configuration,
    Trees,
}

/// The options of the tool.
struct Settings {
    options: Options,
    content: Content,
    reverse: bool,
    verbose: bool,
}

/// Runs as `click-fastclassifier`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let settings = Settings {
        options: Options { combine: true, classes: true },
        content: Content::All,
        reverse: false,
        verbose: false,
    };
    let own = |s: &mut Settings, name: &str, _, on| match name {
        "combine" => s.options.combine = on,
        "classes" => s.options.classes = on,
        "source" => s.content = Content::Definitions,
        "config" => s.content = Content::Configuration,
        "show" => s.content = Content::Trees,
        "reverse" => s.reverse = true,
        "verbose" => s.verbose = true,
        _ => {}
    };
    run(&ABOUT, words, settings, own, transform)
}

/// Transforms and writes the configuration. Returns false after errors that have been printed.
fn transform(mut given: Given, s: Settings) -> Result<bool, String> {
    let source = given.input.read()?;
    let named = |e: String| format!("{}: {e}", ABOUT.name);
    let globals = Globals::Keep;
    let (mut loaded, mut sources, classes) =
        elaborate_with(&source, given.input.clickpath.as_deref(), Unknown::Opaque, globals);
    let printer = tool_printer(&source.defines);
    let readable = !loaded.diagnostics.iter().any(Diagnostic::is_error);
    let (mut report, mut text) = (Report::default(), None);
    if readable && s.reverse {
        text = reverse(&mut loaded, &mut sources, classes.as_ref(), globals).map_err(named)?.text;
    } else if readable {
        report = forward(&mut loaded, &mut sources, classes.as_ref(), globals, s.options, &printer)
            .map_err(named)?;
    }
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    if s.verbose {
        report.lines().iter().for_each(|line| say(&format!("{}: {line}", ABOUT.name)));
    }
    let content = match s.content {
        Content::Trees => report.trees().into_bytes(),
        Content::Definitions => {
            let member = loaded.flat.archive.iter().find(|m| m.0 == MEMBER);
            member.map(|m| m.1.clone()).unwrap_or_default()
        }
        Content::All | Content::Configuration => {
            if s.content == Content::Configuration {
                loaded.flat.archive.clear();
            }
            let text = text.filter(|_| source.defines.is_empty());
            archived(&text.unwrap_or_else(|| printer(&loaded, &sources)), &loaded.flat.archive)
                .map_err(named)?
        }
    };
    Ok(write(ABOUT.name, given.output.as_deref(), &content))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-fastclassifier`: replaces classifiers by classes that hold their decision trees.

use super::flatten::tool_printer;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
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
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["combine"], "", Value::None, "combine adjacent classifiers (the default)").negatable(),
        Opt::new(
            &["classes"],
            "",
            Value::None,
            "make classes (the default), not arguments of FastClassifier",
        )
        .negatable(),
        Opt::new(&["kernel"], "k", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["user"], "u", Value::None, "accepted for old scripts; there is one driver"),
        Opt::new(&["source"], "s", Value::None, "write only the definitions of the classes"),
        Opt::new(&["config"], "c", Value::None, "write only the configuration"),
        Opt::new(&["reverse"], "r", Value::None, "bring the original classifiers back"),
        Opt::new(&["show"], "", Value::None, "print the decision trees").own(),
        Opt::new(&["quiet"], "q", Value::None, "accepted for old scripts; no compiler runs"),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["verbose"], "V", Value::None, "print what is replaced"),
        HELP,
        VERSION,
    ],
};

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    All,
    Definitions,
    Configuration,
    Trees,
}

/// What the command line says.
struct Settings {
    input: Input,
    output: Option<String>,
    options: Options,
    content: Content,
    reverse: bool,
    verbose: bool,
}

/// Runs as `click-fastclassifier`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let mut s = Settings {
        input: Input::default(),
        output: None,
        options: Options { combine: true, classes: true },
        content: Content::All,
        reverse: false,
        verbose: false,
    };
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => s.input.word(w)?,
            Word::Option("file", v, _) => s.input.file(v)?,
            Word::Option("expression", v, _) => s.input.text(v)?,
            Word::Option("output", v, _) => s.output = v,
            Word::Option("clickpath", v, _) => s.input.clickpath = v,
            Word::Option("combine", _, on) => s.options.combine = on,
            Word::Option("classes", _, on) => s.options.classes = on,
            Word::Option("source", ..) => s.content = Content::Definitions,
            Word::Option("config", ..) => s.content = Content::Configuration,
            Word::Option("show", ..) => s.content = Content::Trees,
            Word::Option("reverse", ..) => s.reverse = true,
            Word::Option("verbose", ..) => s.verbose = true,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    let done = transform(s);
    if let Err(e) = &done {
        say(e);
    }
    Ok(done.unwrap_or(false))
}

/// Transforms and writes the configuration. Returns false after errors that have been printed.
fn transform(mut s: Settings) -> Result<bool, String> {
    let source = s.input.read()?;
    let named = |e: String| format!("{}: {e}", ABOUT.name);
    let globals = Globals::Keep;
    let (mut loaded, mut sources, classes) =
        elaborate_with(&source, s.input.clickpath.as_deref(), Unknown::Opaque, globals);
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
    Ok(write(ABOUT.name, s.output.as_deref(), &content))
}

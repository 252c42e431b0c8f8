// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-devirtualize`: compiles code for a configuration, which moves packets from element to element by direct calls.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, Given, OUTPUT, run};
use super::flatten::tool_printer;
use super::input::{say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
use crate::classes::BuiltIn;
use crate::devirtualize::{Choice, original, source};
use crate::load::{archived, elaborate_in};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-devirtualize",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Compiles code for a configuration, which moves packets from element to element by direct calls.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
        Opt::new(&["kernel", "linuxmodule"], "lk", Value::None, DRIVER),
        Opt::new(&["user"], "u", Value::None, DRIVER),
        Opt::new(&["source"], "s", Value::None, "write only the source of the code"),
        Opt::new(&["config"], "c", Value::None, "write only the configuration"),
        Opt::new(&["reverse"], "r", Value::None, "bring the configuration without code back"),
        Opt::new(&["devirtualize"], "", Value::Required("CLASS"), "call elements of CLASS directly"),
        Opt::new(
            &["no-devirtualize"],
            "n",
            Value::Required("CLASS"),
            "do not call elements of CLASS directly",
        ),
        Opt::new(&["instructions"], "i", Value::Required("FILE"), "read instructions from FILE"),
        CLICKPATH,
        Opt::new(&["verbose"], "V", Value::None, "print for how many elements there is code"),
        HELP,
        VERSION,
    ],
};

/// The part of the result that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    All,
    Source,
    Configuration,
}

/// The options of the tool.
struct Settings {
    choice: Choice,
    instructions: Option<String>,
    content: Content,
    reverse: bool,
    verbose: bool,
}

/// Runs as `click-devirtualize`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let settings = Settings {
        choice: Choice::default(),
        instructions: None,
        content: Content::All,
        reverse: false,
        verbose: false,
    };
    let own = |s: &mut Settings, name: &str, value: Option<String>, _| match name {
        "devirtualize" => s.choice.set(&value.unwrap_or_default(), true),
        "no-devirtualize" => s.choice.set(&value.unwrap_or_default(), false),
        "instructions" => s.instructions = value,
        "source" => s.content = Content::Source,
        "config" => s.content = Content::Configuration,
        "reverse" => s.reverse = true,
        "verbose" => s.verbose = true,
        _ => {}
    };
    run(&ABOUT, words, settings, own, transform)
}

/// Transforms and writes the configuration. Returns false after errors that have been printed.
fn transform(mut given: Given, s: Settings) -> Result<bool, String> {
    let named = |e: String| format!("{}: {e}", ABOUT.name);
    let mut choice = Choice::default();
    if let Some(file) = &s.instructions {
        choice.read(Path::new(file)).map_err(named)?;
    }
    choice.extend(s.choice);
    let read = given.input.read()?;
    let available = BuiltIn::all().available(given.input.clickpath.as_deref());
    let unknown = if s.reverse { Unknown::Opaque } else { Unknown::Error };
    let (loaded, sources, _) = elaborate_in(&available, &read, unknown, Globals::Keep);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    let text = tool_printer(&read.defines)(&loaded, &sources);
    let before =
        original(&available, &loaded.flat, sources.text(loaded.flat.file), Globals::Keep).map_err(named)?;
    let content = if s.reverse {
        archived(&before.text, &before.members).map_err(named)?
    } else {
        let made =
            source(&available, text, before.members.clone(), &read.packages, choice, &show).map_err(named)?;
        let Some(made) = made else { return Ok(false) };
        if s.verbose {
            say(&format!("{}: {}", ABOUT.name, made.report()));
        }
        match s.content {
            Content::Source => made.code.text.into_bytes(),
            Content::Configuration => archived(&made.text, &before.members).map_err(named)?,
            Content::All => made.compile(&before.text, None).map_err(named)?,
        }
    };
    Ok(write(ABOUT.name, given.output.as_deref(), &content))
}

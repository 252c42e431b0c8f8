// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-uncombine`: takes one router out of a combined configuration.

use super::filter::OUTPUT;
use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, elaborate_with};
use crate::uncombine::router_of;
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-uncombine",
    usage: "[OPTION]... [FILE [COMPONENT]]",
    summary: "Takes one router out of a combined configuration.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the combined configuration from FILE"),
        Opt::new(&["name"], "n", Value::Required("NAME"), "the name of the router"),
        OUTPUT,
        HELP,
        VERSION,
    ],
};

/// Runs as `click-uncombine`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ABOUT.exit(run(words))
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut router, mut output, mut named) = (Input::default(), None, None, false);
    for word in ABOUT.read(words)? {
        match word {
            // The first word is the file, unless an option has named it; the second one is the router.
            Word::Plain(w) if !named => {
                named = true;
                input.file(Some(w))?;
            }
            Word::Plain(w) if router.is_none() => router = Some(w),
            Word::Plain(_) => return Err(Wrong::Usage("router component specified twice".into())),
            Word::Option("file", v, _) => {
                named = true;
                input.file(v)?;
            }
            Word::Option("name", v, _) => router = v,
            Word::Option("output", v, _) => output = v,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => {}
        }
    }
    let written = input.read().and_then(|source| extract(&source, router.as_deref(), output.as_deref()));
    Ok(written.unwrap_or_else(|e| {
        say(&format!("{}: {e}", ABOUT.name));
        false
    }))
}

fn extract(source: &Source, router: Option<&str>, output: Option<&str>) -> Result<bool, String> {
    let (mut loaded, sources, _) = elaborate_with(source, None, Unknown::Opaque, Globals::Keep);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(false);
    }
    loaded.flat = router_of(&loaded.flat, router)?;
    Ok(write(ABOUT.name, output, &tool_text(&loaded, &[], &sources, true)?))
}

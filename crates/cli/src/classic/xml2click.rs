// SPDX-License-Identifier: MIT OR Apache-2.0
//! `xml2click`: reads a configuration from XML, and writes it in the configuration language.

use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, elaborate};
use castanet_graph::xml;
use castanet_lang::bytes::{decode, encode};
use castanet_lang::{Diagnostic, Unknown, print as printed};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "xml2click",
    usage: "[OPTION]... [XMLFILE]",
    summary: "Reads a configuration from the XML of click2xml.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the XML from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the XML"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(
            &["clickpath"],
            "C",
            Value::Required("PATH"),
            "accepted for old scripts; XML requires no libraries",
        ),
        Opt::new(&["flatten"], "F", Value::None, "expand compound elements"),
        HELP,
        VERSION,
    ],
};

/// Runs as `xml2click`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut output, mut flatten) = (Input::default(), None, false);
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => input.word(w)?,
            Word::Option("file", v, _) => input.file(v)?,
            Word::Option("expression", v, _) => input.text(v)?,
            Word::Option("output", v, _) => output = v,
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("flatten", ..) => flatten = true,
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option(..) => return Ok(print(ABOUT.name, &ABOUT.help())),
        }
    }
    let text = input.read().and_then(|source| convert(&source, input.clickpath.as_deref(), flatten));
    Ok(match text {
        Ok(Some(text)) => write(ABOUT.name, output.as_deref(), &encode(&text)),
        Ok(None) => false,
        Err(e) => {
            say(&e);
            false
        }
    })
}

/// Returns the text of the configuration, or `None` if it has errors, which have been printed.
fn convert(source: &Source, clickpath: Option<&str>, flatten: bool) -> Result<Option<String>, String> {
    let text = xml::to_text(&decode(&source.bytes)).map_err(|e| format!("{}:{e}", source.name))?;
    // The configuration is elaborated in any case, to find connections between elements that do not exist.
    let converted = Source::text(&source.name, &text, source.defines.clone());
    let (flat, sources, diagnostics, _) = elaborate(&converted, clickpath, Unknown::Opaque);
    show(&sources, &diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(None);
    }
    Ok(Some(if flatten { printed::driver(&flat) } else { text }))
}

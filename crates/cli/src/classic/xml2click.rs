// SPDX-License-Identifier: MIT OR Apache-2.0
//! `xml2click`: reads a configuration from XML, and writes it in the configuration language.

use super::filter::{OUTPUT, run};
use super::input::{show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
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
        OUTPUT,
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
    let own = |flatten: &mut bool, name: &str, _, _| *flatten |= name == "flatten";
    run(&ABOUT, words, false, own, |mut given, flatten| {
        let source = given.input.read()?;
        let text = convert(&source, given.input.clickpath.as_deref(), flatten)?;
        Ok(text.is_some_and(|text| write(ABOUT.name, given.output.as_deref(), &encode(&text))))
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

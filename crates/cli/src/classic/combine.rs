// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-combine`: joins several routers and the links between them to one configuration.

use super::filter::OUTPUT;
use super::flatten::tool_text;
use super::input::{print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::classes::BuiltIn;
use crate::load::Source;
use crate::network::{Network, combined};
use castanet_graph::network::{ELEMENT_MAP, Order};
use castanet_lang::Unknown;
use castanet_lang::elaborate::Loaded;
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-combine",
    usage: "[OPTION]... [FILE | NAME=FILE | LINK]...",
    summary: "Joins several routers and the links between them to one configuration.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read a router from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as a router"),
        Opt::new(&["name"], "n", Value::Required("NAME"), "the name of the next router"),
        Opt::new(&["link"], "l", Value::Required("LINK"), "add a link, as in A.eth0=B.eth1"),
        OUTPUT,
        Opt::new(&["config"], "c", Value::None, "write only the configuration, not an archive"),
        HELP,
        VERSION,
    ],
};

/// The element map of the archive: the declaration of RouterLink, which is no class of the driver.
const ELEMENTS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<elementmap xmlns="http://www.lcdf.org/click/xml/">
  <entry name="RouterLink" portcount="-/-" processing="a/h" flowcode="x/x" />
</elementmap>
"#;

/// Runs as `click-combine`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ABOUT.exit(run(words))
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let mut network = Network::default();
    let (mut name, mut output, mut alone): (Option<String>, _, _) = (None, None, false);
    for word in ABOUT.read(words)? {
        let added = match word {
            Word::Plain(w) if name.is_none() => network.word(&w),
            Word::Plain(w) => network.file(name.take().as_deref(), &w),
            Word::Option("file", Some(file), _) => network.file(name.take().as_deref(), &file),
            Word::Option("expression", Some(text), _) => {
                let next = name.take().unwrap_or_else(|| format!("config{}", network.routers.len() + 1));
                network.routers.push((next, Source::text("config", &text, Vec::new())));
                Ok(())
            }
            Word::Option("link", Some(link), _) => link.parse().map(|link| network.links.push(link)),
            Word::Option("name", v, _) => {
                name = v;
                Ok(())
            }
            Word::Option("output", v, _) => {
                output = v;
                Ok(())
            }
            Word::Option("config", ..) => {
                alone = true;
                Ok(())
            }
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(..) => Ok(()),
        };
        added.map_err(Wrong::Usage)?;
    }
    if network.routers.is_empty() {
        return Err(Wrong::Usage("no router specified".into()));
    }
    Ok(write_combined(network, output.as_deref(), alone))
}

/// Writes the combined configuration. `alone` leaves out the other members of the archive.
fn write_combined(network: Network, output: Option<&str>, alone: bool) -> bool {
    let combined =
        combined(network, &BuiltIn::all().available(None), Unknown::Opaque, Order::Forgotten, show);
    let done = combined.and_then(|mut c| {
        c.flat.archive.push((ELEMENT_MAP.into(), ELEMENTS.into()));
        if alone {
            c.flat.archive.clear();
        }
        let loaded = Loaded { flat: c.flat, defines: Vec::new(), diagnostics: Vec::new() };
        tool_text(&loaded, &[], &c.sources, false).map_err(|e| vec![e])
    });
    match done {
        Ok(text) => write(ABOUT.name, output, &text),
        Err(errors) => {
            errors.iter().for_each(|e| say(&format!("{}: {e}", ABOUT.name)));
            false
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click2xml`: writes a configuration as XML.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, OUTPUT, run};
use super::input::{say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
use crate::classes::BuiltIn;
use crate::load::{Source, elaborate_in};
use castanet_graph::{Graph, markup, xml};
use castanet_lang::elaborate::{Globals, structure};
use castanet_lang::library::SearchPath;
use castanet_lang::{Diagnostic, Options, Sources, Unknown};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click2xml",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Writes a configuration as XML.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
        CLICKPATH,
        Opt::new(&["flatten"], "F", Value::None, "expand compound elements"),
        Opt::new(&["linuxmodule"], "l", Value::None, DRIVER),
        Opt::new(&["bsdmodule"], "b", Value::None, DRIVER),
        Opt::new(&["kernel"], "k", Value::None, DRIVER),
        Opt::new(&["userlevel"], "", Value::None, DRIVER),
        HELP,
        VERSION,
    ],
};

/// Runs as `click2xml`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let own = |flatten: &mut bool, name: &str, _, _| *flatten |= name == "flatten";
    run(&ABOUT, words, false, own, |mut given, flatten| {
        let source = given.input.read()?;
        let xml = convert(&source, given.input.clickpath.as_deref(), flatten);
        Ok(xml.is_some_and(|xml| write(ABOUT.name, given.output.as_deref(), xml.as_bytes())))
    })
}

/// Returns the configuration as XML, or `None` if it has errors, which have been printed.
fn convert(source: &Source, clickpath: Option<&str>, flatten: bool) -> Option<String> {
    let available = BuiltIn::all().available(clickpath);
    let (loaded, sources, classes) = elaborate_in(&available, source, Unknown::Opaque, Globals::Substitute);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    // Errors of ports do not matter to a conversion.
    let (graph, _) = Graph::new(loaded.flat, classes.as_ref());
    for e in graph.flat.elements.iter().filter(|e| !markup::is_allowed(&e.config)) {
        say(&format!(
            "{}: warning: '{}': XML does not allow all characters of the configuration string",
            ABOUT.name, e.name
        ));
    }
    if flatten {
        return Some(xml::flat(&graph, &sources));
    }
    // The files are read again in the same order, so positions in both sets of sources are the same.
    let mut own = Sources::new();
    let file = own.add(sources.name(graph.flat.file), sources.text(graph.flat.file));
    let library = SearchPath::new(available.packages.clickpath());
    let options = Options {
        classes: classes.as_ref(),
        defines: &source.defines,
        library: &library,
        unknown: Unknown::Opaque,
    };
    let (structure, _) = structure::structure(&mut own, file, &options);
    Some(xml::structured(&structure, &graph, &sources))
}

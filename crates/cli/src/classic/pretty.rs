// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-pretty`: shows a configuration as an HTML page, or describes its graph for other programs.

use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, load};
use crate::pretty::{DocsOptions, TemplateOptions, html};
use castanet_graph::{Drawing, Fold};
use castanet_lang::Unknown;
use castanet_lang::bytes::encode;
use std::ffi::OsString;
use std::process::ExitCode;

const DRIVER: &str = "accepted for old scripts; there is one driver";

const ABOUT: About = About {
    name: "click-pretty",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Shows a configuration as an HTML page.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(&["output"], "o", Value::Required("FILE"), "write to FILE"),
        Opt::new(&["template"], "t", Value::Required("FILE"), "use FILE as the template"),
        Opt::new(&["template-text"], "T", Value::Required("TEXT"), "use TEXT as the template"),
        Opt::new(&["define"], "d", Value::Required("NAME=TEXT"), "let the tag <? NAME ?> stand for TEXT"),
        Opt::new(&["class-docs"], "u", Value::Required("URL"), "link classes to URL; %s is the class"),
        Opt::new(&["package-docs"], "", Value::Required("PKG=URL"), "link the classes of package PKG to URL"),
        Opt::new(&["write-template"], "", Value::None, "print the template"),
        Opt::new(&["dot"], "", Value::None, "describe the graph for Graphviz"),
        Opt::new(&["gml"], "", Value::None, "describe the graph in GML"),
        Opt::new(&["graphml"], "", Value::None, "describe the graph in GraphML"),
        Opt::new(&["linuxmodule"], "l", Value::None, DRIVER),
        Opt::new(&["bsdmodule"], "b", Value::None, DRIVER),
        Opt::new(&["kernel"], "k", Value::None, DRIVER),
        Opt::new(&["userlevel"], "", Value::None, DRIVER),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        HELP,
        VERSION,
    ],
};

/// Runs as `click-pretty`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => ABOUT.complain(&wrong),
    }
}

fn run(words: Vec<OsString>) -> Result<bool, Wrong> {
    let (mut input, mut output, mut form) = (Input::default(), None, "html");
    let (mut template, mut docs) = (TemplateOptions::default(), DocsOptions::default());
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => input.word(w)?,
            Word::Option("file", v, _) => input.file(v)?,
            Word::Option("expression", v, _) => input.text(v)?,
            Word::Option("output", v, _) => output = v,
            Word::Option("clickpath", v, _) => input.clickpath = v,
            Word::Option("template", v, _) => (template.template, template.template_text) = (v, None),
            Word::Option("template-text", v, _) => template.template_text = v,
            Word::Option("define", v, _) => template.defines.extend(v),
            Word::Option("class-docs", v, _) => docs.class_docs = v,
            Word::Option("package-docs", v, _) => docs.package_docs.extend(v),
            Word::Option("version", ..) => return Ok(print(ABOUT.name, &ABOUT.version())),
            Word::Option("help", ..) => return Ok(print(ABOUT.name, &ABOUT.help())),
            Word::Option(name @ ("write-template" | "dot" | "gml" | "graphml"), ..) => form = name,
            Word::Option(..) => {}
        }
    }
    let text = match form {
        "write-template" => template.text().map(|text| (text, true)),
        form => {
            input.read().and_then(|source| page(&source, input.clickpath.as_deref(), form, &template, &docs))
        }
    };
    Ok(match text {
        Ok((text, well)) => write(ABOUT.name, output.as_deref(), &encode(&text)) && well,
        Err(e) => {
            say(&format!("{}: {e}", ABOUT.name));
            false
        }
    })
}

/// Returns the page or the description of the graph, and whether the configuration has no errors.
fn page(
    source: &Source,
    clickpath: Option<&str>,
    form: &str,
    template: &TemplateOptions,
    docs: &DocsOptions,
) -> Result<(String, bool), String> {
    let loaded = load(source, clickpath, Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics);
    let drawing = || Drawing::new(&loaded.graph, &Fold::None).map_err(|e| e.to_string());
    let text = match form {
        "dot" => drawing()?.dot(),
        "gml" => drawing()?.gml(),
        "graphml" => drawing()?.graphml(),
        _ => {
            let (html, unknown) = html(&loaded, template, docs)?;
            let warning = |tag: &String| format!("{}: warning: tag '<? {tag} ?>' is not defined", ABOUT.name);
            unknown.iter().for_each(|tag| say(&warning(tag)));
            html
        }
    };
    Ok((text, !loaded.failed()))
}

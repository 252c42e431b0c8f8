// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-pretty`: shows a configuration as an HTML page, or describes its graph for other programs.

use super::filter::{CLICKPATH, DRIVER, EXPRESSION, FILE, Given, OUTPUT, run};
use super::input::{say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value};
use crate::load::{Source, load};
use crate::pretty::{DocsOptions, TemplateOptions, html};
use castanet_graph::{Drawing, Fold};
use castanet_lang::Unknown;
use castanet_lang::bytes::encode;
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-pretty",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Shows a configuration as an HTML page.",
    options: &[
        FILE,
        EXPRESSION,
        OUTPUT,
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
        CLICKPATH,
        HELP,
        VERSION,
    ],
};

/// The options of the tool.
struct Settings {
    form: &'static str,
    template: TemplateOptions,
    docs: DocsOptions,
}

/// Runs as `click-pretty`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let settings =
        Settings { form: "html", template: TemplateOptions::default(), docs: DocsOptions::default() };
    let own = |s: &mut Settings, name: &'static str, v: Option<String>, _| match name {
        "template" => (s.template.template, s.template.template_text) = (v, None),
        "template-text" => s.template.template_text = v,
        "define" => s.template.defines.extend(v),
        "class-docs" => s.docs.class_docs = v,
        "package-docs" => s.docs.package_docs.extend(v),
        "write-template" | "dot" | "gml" | "graphml" => s.form = name,
        _ => {}
    };
    run(&ABOUT, words, settings, own, |given, s| {
        show_as(given, &s).map_err(|e| format!("{}: {e}", ABOUT.name))
    })
}

fn show_as(mut given: Given, s: &Settings) -> Result<bool, String> {
    let (text, well) = match s.form {
        "write-template" => (s.template.text()?, true),
        form => page(&given.input.read()?, given.input.clickpath.as_deref(), form, &s.template, &s.docs)?,
    };
    Ok(write(ABOUT.name, given.output.as_deref(), &encode(&text)) && well)
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

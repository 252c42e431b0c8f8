// SPDX-License-Identifier: MIT OR Apache-2.0
//! `click-check`: checks classes and ports of a configuration for the userlevel driver. Elements are not configured.

use super::flatten::tool_text;
use super::input::{Input, print, say, show, write};
use super::options::{About, HELP, Opt, VERSION, Value, Word, Wrong};
use crate::load::{Source, elaborate_with};
use castanet_graph::{Graph, unknown_classes};
use castanet_lang::elaborate::Globals;
use castanet_lang::{Diagnostic, DiagnosticKind, Flat, Sources, Span, Unknown};
use castanet_spec::codes::Ports;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: About = About {
    name: "click-check",
    usage: "[OPTION]... [ROUTERFILE]",
    summary: "Checks the connections of a configuration.",
    options: &[
        Opt::new(&["file"], "f", Value::Required("FILE"), "read the configuration from FILE"),
        Opt::new(&["expression"], "e", Value::Required("TEXT"), "take TEXT as the configuration"),
        Opt::new(
            &["output"],
            "o",
            Value::Required("FILE"),
            "write the configuration to FILE if it has no errors",
        ),
        Opt::new(&["filter"], "p", Value::None, "print the configuration if it has no errors"),
        Opt::new(&["bsdmodule"], "b", Value::None, "accepted; there is only the userlevel driver")
            .negatable(),
        Opt::new(
            &["linuxmodule", "kernel"],
            "lk",
            Value::None,
            "accepted; there is only the userlevel driver",
        )
        .negatable(),
        Opt::new(&["userlevel"], "u", Value::None, "check for the userlevel driver (the default)")
            .negatable(),
        Opt::new(&["clickpath"], "C", Value::Required("PATH"), "look for libraries along PATH"),
        Opt::new(&["quiet"], "q", Value::None, "print nothing if the configuration has no errors"),
        HELP,
        VERSION,
    ],
};

#[derive(Default)]
struct Settings {
    input: Input,
    output: Option<String>,
    quiet: bool,
    skip: bool,
    /// The requested drivers that Castanet does not have: `bsdmodule`, `linuxmodule`.
    others: Vec<&'static str>,
}

/// Runs as `click-check`.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let well = match settings(words) {
        Ok(Ok(s)) => run(s),
        Ok(Err(text)) => print(ABOUT.name, &text),
        Err(wrong) => return ABOUT.complain(&wrong),
    };
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Parses the command line. Returns the settings of a check, or a text to print (help or version).
fn settings(words: Vec<OsString>) -> Result<Result<Settings, String>, Wrong> {
    let mut s = Settings::default();
    for word in ABOUT.read(words)? {
        match word {
            Word::Plain(w) => s.input.word(w)?,
            Word::Option("file", v, _) => s.input.file(v)?,
            Word::Option("expression", v, _) => s.input.text(v)?,
            Word::Option("output", v, _) => s.output = v,
            Word::Option("filter", ..) => s.output = s.output.or_else(|| Some("-".into())),
            Word::Option("clickpath", v, _) => s.input.clickpath = v,
            Word::Option("quiet", ..) => s.quiet = true,
            Word::Option("userlevel", _, on) => s.skip = !on,
            Word::Option(driver @ ("bsdmodule" | "linuxmodule"), _, on) => {
                s.others.retain(|d| *d != driver);
                s.others.extend(on.then_some(driver));
            }
            Word::Option("version", ..) => return Ok(Err(ABOUT.version())),
            Word::Option(..) => return Ok(Err(ABOUT.help())),
        }
    }
    let nothing = s.skip && s.others.is_empty();
    if nothing { Err(Wrong::Usage("no driver to check for".into())) } else { Ok(Ok(s)) }
}

fn run(mut s: Settings) -> bool {
    let source = match s.input.read() {
        Ok(s) => s,
        Err(e) => {
            say(&e);
            return false;
        }
    };
    for driver in s.others.iter().filter(|_| !s.quiet) {
        say(&format!("{}: note: --{driver}: only the userlevel driver exists, so it is checked", ABOUT.name));
    }
    match check(&source, &s) {
        Ok(text) => {
            if !s.quiet {
                say(&format!("{}: configuration OK in userlevel driver", source.name));
            }
            s.output.is_none() || write(ABOUT.name, s.output.as_deref(), &text)
        }
        Err(()) => false,
    }
}

/// Prints the errors. Without errors, returns the text of the configuration.
fn check(source: &Source, s: &Settings) -> Result<Vec<u8>, ()> {
    let (loaded, sources, classes) =
        elaborate_with(source, s.input.clickpath.as_deref(), Unknown::Opaque, Globals::Keep);
    show(&sources, &loaded.diagnostics);
    if loaded.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(());
    }
    let text = tool_text(&loaded, &source.defines, &sources, true)
        .map_err(|e| say(&format!("{}: {e}", ABOUT.name)))?;
    let (graph, more) = Graph::new(loaded.flat, classes.as_ref());
    let unknown = unknown_classes(&graph, classes.as_ref());
    if !unknown.is_empty() {
        show(&sources, &unknown);
        say(&format!("warning: {}: not suitable for userlevel driver", source.name));
        return Err(());
    }
    let found = ports(&graph);
    let said: HashSet<usize> = found.iter().map(|f| f.0).collect();
    // Whether `ports` has already reported the element that this diagnostic concerns.
    let told = |d: &Diagnostic| matches!(d.kind, DiagnosticKind::Port(e) if said.contains(&e));
    let mut lines: Vec<Line> = found.into_iter().flat_map(|f| f.1).collect();
    lines.extend(more.into_iter().filter(|d| d.is_error() && !told(d)).map(|d| (d.message, d.span)));
    if lines.is_empty() {
        // The classic tool accepts configurations with wrong packet types, so these are only warnings.
        let warnings: Vec<Diagnostic> =
            castanet_graph::packets::check(&graph).into_iter().map(Diagnostic::into_warning).collect();
        if !s.quiet {
            show(&sources, &warnings);
        }
        return Ok(text);
    }
    show_lines(&sources, &lines);
    Err(())
}

type Line = (String, Option<Span>);

/// Largest number of lines printed for one configuration.
const MOST_LINES: usize = 1000;

/// Prints a heading and the lines. The heading starts with the first position found in the lines.
fn show_lines(sources: &Sources, lines: &[Line]) {
    let place = |span: Option<Span>| {
        let place = span.map(|s| sources.place(s));
        place.map_or(String::new(), |p| format!("{}:{}: ", p.file, p.line))
    };
    let first = lines.iter().find_map(|l| l.1);
    say(&format!("{}While checking configuration for userlevel driver:", place(first)));
    for (text, span) in lines.iter().take(MOST_LINES) {
        say(&format!("{}  {text}", place(*span)));
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        say(&format!("  {more} more lines not shown"));
    }
}

/// Returns the elements with too few or too many connected ports, and the lines of the error for each.
fn ports(graph: &Graph) -> Vec<(usize, Vec<Line>)> {
    let flat = &graph.flat;
    let (inputs, outputs) = used(flat);
    let (mut entering, mut leaving) = (HashMap::new(), HashMap::new());
    for c in &flat.connections {
        entering.entry(c.to.element).or_insert_with(Vec::new).push((c.to.port, c.span));
        leaving.entry(c.from.element).or_insert_with(Vec::new).push((c.from.port, c.span));
    }
    let mut out = Vec::new();
    for (e, element) in flat.elements.iter().enumerate() {
        let Some(ports) = graph.spec(e).and_then(|s| Ports::parse(s.ports)) else { continue };
        let of = |v: &[usize]| v.get(e).copied().unwrap_or(0);
        let mut lines = Vec::new();
        let sides =
            [("input", of(&inputs), ports.inputs), ("output", of(&outputs), ports.outputs_for(of(&inputs)))];
        for (word, used, count) in sides {
            let name = &element.name;
            if used < count.min {
                let text = format!("too few {word}s for '{name}', {} required", count.min);
                lines.push((text, Some(element.span)));
            } else if let Some(max) = count.max.filter(|&m| used > m) {
                lines.push((format!("too many {word}s for '{name}', {max} allowed"), Some(element.span)));
                let connections = if word == "input" { entering.get(&e) } else { leaving.get(&e) };
                for (port, span) in connections.into_iter().flatten().filter(|c| c.0 >= max) {
                    lines.push((format!("'{name}' {word} {port} used here"), Some(*span)));
                }
            }
        }
        if !lines.is_empty() {
            out.push((e, lines));
        }
    }
    out
}

/// Returns the number of inputs and outputs that the connections of each element use.
fn used(flat: &Flat) -> (Vec<usize>, Vec<usize>) {
    let (mut inputs, mut outputs) = (vec![0; flat.elements.len()], vec![0; flat.elements.len()]);
    for c in &flat.connections {
        for (end, side) in [(c.to, &mut inputs), (c.from, &mut outputs)] {
            if let Some(n) = side.get_mut(end.element) {
                *n = (*n).max(end.port.saturating_add(1));
            }
        }
    }
    (inputs, outputs)
}

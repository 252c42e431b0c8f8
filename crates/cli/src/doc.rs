// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet doc` and `castanet list`: the manual, generated from the declarations.

mod handlers;
mod markdown;
mod terminal;
mod words;

use crate::args::{Doc, List, Listed};
use crate::load::{complain, reason};
use castanet_classes::Registry;
use castanet_element::Classes as _;
use castanet_lang::ClassNames as _;
use castanet_package::{Packages, WithPackages};
use castanet_spec::{ClassSpec, HandlerSpec, Reason, anno};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum width in characters: longer lines are hard to read.
const WIDEST: usize = 100;

/// Returns the width to wrap text to, in characters.
fn width() -> usize {
    textwrap::termwidth().clamp(40, WIDEST)
}

/// Prints on standard output, without styles if it is not a terminal. A closed pipe is not an error.
fn print(text: &str) -> ExitCode {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("standard output: {}", reason(&e)));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn print_json(value: &Value) -> ExitCode {
    print(&format!("{value:#}\n"))
}

/// The name of a family or package, and its classes.
type Family = (&'static str, Vec<&'static ClassSpec>);

/// Loads the packages. Returns the classes of this binary and of the packages.
fn known(packages: &[String]) -> Result<WithPackages, String> {
    let all = Packages::new(None);
    let mut classes = all.classes(Arc::new(Registry::new()));
    for name in packages {
        classes.add(all.load_file(name).map_err(|refusal| refusal.to_string())?);
    }
    Ok(classes)
}

/// Returns the families in the order of the manual, then the packages.
fn families(known: &WithPackages) -> Vec<Family> {
    let all = castanet_classes::families().into_iter();
    let packages = known.libraries().iter().filter_map(|library| {
        let classes = library.classes();
        Some((words::folder(classes.first()?), classes))
    });
    all.chain(packages).collect()
}

/// Prints the manual of a class, or the list of all classes.
pub fn main(args: &Doc) -> ExitCode {
    let registry = match known(&args.packages) {
        Ok(known) => known,
        Err(e) => {
            complain(&e);
            return ExitCode::FAILURE;
        }
    };
    let Some(name) = &args.class else {
        let families = families(&registry);
        return match (args.json, args.markdown) {
            (true, _) => print_json(&families.iter().flat_map(|f| &f.1).map(|s| class_json(s)).collect()),
            (_, true) => print(&markdown::reference(&families)),
            _ => print(&overview(&families)),
        };
    };
    let Some(class) = registry.get(name) else {
        if let Some(text) = castanet_lang::missing_class(name) {
            complain(&text);
            return ExitCode::FAILURE;
        }
        let near = castanet_lang::nearest(name, registry.names());
        let help = near
            .map_or("; 'castanet doc' lists all classes".to_string(), |n| format!("; did you mean '{n}'?"));
        complain(&format!("no class '{name}'{help}"));
        return ExitCode::FAILURE;
    };
    match (args.json, args.markdown) {
        (true, _) => print_json(&class_json(class.spec)),
        (_, true) => print(&markdown::class(class.spec, 1, true)),
        _ => print(&terminal::class(class.spec, width())),
    }
}

/// Formats a list of all classes, one line each, by family.
fn overview(families: &[Family]) -> String {
    let mut out = String::new();
    // The column of names has the same width in all families.
    let names = families.iter().flat_map(|f| &f.1).map(|s| s.name.len()).max().unwrap_or(0);
    for (family, classes) in families {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&terminal::bold(&words::family(family)));
        out.push('\n');
        for s in classes {
            let row = vec![format!("{:names$}", s.name), words::Parts::of(s.doc).summary];
            terminal::table(&mut out, &[row], "  ", width());
        }
    }
    out
}

fn class_json(s: &ClassSpec) -> Value {
    let parts = words::Parts::of(s.doc);
    let port = |p: words::Port| json!({ "which": p.which, "moves": p.moves, "packets": p.packets, "optional": p.optional });
    let handler = |(name, h): (String, HandlerSpec)| {
        let kind = h.readable().then(|| h.kind.word());
        // True if the handler shows the value of an argument: the configured or last written value.
        let argument = s.arg_handlers.iter().any(|a| a.name == name);
        json!({ "name": name, "flags": h.flags.to_string(), "value": kind, "unit": h.unit, "argument": argument, "doc": h.doc })
    };
    let count = |c: &castanet_spec::CountSpec| json!({ "name": c.name, "unit": c.unit, "doc": c.doc, "label": c.label, "values": c.values });
    let argument = |a: &castanet_spec::ArgSpec| {
        json!({
            "name": a.name, "aliases": a.aliases, "given": words::kind(a), "required": a.mandatory,
            "type": a.type_name, "default": a.default, "doc": a.doc,
        })
    };
    json!({
        "name": s.name,
        "aliases": s.aliases,
        "family": words::folder(s),
        "summary": parts.summary,
        "synopsis": words::synopsis(s),
        "description": parts.description,
        "sections": parts.sections.iter().map(|(t, x)| json!({ "title": t, "text": x })).collect::<Vec<_>>(),
        "codes": { "ports": s.ports, "processing": s.processing, "flow": s.flow, "packets": s.packets, "alignment": s.alignment },
        "ports": words::ports(s).into_iter().map(port).collect::<Vec<_>>(),
        "arguments": s.args.iter().map(argument).collect::<Vec<_>>(),
        "handlers": handlers::all(s).into_iter().map(handler).collect::<Vec<_>>(),
        "counts": s.counts.iter().map(count).collect::<Vec<_>>(),
        "behaviour": words::behaviour(s).into_iter().map(|(t, x)| (t.to_string(), Value::from(x))).collect::<serde_json::Map<_, _>>(),
        "drops": s.drops.iter().map(|r| r.name()).collect::<Vec<_>>(),
        "task": s.task,
        "information": s.information,
    })
}

/// Returns the names of the columns (used in JSON) and the rows to list.
fn rows(what: Listed) -> (&'static [&'static str], Vec<Vec<String>>) {
    match what {
        Listed::Classes => (&["name", "summary"], Vec::new()),
        Listed::Annotations => {
            let row = |a: &anno::Annotation| {
                vec![a.name.to_string(), a.offset.to_string(), a.size.to_string(), a.doc.to_string()]
            };
            (&["name", "offset", "size", "doc"], anno::ALL.iter().map(row).collect())
        }
        Listed::Reasons => {
            let row = |r: &Reason| vec![r.name().to_string(), r.doc().trim().to_string()];
            (&["name", "doc"], Reason::ALL.iter().map(row).collect())
        }
        Listed::Handlers => {
            use castanet_runtime::handlers::{DROPS, TASK, standard};
            let global = castanet_runtime::global_handlers::global(true).map(|h| ("", h));
            let element = standard().chain(DROPS).map(|h| ("ELEMENT.", h));
            let task = TASK.iter().map(|h| ("TASK.", h));
            let row = |(of, h): (&str, &HandlerSpec)| {
                vec![format!("{of}{}", h.name), handlers::flags(h.flags), h.doc.to_string()]
            };
            (&["name", "access", "doc"], global.chain(element).chain(task).map(row).collect())
        }
    }
}

/// Prints a list.
pub fn list(args: &List) -> ExitCode {
    if matches!(args.what, Listed::Classes) {
        let families = match known(&args.packages) {
            Ok(known) => families(&known),
            Err(e) => {
                complain(&e);
                return ExitCode::FAILURE;
            }
        };
        if !args.json {
            return print(&overview(&families));
        }
        let row = |s: &ClassSpec| json!({ "name": s.name, "aliases": s.aliases, "family": words::folder(s), "summary": words::Parts::of(s.doc).summary });
        return print_json(&families.iter().flat_map(|f| &f.1).map(|s| row(s)).collect());
    }
    let (titles, rows) = rows(args.what);
    if !args.json {
        let mut out = String::new();
        terminal::table(&mut out, &rows, "", width());
        return print(&out);
    }
    // Numbers in the text become JSON numbers.
    let value = |text: &String| text.parse::<u64>().map_or_else(|_| Value::from(text.as_str()), Value::from);
    let object = |row: &Vec<String>| {
        titles.iter().zip(row).map(|(t, c)| ((*t).to_string(), value(c))).collect::<serde_json::Map<_, _>>()
    };
    print_json(&rows.iter().map(object).collect())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for configurations: parsing, formatting, checking, printing, drawing.

use super::{at_most, load};
use castanet_classes::Registry;
use castanet_graph::{Drawing, Fold, Graph};
use castanet_lang::{Diagnostic, Flat, NoLibrary, Options, Sources, Unknown, bytes, load_bytes, print};

/// The maximum number of elements and of connections. A short text with compounds can give more of them. Such a
/// configuration is not processed further.
const MANY: usize = 2000;

fn options(classes: &Registry, unknown: Unknown) -> Options<'_> {
    Options { classes, defines: &[], library: &NoLibrary, unknown }
}

/// Returns the elements and connections as text, without source positions.
fn meaning(flat: &Flat) -> Vec<String> {
    let elements = flat.elements.iter().map(|e| format!("{} :: {}({})", e.name, e.class, e.config.trim()));
    let mut connections: Vec<_> =
        flat.connections.iter().map(|c| format!("{:?} {:?}", c.from, c.to)).collect();
    connections.sort_unstable();
    elements.chain(connections).collect()
}

/// Formats a text. The formatted text must have the same meaning, and must be formatted.
fn format(data: &[u8], flat: &Flat, classes: &Registry, unknown: Unknown) {
    let formatted = |text: &str| {
        let mut sources = Sources::new();
        let file = sources.add("input", text);
        castanet_lang::format::format(&mut sources, file)
    };
    let Ok(text) = formatted(&bytes::decode(data)) else { return };
    let (again, _) =
        load_bytes(&mut Sources::new(), "formatted", &bytes::encode(&text), &options(classes, unknown));
    assert_eq!(meaning(flat), meaning(&again), "{text}");
    assert_eq!(formatted(&text).ok().as_ref(), Some(&text));
}

/// Parses bytes as a configuration. If it has no errors, printing it must preserve its meaning, and so must formatting
/// it.
pub fn language(data: &[u8]) {
    let data = at_most(data, 8192);
    let classes = load::classes();
    let unknown = if data.len().is_multiple_of(2) { Unknown::Error } else { Unknown::Opaque };
    let mut sources = Sources::new();
    let (flat, diagnostics) = load_bytes(&mut sources, "input", data, &options(&classes, unknown));
    load::show(&sources, &diagnostics);
    if flat.elements.len() > MANY || flat.connections.len() > MANY {
        return;
    }
    format(data, &flat, &classes, unknown);
    print::tool(&flat, &[], &sources);
    let text = print::driver(&flat);
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let mut again = Sources::new();
        let (second, wrong) =
            load_bytes(&mut again, "printed", &bytes::encode(&text), &options(&classes, unknown));
        assert!(!wrong.iter().any(Diagnostic::is_error), "{text}\n{}", load::show(&again, &wrong));
        assert_eq!(meaning(&flat), meaning(&second), "{text}");
    }
    let (graph, more) = Graph::new(flat, classes.as_ref());
    load::show(&sources, &more);
    for fold in [Fold::None, Fold::All] {
        let drawing = Drawing::new(&graph, &fold).unwrap_or_else(|e| panic!("{e:?}"));
        assert!(!drawing.svg().is_empty() && !drawing.dot().is_empty());
    }
    let (placement, more) = castanet_runtime::place(&graph, classes.as_ref(), 2);
    load::show(&sources, &more);
    placement.explain(&graph);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations: read, checked, printed, drawn.

use super::{at_most, load};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Flat, NoLibrary, Options, Sources, Unknown, load_bytes, print};

/// Compounds may make many elements of a short text; more than this are not looked at further.
const MANY: usize = 2000;

fn options(table: &load::Table, unknown: Unknown) -> Options<'_> {
    Options { classes: table, defines: &[], library: &NoLibrary, unknown }
}

/// Elements and connections without their places.
fn meaning(flat: &Flat) -> Vec<String> {
    let elements = flat.elements.iter().map(|e| format!("{} :: {}({})", e.name, e.class, e.config.trim()));
    let mut connections: Vec<_> =
        flat.connections.iter().map(|c| format!("{:?} {:?}", c.from, c.to)).collect();
    connections.sort_unstable();
    elements.chain(connections).collect()
}

/// Reads bytes as a configuration. What is printed of one without errors means the same.
pub fn language(data: &[u8]) {
    let data = at_most(data, 8192);
    let table = load::table();
    let unknown = if data.len().is_multiple_of(2) { Unknown::Error } else { Unknown::Opaque };
    let mut sources = Sources::new();
    let (flat, diagnostics) = load_bytes(&mut sources, "input", data, &options(&table, unknown));
    load::show(&sources, &diagnostics);
    if flat.elements.len() > MANY || flat.connections.len() > MANY {
        return;
    }
    print::tool(&flat, &[], &sources);
    let text = print::driver(&flat);
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let mut again = Sources::new();
        let (second, wrong) = load_bytes(&mut again, "printed", text.as_bytes(), &options(&table, unknown));
        assert!(!wrong.iter().any(Diagnostic::is_error), "{text}\n{}", load::show(&again, &wrong));
        assert_eq!(meaning(&flat), meaning(&second), "{text}");
    }
    let (graph, more) = Graph::new(flat, &table);
    load::show(&sources, &more);
    castanet_graph::svg(&graph);
    let (placement, more) = castanet_runtime::place(&graph, table.0.as_ref(), 2);
    load::show(&sources, &more);
    placement.explain(&graph);
}

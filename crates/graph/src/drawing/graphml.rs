// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a drawing in GraphML (graphml.graphdrawing.org). Compounds are nodes with nested graphs.

use super::scene::{End, Item, Scene};
use super::title;
use crate::graph::Graph;
use crate::markup;
use std::fmt::Write as _;

/// The data of nodes and edges: identifier, the kind of part that has it, name, and type.
const KEYS: [(&str, &str, &str, &str); 6] = [
    ("name", "node", "name", "string"),
    ("class", "node", "class", "string"),
    ("config", "node", "config", "string"),
    ("output", "edge", "output", "int"),
    ("input", "edge", "input", "int"),
    ("kind", "edge", "kind", "string"),
];

/// Describes a scene.
pub(crate) fn graphml(graph: &Graph, scene: &Scene) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    for (id, of, name, kind) in KEYS {
        let _ = writeln!(out, "<key id=\"{id}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>");
    }
    let title = markup::text(&title(graph, scene));
    let _ = writeln!(out, "<graph id=\"configuration\" edgedefault=\"directed\">\n<desc>{title}</desc>");
    contents(graph, scene, 0, &mut out);
    for &e in &scene.alone {
        node(graph, scene, Item::Element(e), &mut out);
    }
    for link in &scene.direct {
        let (End::Port(from, output), End::Port(to, input)) = (link.from, link.to) else { continue };
        let (from, to, kind) = (id(from), id(to), link.kind);
        let _ = writeln!(
            out,
            "<edge source=\"{from}\" target=\"{to}\"><data key=\"output\">{output}</data><data key=\"input\">{input}</data>\
             <data key=\"kind\">{kind}</data></edge>"
        );
    }
    out.push_str("</graph>\n</graphml>\n");
    out
}

/// Writes the nodes of a compound. The recursion is bounded, because the language limits how deep compounds nest.
fn contents(graph: &Graph, scene: &Scene, compound: usize, out: &mut String) {
    let Some(c) = scene.compounds.get(compound) else { return };
    for &item in &c.items {
        node(graph, scene, item, out);
    }
}

fn node(graph: &Graph, scene: &Scene, item: Item, out: &mut String) {
    let id = id(item);
    let _ = write!(out, "<node id=\"{id}\">");
    for (key, text) in ["name", "class", "config"].into_iter().zip(scene.described(graph, item)) {
        if !text.is_empty() {
            let _ = write!(out, "<data key=\"{key}\">{}</data>", markup::text(text));
        }
    }
    match item {
        Item::Compound(c) if scene.compounds.get(c).is_some_and(|c| !c.folded) => {
            let _ = writeln!(out, "\n<graph id=\"{id}:\" edgedefault=\"directed\">");
            contents(graph, scene, c, out);
            out.push_str("</graph></node>\n");
        }
        _ => out.push_str("</node>\n"),
    }
}

fn id(item: Item) -> String {
    match item {
        Item::Element(e) => format!("e{e}"),
        Item::Compound(c) => format!("c{c}"),
    }
}

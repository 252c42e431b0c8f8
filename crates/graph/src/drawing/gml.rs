// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a drawing in GML, the Graph Modelling Language (M. Himsolt, "GML: A portable Graph File Format", 1997).

use super::scene::{End, Item, Scene};
use super::title;
use crate::graph::Graph;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Describes a scene. Nodes are elements and folded compounds, edges have the port numbers and the kind.
pub(crate) fn gml(graph: &Graph, scene: &Scene) -> String {
    let open =
        |item: &Item| matches!(item, Item::Compound(c) if scene.compounds.get(*c).is_some_and(|c| !c.folded));
    let items = scene.compounds.iter().flat_map(|c| c.items.iter().copied()).filter(|item| !open(item));
    let items = items.chain(scene.alone.iter().map(|&e| Item::Element(e)));
    let mut out = format!("graph [\n  directed 1\n  label \"{}\"\n", quoted(&title(graph, scene)));
    let mut ids: HashMap<Item, usize> = HashMap::new();
    for item in items {
        let id = ids.len();
        ids.insert(item, id);
        let [name, class, config] = scene.described(graph, item).map(quoted);
        let _ = write!(out, "  node [ id {id} label \"{name}\" class \"{class}\"");
        if !config.is_empty() {
            let _ = write!(out, " config \"{config}\"");
        }
        out.push_str(" ]\n");
    }
    for link in &scene.direct {
        let (End::Port(from, output), End::Port(to, input)) = (link.from, link.to) else { continue };
        if let (Some(from), Some(to)) = (ids.get(&from), ids.get(&to)) {
            let kind = link.kind;
            let _ = writeln!(
                out,
                "  edge [ source {from} target {to} output {output} input {input} kind \"{kind}\" ]"
            );
        }
    }
    out.push_str("]\n");
    out
}

/// Escapes text for a string. GML has ASCII only; other characters are written as in HTML.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("&quot;"),
            '&' => out.push_str("&amp;"),
            ' '..='~' | '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(' '),
            c => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
        }
    }
    out
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a drawing in the DOT language of Graphviz. Compounds are clusters.

use super::card::{Card, Font, Look, Port};
use super::scene::{End, Item, Scene};
use super::title;
use crate::graph::{Graph, PortKind};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Describes a scene. Boxes are records whose upper and lower rows are the ports.
pub(crate) fn dot(graph: &Graph, scene: &Scene) -> String {
    let mut out = String::from("digraph configuration {\n");
    out.push_str("node [shape=record, style=filled, fontname=monospace, fontsize=11];\n");
    out.push_str("graph [fontname=monospace, fontsize=11, labelloc=b, labeljust=l];\n");
    let mut looks = BTreeSet::new();
    contents(graph, scene, 0, &mut out, &mut looks);
    let mut kinds = [false; 2];
    for link in &scene.direct {
        let pull = link.kind == PortKind::Pull;
        kinds[usize::from(pull)] = true;
        let (from, to) = (port(link.from, 'o', 's'), port(link.to, 'i', 'n'));
        let color = pull.then(|| "color=\"#2469b3\"".to_string());
        let rate = scene.rate(link).map(|r| format!("label=\"{}\"", super::rate::short(r)));
        let attributes: Vec<String> = color.into_iter().chain(rate).collect();
        let attributes = match attributes.as_slice() {
            [] => String::new(),
            all => format!(" [{}]", all.join(", ")),
        };
        let _ = writeln!(out, "{from} -> {to}{attributes};");
    }
    for &e in &scene.alone {
        box_of(&Card::new(graph, scene, "", Item::Element(e)), Item::Element(e), &mut out, &mut looks);
    }
    let mut legend = vec![title(graph, scene)];
    for (used, text) in kinds.into_iter().zip(["black arrow: push connection", "blue arrow: pull connection"])
    {
        legend.extend(used.then(|| text.to_string()));
    }
    legend.extend(looks.into_iter().map(|look| match look {
        Look::Storage => "blue box: stores packets".to_string(),
        Look::Task => "green box: has a task".to_string(),
        Look::Other => "white box: other element".to_string(),
        Look::Unknown => "dashed box: unknown class".to_string(),
        Look::Folded => "bold yellow box: compound, folded".to_string(),
    }));
    if scene.rates.is_some() {
        legend.push("number at an arrow: packets per second".to_string());
    }
    if scene.compounds.iter().skip(1).any(|c| !c.folded && !c.items.is_empty()) {
        legend.push("yellow frame: compound".to_string());
    }
    let _ = writeln!(out, "label=\"{}\\l\";\n}}", legend.join("\\l"));
    out
}

fn contents(graph: &Graph, scene: &Scene, compound: usize, out: &mut String, looks: &mut BTreeSet<Look>) {
    let Some(c) = scene.compounds.get(compound) else { return };
    for &item in &c.items {
        let open = match item {
            Item::Compound(i) => scene.compounds.get(i).filter(|c| !c.folded).map(|c| (i, c)),
            Item::Element(_) => None,
        };
        let Some((i, inner)) = open else {
            box_of(&Card::new(graph, scene, &c.path, item), item, out, looks);
            continue;
        };
        let label = quoted(&format!("{} :: {}", inner.name(), inner.class));
        let _ = writeln!(
            out,
            "subgraph cluster_{i} {{\nlabel=\"{label}\"; labelloc=t; style=filled; fillcolor=\"#faf7ef\"; color=\"#a08a58\";"
        );
        contents(graph, scene, i, out, looks);
        out.push_str("}\n");
    }
}

fn box_of(card: &Card, item: Item, out: &mut String, looks: &mut BTreeSet<Look>) {
    looks.insert(card.look);
    let look = match card.look {
        Look::Storage => "fillcolor=\"#e8f1fb\"",
        Look::Task => "fillcolor=\"#eef7ea\"",
        Look::Other => "fillcolor=white",
        Look::Unknown => "fillcolor=white, style=\"filled,dashed\"",
        Look::Folded => "fillcolor=\"#f6efe0\", style=\"filled,bold\"",
    };
    let line = |line: &Vec<(String, Font)>| line.iter().map(|piece| quoted(&piece.0)).collect::<String>();
    let text: Vec<String> = card.lines.iter().map(line).collect();
    let rows = [ports(&card.inputs, 'i'), text.join("\\n"), ports(&card.outputs, 'o')];
    let rows: Vec<String> = rows.into_iter().filter(|row| !row.is_empty()).collect();
    let (label, title) = (rows.join("|"), quoted(&card.title));
    let _ = writeln!(out, "{} [label=\"{{{label}}}\", tooltip=\"{title}\", {look}];", name(item));
}

/// A row of ports. A single port has no number.
fn ports(all: &[Port], side: char) -> String {
    let number = |i: usize| if all.len() > 1 { i.to_string() } else { String::new() };
    let cells: Vec<String> = (0..all.len()).map(|i| format!("<{side}{i}> {}", number(i))).collect();
    if cells.is_empty() { String::new() } else { format!("{{{}}}", cells.join("|")) }
}

fn name(item: Item) -> String {
    match item {
        Item::Element(e) => format!("e{e}"),
        Item::Compound(c) => format!("c{c}"),
    }
}

fn port(end: End, side: char, compass: char) -> String {
    match end {
        End::Port(item, port) => format!("{}:{side}{port}:{compass}", name(item)),
        // Not reached, because direct lines end only at boxes.
        End::Entry(i) | End::Exit(i) => format!("x{i}"),
    }
}

/// Escapes text for a quoted label of a record.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' | '{' | '}' | '|' | '<' | '>' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

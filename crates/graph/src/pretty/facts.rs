// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the elements, ports and connections that stand at a position of the source.

use crate::graph::{Graph, PortKind};
use castanet_lang::{FileId, PortRef};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The largest number of ports, peers and instances that a description names.
const SHOWN: usize = 8;

/// The side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

/// The elements and connections of a graph by their positions.
pub(super) struct Facts<'a> {
    graph: &'a Graph,
    /// The elements declared at each position. A position in a compound declares one element for each instance.
    elements: HashMap<(FileId, u32), Vec<usize>>,
    /// The elements inside the compounds that are declared at each position.
    compounds: HashMap<(FileId, u32), Vec<usize>>,
    /// The connections by the start of the first element and the end of the second one.
    connections: HashMap<(FileId, u32, u32), Vec<usize>>,
}

/// Lists the kinds of ports: `2 push, 1 pull`.
pub(super) fn kinds(ports: usize, kind: impl Fn(usize) -> PortKind) -> String {
    let pull = (0..ports).filter(|&p| kind(p) == PortKind::Pull).count();
    let counts = [(ports - pull, "push"), (pull, "pull")];
    let shown = counts.iter().filter(|c| c.0 > 0).map(|(n, kind)| format!("{n} {kind}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Joins the first texts, and counts the others.
fn list(all: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let more = all.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = all.take(SHOWN).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(separator)
}

impl<'a> Facts<'a> {
    pub(super) fn new(graph: &'a Graph) -> Facts<'a> {
        let mut elements: HashMap<_, Vec<usize>> = HashMap::new();
        let mut compounds: HashMap<_, Vec<usize>> = HashMap::new();
        for (e, element) in graph.flat.elements.iter().enumerate() {
            elements.entry((element.span.file, element.span.start)).or_default().push(e);
            for origin in &element.origin {
                compounds.entry((origin.span.file, origin.span.start)).or_default().push(e);
            }
        }
        let mut connections: HashMap<_, Vec<usize>> = HashMap::new();
        for (c, connection) in graph.flat.connections.iter().enumerate() {
            let span = connection.span;
            connections.entry((span.file, span.start, span.end)).or_default().push(c);
        }
        Facts { graph, elements, compounds, connections }
    }

    /// Describes an element: declaration, purpose, ports.
    pub(super) fn element(&self, e: usize) -> String {
        let mut text = self.graph.declaration(e);
        if let Some(summary) = self.graph.spec(e).map(|s| s.summary()).filter(|s| !s.is_empty()) {
            let _ = write!(text, "\n{summary}");
        }
        for (side, ports) in [(Side::Input, self.graph.inputs(e)), (Side::Output, self.graph.outputs(e))] {
            if ports > 0 {
                let _ = write!(text, "\n{}", list((0..ports).map(|p| self.of_port(e, side, p)), "\n"));
            }
        }
        text
    }

    /// Describes the elements or compounds that are declared at a position; `None` if there are none.
    pub(super) fn at(&self, file: FileId, start: u32) -> Option<String> {
        let Some(all) = self.elements.get(&(file, start)) else { return self.compound(file, start) };
        let mut text = self.element(*all.first()?);
        if all.len() > 1 {
            let names = list(all.iter().skip(1).map(|&e| self.graph.name(e).to_string()), ", ");
            let _ = write!(text, "\nlikewise {names}");
        }
        Some(text)
    }

    /// Lists the elements of the compounds that are declared at a position.
    fn compound(&self, file: FileId, start: u32) -> Option<String> {
        let all = self.compounds.get(&(file, start))?;
        let origins = &self.graph.element(*all.first()?)?.origin;
        let origin = origins.iter().find(|o| (o.span.file, o.span.start) == (file, start))?;
        let names = list(all.iter().map(|&e| self.graph.name(e).to_string()), ", ");
        Some(format!("{} :: {}\ncompound of {names}", origin.instance, origin.class))
    }

    /// The kind and the description of a port of the element that is declared at a position.
    pub(super) fn port(
        &self,
        file: FileId,
        start: u32,
        side: Side,
        port: usize,
    ) -> Option<(PortKind, String)> {
        let e = *self.elements.get(&(file, start))?.first()?;
        let (ports, kind) = match side {
            Side::Input => (self.graph.inputs(e), self.graph.input_kind(e, port)),
            Side::Output => (self.graph.outputs(e), self.graph.output_kind(e, port)),
        };
        (port < ports).then(|| (kind, format!("{}: {}", self.graph.name(e), self.of_port(e, side, port))))
    }

    fn of_port(&self, e: usize, side: Side, port: usize) -> String {
        let (graph, here) = (self.graph, PortRef { element: e, port });
        let (name, kind, agnostic, peers) = match side {
            Side::Input => {
                ("input", graph.input_kind(e, port), graph.input_is_agnostic(e, port), graph.upstream(here))
            }
            Side::Output => (
                "output",
                graph.output_kind(e, port),
                graph.output_is_agnostic(e, port),
                graph.downstream(here),
            ),
        };
        let agnostic = if agnostic { " (agnostic)" } else { "" };
        let peers = list(peers.iter().map(|p| format!("{} [{}]", graph.name(p.element), p.port)), ", ");
        let peers = if peers.is_empty() { "nothing".to_string() } else { peers };
        let to = if side == Side::Input { "from" } else { "to" };
        format!("{name} {port}: {kind}{agnostic}, {to} {peers}")
    }

    /// The kind and the description of the connections that are written between two positions. Returns `None` if there
    /// are none, as between a compound and its own elements.
    pub(super) fn connection(&self, file: FileId, start: u32, end: u32) -> Option<(PortKind, String)> {
        let all = self.connections.get(&(file, start, end))?;
        let graph = self.graph;
        let of = |c: &usize| graph.flat.connections.get(*c);
        let first = all.first().and_then(of)?;
        let kind = graph.output_kind(first.from.element, first.from.port);
        let each = all.iter().map(|c| match of(c) {
            Some(c) => {
                let (from, to) = (graph.name(c.from.element), graph.name(c.to.element));
                format!("{from} [{}] -> [{}] {to}", c.from.port, c.to.port)
            }
            None => String::new(),
        });
        Some((kind, format!("{kind}: {}", list(each, ", "))))
    }
}

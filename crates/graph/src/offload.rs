// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the inputs whose class does not support offloads. Partial checksums must be completed and
//! super-packets split before these inputs.

use crate::context::Visit;
use crate::graph::Graph;
use castanet_lang::{Connection, Diagnostic, Element, Flat, PortRef};
use castanet_spec::{Capability, ClassSpecs, Offload};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The class that completes checksums and splits super-packets.
pub const CLASS: &str = "CompleteOffload";

/// Returns, in element order, the inputs that packets with offloads may reach and whose class accepts no offloads.
pub fn inputs(graph: &Graph) -> Vec<PortRef> {
    let emits = |e: usize| graph.spec(e).is_some_and(|s| s.has(Capability::Offloads));
    let wants_none = |e: usize| graph.spec(e).is_none_or(|s| s.offload == Offload::None);
    let (passing, wanting) = (RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
    for source in (0..graph.len()).filter(|&e| emits(e)) {
        passing.borrow_mut().insert(source);
        graph.downstream_filter(source, None, |e| {
            if wants_none(e) {
                wanting.borrow_mut().insert(e);
                Visit::Stop
            } else {
                passing.borrow_mut().insert(e);
                Visit::Pass
            }
        });
    }
    let (passing, wanting) = (passing.into_inner(), wanting.into_inner());
    let found: BTreeSet<PortRef> = graph
        .flat
        .connections
        .iter()
        .filter(|c| passing.contains(&c.from.element) && wanting.contains(&c.to.element))
        .map(|c| c.to)
        .collect();
    found.into_iter().collect()
}

/// Inserts an element of [`CLASS`] before each of [`inputs`]. Returns the graph unchanged if there are none, or
/// if the class is unknown.
pub fn complete(graph: Graph, classes: &dyn ClassSpecs) -> (Graph, Vec<Diagnostic>) {
    let inputs = if classes.spec(CLASS).is_some() { inputs(&graph) } else { Vec::new() };
    if inputs.is_empty() {
        return (graph, Vec::new());
    }
    let mut flat: Flat = graph.flat.clone();
    let mut before: BTreeMap<PortRef, usize> = BTreeMap::new();
    for (i, input) in inputs.into_iter().enumerate() {
        let Some(at) = flat.elements.get(input.element).cloned() else { continue };
        let name = (i + 1..).map(|n| format!("{CLASS}@{n}")).find(|n| flat.find(n).is_none());
        before.insert(input, flat.elements.len());
        flat.elements.push(Element {
            name: name.unwrap_or_default(),
            class: CLASS.into(),
            config: String::new(),
            config_map: Vec::new(),
            ..at
        });
    }
    for c in &mut flat.connections {
        if let Some(&element) = before.get(&c.to) {
            c.to = PortRef { element, port: 0 };
        }
    }
    let added = before.iter().filter_map(|(&to, &element)| {
        let span = flat.elements.get(to.element)?.span;
        Some(Connection { from: PortRef { element, port: 0 }, to, span })
    });
    let added: Vec<Connection> = added.collect();
    flat.connections.extend(added);
    Graph::new(flat, classes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{TestClasses, graph};

    #[test]
    fn completion_precedes_classes_without_offload_support() {
        for (text, expected) in [
            ("Device -> Check -> Dump -> Discard;", &["Check -> Dump"][..]),
            // Completed packets are not completed again. Packets from sources without offloads are never completed.
            ("Device -> Dump -> Dump -> Discard; Source -> Dump -> Discard;", &["Device -> Dump"]),
            ("Device -> Queue -> Dump -> Unqueue -> Discard;", &["Queue -> Dump"]),
            // One element is inserted before an input, even if several connections lead to this input. No
            // element is inserted before other inputs.
            ("d :: Device -> j :: Dump -> Discard; Device -> j;", &["Device -> Dump", "Device -> Dump"]),
            ("Device -> t :: Tee; t [0] -> Discard; t [1] -> Dump -> Discard;", &["Tee -> Dump"]),
            ("Source -> Dump -> Discard;", &[]),
        ] {
            let (g, diagnostics) = complete(graph(text), &TestClasses);
            assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
            let class = |e: usize| g.flat.elements[e].class.as_str();
            let mut found = Vec::new();
            for c in &g.flat.connections {
                if class(c.to.element) == CLASS {
                    let next = g.downstream(PortRef { element: c.to.element, port: 0 });
                    found.push(format!("{} -> {}", class(c.from.element), class(next[0].element)));
                }
            }
            assert_eq!(found, expected, "{text}");
        }
    }
}

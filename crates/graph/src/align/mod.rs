// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inserts Align elements where an element wants IP headers at aligned addresses and gets others ("Programming language
//! optimizations for modular router configurations", ASPLOS 2002, section 7.1).
//!
//! Elements of Castanet read packet data at any address. The transformation serves configurations that are
//! to run where only aligned addresses can be read. It does not change packets, only the place of their data in memory.

mod alignment;
mod edit;
mod flow;

pub use alignment::Alignment;

use crate::Graph;
use crate::flow::Side;
use crate::packets::Types;
use castanet_lang::{Flat, PortRef};
use castanet_spec::ClassSpecs;
use edit::Edit;
use flow::Flow;
use std::collections::BTreeMap;

/// The class that aligns packets.
pub(crate) const ALIGN: &str = "Align";
/// The class that only checks whether packets are aligned.
const CHECK: &str = "CheckAlign";

/// The changes, in the order of the elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The elements that were inserted, and the alignment that each makes or checks: `name :: Class(MODULUS, OFFSET)`.
    pub inserted: Vec<String>,
    /// The Align elements that were removed, because their packets are aligned anyway or need not be: `name :: Class`.
    pub removed: Vec<String>,
}

/// Inserts the Align elements that a configuration without errors needs, removes those that it does not need, and adds
/// an AlignmentInfo. With `assertions`, the inserted elements are of class CheckAlign.
pub fn align(flat: Flat, classes: &dyn ClassSpecs, assertions: bool) -> (Flat, Changes) {
    let mut changes = Changes::default();
    // Each round looks at the result of the one before: whether an Align is needed depends on those behind it.
    let flat = without(flat, classes, is_redundant, &mut changes);
    let flat = without(flat, classes, is_unneeded, &mut changes);
    let flat = inserted(flat, classes, assertions, &mut changes);
    let flat = without(flat, classes, is_unneeded, &mut changes);
    (with_info(flat, classes), changes)
}

/// Returns the configuration with an Align, or a CheckAlign, before each input that needs one.
fn inserted(flat: Flat, classes: &dyn ClassSpecs, assertions: bool, changes: &mut Changes) -> Flat {
    let (graph, _) = Graph::new(flat, classes);
    let types = Types::new(&graph);
    let flow = Flow::new(&graph, &types);
    let places = merged(&graph, &flow, misaligned(&graph, &flow));
    let mut edit = Edit::new(graph.flat.clone());
    for (&input, &wanted) in &places {
        let class = if assertions { CHECK } else { ALIGN };
        let at = PortRef { element: graph.points.owner(input), port: graph.points.port(input) };
        changes.inserted.push(edit.insert(at, class, wanted));
    }
    edit.into_flat()
}

/// Returns the configuration with an AlignmentInfo about the elements that want an alignment.
fn with_info(flat: Flat, classes: &dyn ClassSpecs) -> Flat {
    let (graph, _) = Graph::new(flat, classes);
    let types = Types::new(&graph);
    let elements = informed(&graph, &Flow::new(&graph, &types));
    let mut edit = Edit::new(graph.flat);
    edit.inform(&elements);
    edit.into_flat()
}

/// The inputs that want an alignment and get another one.
fn misaligned(graph: &Graph, flow: &Flow<'_>) -> BTreeMap<usize, Alignment> {
    let inputs = (0..graph.points.hub_start()).filter(|&p| graph.points.side(p) == Side::Input);
    inputs
        .filter_map(|p| {
            let (have, wanted) = (flow.at(p)?, flow.wanted(p)?);
            (!have.satisfies(wanted)).then_some((p, wanted))
        })
        .collect()
}

/// Puts one Align before an element in place of one behind each of its outputs, if all of these make the same
/// alignment.
fn merged(
    graph: &Graph,
    flow: &Flow<'_>,
    mut places: BTreeMap<usize, Alignment>,
) -> BTreeMap<usize, Alignment> {
    let points = &graph.points;
    for e in 0..points.elements() {
        let (inputs, outputs) = (points.inputs(e), points.outputs(e));
        if inputs.len() != 1 || outputs.len() < 2 || flow.wanted(inputs.start).is_some() {
            continue;
        }
        let behind: Vec<usize> = outputs.clone().flat_map(|o| graph.peers(o).map(|p| p.0)).collect();
        let wanted = |o: usize| -> Option<Alignment> {
            let mut all = graph.peers(o).map(|(p, _)| places.get(&p).copied());
            let first = all.next()??;
            all.all(|a| a == Some(first)).then(|| Some(first.moved(flow.moves(o)?.checked_neg()?)))?
        };
        let alone = behind.iter().all(|&p| graph.peers(p).count() == 1);
        let Some(first) = wanted(outputs.start).filter(|_| alone) else { continue };
        if outputs.clone().all(|o| wanted(o) == Some(first)) {
            for p in behind {
                places.remove(&p);
            }
            places.insert(inputs.start, first);
        }
    }
    places
}

/// Returns the configuration without the Align elements that a test finds superfluous.
fn without(
    flat: Flat,
    classes: &dyn ClassSpecs,
    test: impl Fn(&Graph, &Flow<'_>, usize, &[bool]) -> bool,
    changes: &mut Changes,
) -> Flat {
    if flat.elements.iter().all(|e| classes.spec(&e.class).is_none_or(|s| s.name != ALIGN)) {
        return flat;
    }
    let (graph, _) = Graph::new(flat, classes);
    let types = Types::new(&graph);
    let flow = Flow::new(&graph, &types);
    let needed = needed(&graph, &flow);
    let gone: Vec<bool> =
        (0..graph.len()).map(|e| flow.align(e).is_some() && test(&graph, &flow, e, &needed)).collect();
    let names = (0..graph.len()).filter(|&e| gone.get(e).copied().unwrap_or_default());
    changes.removed.extend(names.map(|e| graph.declaration(e)));
    let mut edit = Edit::new(graph.flat.clone());
    edit.remove(&gone);
    edit.into_flat()
}

/// Whether the packets of an Align are aligned before they enter it.
fn is_redundant(graph: &Graph, flow: &Flow<'_>, e: usize, _: &[bool]) -> bool {
    let input = graph.points.inputs(e).start;
    flow.align(e).is_some_and(|made| flow.at(input).is_none_or(|have| have.satisfies(made)))
}

/// Whether no element behind an Align wants an alignment.
fn is_unneeded(graph: &Graph, _: &Flow<'_>, e: usize, needed: &[bool]) -> bool {
    graph.points.outputs(e).all(|o| !needed.get(o).copied().unwrap_or(true))
}

/// For each point: whether an input behind it wants an alignment that follows from the one here.
fn needed(graph: &Graph, flow: &Flow<'_>) -> Vec<bool> {
    let points = &graph.points;
    let mut needed = vec![false; points.len()];
    let wanting = |&p: &usize| {
        // An unknown class may want any alignment.
        points.side(p) == Side::Input && (flow.wanted(p).is_some() || graph.spec(points.owner(p)).is_none())
    };
    let mut open: Vec<usize> = (0..points.hub_start()).filter(wanting).collect();
    while let Some(point) = open.pop() {
        if needed.get_mut(point).is_none_or(|n| std::mem::replace(n, true)) {
            continue;
        }
        match points.side(point) {
            Side::Input => open.extend(graph.peers(point).map(|(p, _)| p)),
            Side::Output if flow.moves(point).is_none() => {}
            Side::Hub | Side::Output => open.extend(points.backward.indices(point)),
        }
    }
    needed
}

/// The elements that want an alignment, with the alignment on each of their inputs.
fn informed(graph: &Graph, flow: &Flow<'_>) -> Vec<(String, Vec<Alignment>)> {
    let points = &graph.points;
    let each = (0..points.elements()).filter_map(|e| {
        let inputs = points.inputs(e);
        inputs.clone().any(|p| flow.wanted(p).is_some() && flow.at(p).is_some()).then(|| {
            let on = |p: usize| match (flow.at(p), flow.wanted(p)) {
                (Some(have), Some(wanted)) if !have.satisfies(wanted) => wanted,
                (Some(have), _) => have,
                (None, _) => Alignment::ANY,
            };
            (graph.name(e).to_string(), inputs.map(on).collect())
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests;

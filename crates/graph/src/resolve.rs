// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves push or pull for every port. Fixed ports propagate their kind over connections and through agnostic
//! elements.

use crate::flow::Side;
use crate::graph::{Graph, PortKind};
use castanet_spec::codes::Processing;
use std::collections::VecDeque;

const NONE: usize = usize::MAX;

/// The kind of each point, and where this kind comes from.
pub(crate) struct Resolved {
    kind: Vec<Option<PortKind>>,
    parent: Vec<usize>,
    /// For each point, the fixed port from which its kind was propagated.
    root: Vec<usize>,
    /// For each point, the number of elements between it and the fixed port that determined its kind.
    depth: Vec<usize>,
}

impl Resolved {
    /// The kind of each port and hub (see [`Side`](crate::flow::Side)): push or pull; push if nothing constrains it.
    pub(crate) fn kinds(&self) -> Vec<PortKind> {
        self.kind.iter().map(|k| k.unwrap_or(PortKind::Push)).collect()
    }
    /// The kind of a point; `None` if nothing constrains it.
    pub(crate) fn kind(&self, point: usize) -> Option<PortKind> {
        self.kind[point]
    }
    /// The fixed port from which a point's kind was propagated.
    pub(crate) fn root(&self, point: usize) -> usize {
        self.root[point]
    }
    /// The number of elements between a point and the fixed port that determined its kind.
    pub(crate) fn depth(&self, point: usize) -> usize {
        self.depth[point]
    }
    /// The ports on the way from a point back to the fixed port that determined the point's kind. Hubs are left out.
    pub(crate) fn path<'a>(&'a self, graph: &'a Graph, point: usize) -> impl Iterator<Item = usize> + 'a {
        let walk = std::iter::successors(Some(point), |&p| Some(self.parent[p]).filter(|&p| p != NONE));
        walk.filter(|&p| graph.points.side(p) != Side::Hub)
    }
    fn pass_on(&mut self, from: usize, to: usize, through_element: bool) {
        self.kind[to] = self.kind[from];
        self.parent[to] = from;
        self.root[to] = self.root[from];
        self.depth[to] = self.depth[from] + usize::from(through_element);
    }
}

/// Finds the kind of every port: push or pull. Kinds spread from the fixed ports, along connections and through
/// elements. The search is breadth-first, so that error messages show the shortest path from a fixed port.
///
/// Two different kinds can meet inside an element or at a fixed port. They cannot meet on a connection between two
/// agnostic ports, because both of its ends get their kind in one step.
pub(crate) fn resolve(graph: &Graph) -> Resolved {
    let points = &graph.points;
    let n = points.len();
    let mut r =
        Resolved { kind: vec![None; n], parent: vec![NONE; n], root: (0..n).collect(), depth: vec![0; n] };
    let mut queue = VecDeque::new();
    for e in 0..points.elements() {
        let codes = graph.codes(e);
        let inputs = points.inputs(e).enumerate().map(|(i, p)| (p, codes.input(i)));
        let outputs = points.outputs(e).enumerate().map(|(o, p)| (p, codes.output(o)));
        for (point, processing) in inputs.chain(outputs) {
            r.kind[point] = match processing {
                Processing::Push => Some(PortKind::Push),
                Processing::Pull => Some(PortKind::Pull),
                Processing::Agnostic => continue,
            };
            queue.push_back(point);
        }
    }
    for point in queue.clone() {
        spread_over_connections(graph, &mut r, point, &mut queue);
    }
    while let Some(point) = queue.pop_front() {
        for next in inside(graph, point) {
            if r.kind[next].is_none() {
                // The depth counts elements. A path through a hub has two steps inside one element, to the hub and from
                // the hub, and only the first step counts.
                r.pass_on(point, next, points.side(point) != Side::Hub);
                queue.push_back(next);
                spread_over_connections(graph, &mut r, next, &mut queue);
            }
        }
    }
    r
}

fn spread_over_connections(graph: &Graph, r: &mut Resolved, from: usize, queue: &mut VecDeque<usize>) {
    if graph.points.side(from) == Side::Hub {
        return;
    }
    let mut stack = vec![from];
    while let Some(point) = stack.pop() {
        for (peer, _) in graph.peers(point) {
            if r.kind[peer].is_none() {
                r.pass_on(point, peer, false);
                queue.push_back(peer);
                stack.push(peer);
            }
        }
    }
}

/// The agnostic ports and hubs that must have the same kind as `point`, within the element of `point`.
pub(crate) fn inside(graph: &Graph, point: usize) -> impl Iterator<Item = usize> + '_ {
    let points = &graph.points;
    let side = points.side(point);
    let linked = !graph.codes(points.owner(point)).opaque() && (side == Side::Hub || graph.agnostic(point));
    let rows = linked.then(|| points.forward.indices(point).chain(points.backward.indices(point)));
    rows.into_iter().flatten().filter(move |&p| match points.side(p) {
        Side::Hub => serves_agnostic(graph, p),
        _ => graph.agnostic(p),
    })
}

/// Whether an agnostic port is linked to this hub. If not, the hub does not pass on the kind of a port.
fn serves_agnostic(graph: &Graph, hub: usize) -> bool {
    let points = &graph.points;
    let agnostic = |p: u32| points.side(p as usize) != Side::Hub && graph.agnostic(p as usize);
    points.forward.any(hub, agnostic) || points.backward.any(hub, agnostic)
}

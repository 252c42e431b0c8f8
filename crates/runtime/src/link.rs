// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links the elements of one worker: maximal runs of actions become chains, and each other element becomes a node of
//! its own.

use crate::compiled::Compiled;
use crate::lock::Locked;
use crate::node::{Body, Member, NONE, Node};
use crate::nodes::Nodes;
use crate::paths::Paths;
use crate::quanta::Quanta;
use crate::shared::Shared;
use castanet_element::run_loop::Edge;
use castanet_element::{Action, Instance};
use castanet_graph::devirtualize::{Unit, UnitKind};
use castanet_graph::{Graph, PortKind};
use castanet_lang::PortRef;
use castanet_spec::Effects;
use castanet_typed::Typed;
use std::collections::HashSet;
use std::iter::successors;
use std::sync::Arc;

fn port(element: usize, port: usize) -> PortRef {
    PortRef { element, port }
}

/// Returns the element whose input 0 is connected to output 0 of `e`. None if one of these two ports has another
/// connection too.
fn follower(graph: &Graph, e: usize) -> Option<usize> {
    let &[to] = graph.downstream(port(e, 0)) else { return None };
    (to.port == 0 && graph.upstream(to).len() == 1).then_some(to.element)
}

/// Links the elements of one worker: its own elements, and the locked elements that it shares with other workers.
/// `back` says for each connection whether it closes a cycle.
pub(crate) fn link(
    shared: &Arc<Shared>,
    instances: Vec<(usize, Instance)>,
    locked: Vec<Arc<Locked>>,
    back: &[bool],
    effects: &[Effects],
) -> Nodes {
    let graph = &shared.graph;
    let (mut nodes, mut edges, mut places) = nodes(graph, instances, locked, back, effects);
    let compiled = shared.code.as_deref().map(|code| {
        // For each site, the node that must be moved there, or none if this worker has no such element.
        let node = |e: &u32| places.get(*e as usize).map(|p| p.0).filter(|n| *n != NONE);
        let order: Vec<Option<u32>> = code.sites().iter().map(node).collect();
        reorder(&mut nodes, &mut edges, &mut places, &order);
        Compiled::new(code, &edges)
    });
    if let Some(compiler) = &shared.path_compiler {
        edges.iter_mut().for_each(|e| e.path = Paths::first(compiler));
    }
    // Other workers run between the turns of a worker.
    let quanta = if shared.inboxes.len() == 1 && shared.optimize {
        let timed = !shared.is_simulated;
        Quanta::new((graph, &shared.tasks), effects, timed, &places, (&mut nodes, &edges))
    } else {
        Quanta::default()
    };
    Nodes::new(nodes, edges, places, compiled, quanta, shared.clone())
}

/// Moves nodes to the front, in the given order. Where the order has none, an empty node is inserted, which nothing leads
/// to.
fn reorder(nodes: &mut Vec<Node>, edges: &mut [Edge], places: &mut Places, order: &[Option<u32>]) {
    let mut old: Vec<Option<Node>> = std::mem::take(nodes).into_iter().map(Some).collect();
    let rest = (0..old.len() as u32).map(Some);
    // The new number of each node.
    let mut number = vec![NONE; old.len()];
    for (i, from) in order.iter().copied().chain(rest).enumerate() {
        let moved = from.and_then(|n| old.get_mut(n as usize)?.take());
        if let (Some(n), true) = (from.and_then(|n| number.get_mut(n as usize)), moved.is_some()) {
            *n = nodes.len() as u32;
        }
        match moved {
            Some(node) => nodes.push(node),
            None if i < order.len() => nodes.push(Node::empty()),
            None => {}
        }
    }
    let renumber = |n: &mut u32| *n = number.get(*n as usize).copied().unwrap_or(NONE);
    edges.iter_mut().for_each(|e| renumber(&mut e.node));
    places.iter_mut().for_each(|p| renumber(&mut p.0));
    for node in nodes {
        node.sources.iter_mut().for_each(|s| renumber(&mut s.0));
        node.direct.iter_mut().for_each(|d| renumber(&mut d.0));
    }
}

/// For each element, its node, and its index in the node's chain.
type Places = Vec<(u32, u32)>;

/// Makes the nodes and edges of one worker.
fn nodes(
    graph: &Graph,
    instances: Vec<(usize, Instance)>,
    locked: Vec<Arc<Locked>>,
    back: &[bool],
    effects: &[Effects],
) -> (Vec<Node>, Vec<Edge>, Places) {
    let order: Vec<usize> = instances.iter().map(|i| i.0).collect();
    let mut linker = Linker::new(graph, instances, back, effects);
    let follows = linker.followers(&order);
    // First make the chains that begin with an action that continues no other chain. The remaining actions form cycles.
    // Such a cycle has no first action, so cut it at an arbitrary action and make a chain of it.
    let (later, first): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|&e| follows.get(e).is_some_and(|f| *f));
    for e in first.into_iter().chain(later) {
        match linker.take(e) {
            Some(Instance::Element(body)) => linker.add_element(e, Body::Element(Typed::new(body)), false),
            Some(Instance::Action(action)) => linker.add_chain(e, action),
            None => {}
        }
    }
    for l in locked {
        let e = l.element as usize;
        // The copies that an action emits to its side outputs go before the packet itself, as in a chain.
        let sides_first = l.is_action();
        linker.add_element(e, Body::locked(l, graph.outputs(e) as u32), sides_first);
    }
    let Linker { mut nodes, mut edges, places, .. } = linker;
    resolve(graph, &mut nodes, &mut edges, &places, effects);
    (nodes, edges, places)
}

/// Returns the units of a configuration with one worker: its elements as the run loop runs them.
pub(crate) fn units(graph: &Graph, instances: Vec<(usize, Instance)>, effects: &[Effects]) -> Vec<Unit> {
    let (nodes, _, places) = nodes(graph, instances, Vec::new(), &graph.back_edges(), effects);
    let mut units: Vec<Unit> = nodes
        .iter()
        .map(|node| {
            let kind = match node.body {
                Body::Chain(_) => UnitKind::Chain,
                Body::Element(_) => UnitKind::Element,
                Body::Reaching(..) | Body::Locked(..) | Body::Busy | Body::Meeting(_) => UnitKind::Reaching,
            };
            Unit { elements: Vec::new(), kind }
        })
        .collect();
    let mut members: Vec<(u32, u32, usize)> =
        places.iter().enumerate().map(|(e, &(node, member))| (node, member, e)).collect();
    members.sort_unstable();
    for (node, _, e) in members {
        if let Some(unit) = units.get_mut(node as usize) {
            unit.elements.push(e);
        }
    }
    units
}

/// The nodes and edges that have been made, and the elements that are not linked yet.
struct Linker<'a> {
    graph: &'a Graph,
    effects: &'a [Effects],
    /// The push outputs whose connection closes a cycle.
    back: HashSet<PortRef>,
    /// For each element, its instance. None once the instance is part of a node, or if this worker does not have it.
    left: Vec<Option<Instance>>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// For each element, its node, and its index in the node's chain.
    places: Places,
}

impl<'a> Linker<'a> {
    fn new(
        graph: &'a Graph,
        instances: Vec<(usize, Instance)>,
        back: &[bool],
        effects: &'a [Effects],
    ) -> Linker<'a> {
        let closing = graph.flat.connections.iter().zip(back).filter(|(_, b)| **b).map(|(c, _)| c.from);
        let back = closing.filter(|f| graph.output_kind(f.element, f.port) == PortKind::Push).collect();
        let mut left: Vec<Option<Instance>> = (0..graph.len()).map(|_| None).collect();
        for (e, i) in instances {
            if let Some(slot) = left.get_mut(e) {
                *slot = Some(i);
            }
        }
        let places = vec![(NONE, 0); graph.len()];
        Linker { graph, effects, back, left, nodes: Vec::new(), edges: Vec::new(), places }
    }

    fn take(&mut self, e: usize) -> Option<Instance> {
        self.left.get_mut(e)?.take()
    }
    fn is_action(&self, e: usize) -> bool {
        matches!(self.left.get(e), Some(Some(Instance::Action(_))))
    }
    fn calls(&self, e: usize) -> bool {
        self.effects.get(e).is_some_and(|x| x.contains(Effects::CALLS))
    }
    fn copies(&self, e: usize) -> bool {
        self.graph.spec(e).is_some_and(|s| s.copies)
    }
    fn pushes(&self, e: usize) -> bool {
        self.graph.outputs(e) > 0 && self.graph.output_kind(e, 0) == PortKind::Push
    }
    /// Returns the action that continues the chain of action `a`. None if the chain ends with `a`.
    ///
    /// An action that calls handlers is a chain of its own, so that the calls are carried out before its packets go on.
    /// An action that emits copies ends its chain if it is on a pull path. On a push path, the chain continues after
    /// the action, but the packets wait on the action's `resume` edge until the copies have been stored, sent or
    /// dropped.
    fn next_in_chain(&self, a: usize) -> Option<usize> {
        let ends = self.calls(a)
            || self.copies(a) && !self.pushes(a)
            || self.back.contains(&PortRef { element: a, port: 0 });
        follower(self.graph, a).filter(|&b| !ends && self.is_action(b) && !self.calls(b))
    }
    /// Returns for each element whether it is an action that continues the chain of another action.
    fn followers(&self, order: &[usize]) -> Vec<bool> {
        let mut follows = vec![false; self.graph.len()];
        for next in order.iter().filter(|&&a| self.is_action(a)).filter_map(|&a| self.next_in_chain(a)) {
            if let Some(f) = follows.get_mut(next) {
                *f = true;
            }
        }
        follows
    }

    /// Makes the edges for the outputs of element `e`, from output `first` on.
    fn add_edges(&mut self, e: usize, first: usize) {
        let (graph, back) = (self.graph, &self.back);
        self.edges.extend((first..graph.outputs(e)).map(|p| edge(graph, e, p, back)));
    }
    fn place(&mut self, e: usize, member: usize) {
        let node = self.nodes.len() as u32;
        if let Some(p) = self.places.get_mut(e) {
            *p = (node, member as u32);
        }
    }

    /// Makes a node from a single element. With `sides_first`, packets on outputs 1, 2, ... move before those on output
    /// 0.
    fn add_element(&mut self, e: usize, body: Body, sides_first: bool) {
        self.place(e, 0);
        let base = self.edges.len() as u32;
        self.add_edges(e, 0);
        let count = self.edges.len() as u32 - base;
        self.nodes.push(Node {
            body,
            me: e as u32,
            base,
            count,
            mains: 0,
            loses: false,
            descending: sides_first || self.graph.spec(e).is_some_and(|s| s.descending),
            sources: Box::default(),
            direct: None,
        });
    }

    /// Makes a node from the chain that begins with action `first`.
    fn add_chain(&mut self, first: usize, action: Box<dyn Action>) {
        // The first action has been taken out of `left`, so a chain that is a cycle ends before it.
        let chain: Vec<usize> = successors(Some(first), |&a| self.next_in_chain(a)).collect();
        let base = self.edges.len() as u32;
        let last = chain.last().copied().unwrap_or(first);
        self.edges.push(match self.graph.outputs(last) {
            0 => Edge { node: NONE, from: last as u32, ..Edge::default() },
            _ => edge(self.graph, last, 0, &self.back),
        });
        let mut members = Vec::with_capacity(chain.len());
        let mut action = Some(Instance::Action(action));
        for (i, &e) in chain.iter().enumerate() {
            let Some(Instance::Action(action)) = action.take().or_else(|| self.take(e)) else { continue };
            self.place(e, i);
            let resume = self.resume(first, e, i);
            members.push(Member {
                action: Typed::new(action),
                me: e as u32,
                base: 0,
                count: 0,
                skip: 0,
                resume,
            });
        }
        let mains = self.edges.len() as u32 - base;
        for m in &mut members {
            m.base = self.edges.len() as u32;
            m.skip = m.base - base;
            self.add_edges(m.me as usize, 1);
            m.count = self.edges.len() as u32 - m.base;
        }
        self.nodes.push(Node {
            me: first as u32,
            base,
            count: self.edges.len() as u32 - base,
            mains,
            loses: members.iter().any(|m| loses(self.graph, m.me as usize)),
            descending: self.graph.spec(first).is_some_and(|s| s.descending),
            body: Body::Chain(members.into()),
            sources: Box::default(),
            direct: None,
        });
    }

    /// Makes the `resume` edge of action `e`. This edge leads back into the chain, to the action after `e`. The packets
    /// of the chain wait on this edge until the copies that `e` has emitted have been stored, sent or dropped. `first`
    /// is the first action of the chain, and `i` the index of `e` in the chain. Returns the index of the edge. Returns
    /// `NONE` if `e` needs no such edge.
    fn resume(&mut self, first: usize, e: usize, i: usize) -> u32 {
        if !(self.copies(e) && self.pushes(e)) {
            return NONE;
        }
        // The field `node` of an edge holds the number of an element until all nodes are known. In this edge, that
        // element is the first action of the chain.
        let back_into = Edge { node: first as u32, port: i as u32 + 1, from: e as u32, ..Edge::default() };
        self.edges.push(back_into);
        self.edges.len() as u32 - 1
    }
}

/// Whether packets may leave a chain at action `e`, by a side output or a drop. If the graph does not know the class of
/// the action, returns true.
fn loses(graph: &Graph, e: usize) -> bool {
    graph.outputs(e) > 1 || graph.spec(e).is_none_or(|s| !s.drops.is_empty())
}

/// Makes the edge of output `p` of element `e`. Until all nodes are known, the field `node` of the edge holds the
/// number of the element that the edge leads to.
fn edge(graph: &Graph, e: usize, p: usize, back: &HashSet<PortRef>) -> Edge {
    let mut out = Edge { node: NONE, from: e as u32, ..Edge::default() };
    if graph.output_kind(e, p) == PortKind::Push
        && let &[to] = graph.downstream(port(e, p))
    {
        (out.node, out.port) = (to.element as u32, to.port as u32);
        out.back = back.contains(&port(e, p));
    }
    out
}

/// Replaces element numbers in edges by node numbers. Determines for each pull input the node and output that it pulls
/// from, and which nodes need access to other nodes ([`Body::Reaching`]).
fn resolve(
    graph: &Graph,
    nodes: &mut [Node],
    edges: &mut [Edge],
    places: &[(u32, u32)],
    effects: &[Effects],
) {
    let node_of = |e: u32| places.get(e as usize).map_or(NONE, |p| p.0);
    for e in edges {
        e.node = if e.node == NONE { NONE } else { node_of(e.node) };
    }
    for node in nodes.iter_mut() {
        let me = node.me as usize;
        node.sources = (0..graph.inputs(me))
            .map(|i| match graph.upstream(port(me, i)) {
                &[from] if graph.input_kind(me, i) == PortKind::Pull => {
                    (node_of(from.element as u32), from.port as u32)
                }
                _ => (NONE, 0),
            })
            .collect();
        let calls = effects.get(me).is_some_and(|x| x.contains(Effects::CALLS));
        let pulls = node.sources.iter().any(|s| s.0 != NONE);
        let pushed = (0..graph.inputs(me)).any(|i| graph.input_kind(me, i) == PortKind::Push);
        if !calls && !pulls {
            continue;
        }
        node.body = match std::mem::replace(&mut node.body, Body::Busy) {
            Body::Element(e) => {
                node.direct = match node.sources[..] {
                    [(up, port)] if !calls && !pushed => Some((up, port)),
                    _ => None,
                };
                Body::reaching(e, node.count)
            }
            other => other,
        };
    }
    // A task may pull from a node directly only if the node is an element that needs no access to other nodes. The
    // packets that this element emits wait in the outbox of the task.
    let plain: Vec<Option<u32>> =
        nodes.iter().map(|n| matches!(n.body, Body::Element(_)).then_some(n.count)).collect();
    for node in nodes {
        let Some((up, _)) = node.direct else { continue };
        match (plain.get(up as usize).copied().flatten(), &mut node.body) {
            (Some(count), Body::Reaching(_, outbox)) => {
                *outbox = (0..count.max(node.count)).map(|_| Edge::default()).collect();
            }
            _ => node.direct = None,
        }
    }
}

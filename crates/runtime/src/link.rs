// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linking: the elements of one worker become nodes; maximal runs of actions become chains.

use crate::nodes::{Body, Member, Node, Nodes};
use crate::shared::Shared;
use castanet_element::{Edge, Instance};
use castanet_graph::{Graph, Kind};
use castanet_lang::PortRef;
use castanet_spec::Effects;
use std::sync::Arc;

fn port(element: usize, port: usize) -> PortRef {
    PortRef { element, port }
}

/// The only downstream neighbour of an element's output 0, when it is that neighbour's only upstream one.
fn follower(graph: &Graph, e: usize) -> Option<usize> {
    let &[to] = graph.downstream(port(e, 0)) else { return None };
    (to.port == 0 && graph.upstream(to).len() == 1).then_some(to.element)
}

/// Links the elements of one worker. `back` tells for each connection whether it closes a cycle.
pub(crate) fn link(
    shared: &Arc<Shared>,
    instances: Vec<(usize, Instance)>,
    back: &[bool],
    effects: &[Effects],
) -> Nodes {
    let graph = &shared.graph;
    let n = graph.len();
    let back_outputs: std::collections::HashSet<PortRef> = graph
        .flat
        .connections
        .iter()
        .zip(back)
        .filter(|(c, b)| **b && graph.output_kind(c.from.element, c.from.port) == Kind::Push)
        .map(|(c, _)| c.from)
        .collect();
    let mut local: Vec<Option<Instance>> = (0..n).map(|_| None).collect();
    let mut order = Vec::with_capacity(instances.len());
    for (e, i) in instances {
        order.push(e);
        if let Some(slot) = local.get_mut(e) {
            *slot = Some(i);
        }
    }
    let is_action =
        |local: &[Option<Instance>], e: usize| matches!(local.get(e), Some(Some(Instance::Action(_))));
    // A class that calls handlers stands alone, so that the calls are carried out before its packets go on; one that emits
    // copies ends its chain, so that the copy goes first.
    let calls = |e: usize| effects.get(e).is_some_and(|x| x.contains(Effects::CALLS));
    let ends =
        |e: usize| calls(e) || graph.spec(e).is_some_and(|s| s.copies) || back_outputs.contains(&port(e, 0));
    let joins = |local: &[Option<Instance>], a: usize| {
        follower(graph, a).filter(|&b| is_action(local, a) && is_action(local, b) && !ends(a) && !calls(b))
    };
    let mut follows = vec![false; n];
    for &a in &order {
        if let Some(b) = joins(&local, a)
            && let Some(f) = follows.get_mut(b)
        {
            *f = true;
        }
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut places = vec![(u32::MAX, 0); n];
    // First the heads of chains and single elements; then what is left are cycles of actions, cut anywhere.
    for pass in 0..2 {
        for &e in &order {
            if pass == 0 && follows.get(e).copied().unwrap_or(false) {
                continue;
            }
            let Some(instance) = local.get_mut(e).and_then(Option::take) else { continue };
            let me = e as u32;
            match instance {
                Instance::Element(body) => {
                    set(&mut places, e, nodes.len(), 0);
                    let edges = (0..graph.outputs(e)).map(|p| edge(graph, e, p, &back_outputs)).collect();
                    nodes.push(Node {
                        body: Body::Element(body),
                        edges,
                        me,
                        sources: Box::default(),
                        reaches: false,
                        direct: None,
                    });
                }
                Instance::Action(action) => {
                    let mut members = Vec::new();
                    let mut edges = vec![Edge { node: u32::MAX, ..Edge::default() }];
                    let (mut e, mut action) = (e, action);
                    loop {
                        set(&mut places, e, nodes.len(), members.len());
                        let first = edges.len() as u32;
                        edges.extend((1..graph.outputs(e)).map(|p| edge(graph, e, p, &back_outputs)));
                        members.push(Member { action, me: e as u32, first, end: edges.len() as u32 });
                        // `joins` wants both sides present, and this side has been taken out: ask the graph only.
                        let next =
                            follower(graph, e).filter(|&b| !ends(e) && !calls(b) && is_action(&local, b));
                        match next.and_then(|b| local.get_mut(b).and_then(Option::take).map(|i| (b, i))) {
                            Some((b, Instance::Action(a))) => (e, action) = (b, a),
                            _ => break,
                        }
                    }
                    if graph.outputs(e) > 0
                        && let Some(main) = edges.first_mut()
                    {
                        *main = edge(graph, e, 0, &back_outputs);
                    }
                    nodes.push(Node {
                        body: Body::Chain(members.into()),
                        edges: edges.into(),
                        me,
                        sources: Box::default(),
                        reaches: false,
                        direct: None,
                    });
                }
            }
        }
    }
    resolve(graph, &mut nodes, &places, effects);
    Nodes::new(nodes, places, shared.clone())
}

fn set(places: &mut [(u32, u32)], e: usize, node: usize, member: usize) {
    if let Some(p) = places.get_mut(e) {
        *p = (node as u32, member as u32);
    }
}

/// The edge of an output; `node` holds the element that it leads to until all nodes are known.
fn edge(graph: &Graph, e: usize, p: usize, back: &std::collections::HashSet<PortRef>) -> Edge {
    let mut out = Edge { node: u32::MAX, from: e as u32, ..Edge::default() };
    if graph.output_kind(e, p) == Kind::Push
        && let &[to] = graph.downstream(port(e, p))
    {
        (out.node, out.port) = (to.element as u32, to.port as u32);
        out.back = back.contains(&port(e, p));
    }
    out
}

/// Turns elements into nodes, and finds out what pull inputs pull from.
fn resolve(graph: &Graph, nodes: &mut [Node], places: &[(u32, u32)], effects: &[Effects]) {
    let node_of = |e: u32| places.get(e as usize).map_or(u32::MAX, |p| p.0);
    for node in nodes.iter_mut() {
        for e in &mut node.edges {
            e.node = if e.node == u32::MAX { u32::MAX } else { node_of(e.node) };
        }
        let me = node.me as usize;
        node.sources = (0..graph.inputs(me))
            .map(|i| match graph.upstream(port(me, i)) {
                &[from] if graph.input_kind(me, i) == Kind::Pull => {
                    (node_of(from.element as u32), from.port as u32)
                }
                _ => (u32::MAX, 0),
            })
            .collect();
        let calls = effects.get(me).is_some_and(|x| x.contains(Effects::CALLS));
        node.reaches = calls || node.sources.iter().any(|s| s.0 != u32::MAX);
        let pushed = (0..graph.inputs(me)).any(|i| graph.input_kind(me, i) == Kind::Push);
        node.direct = match node.sources[..] {
            [(up, port)] if !calls && !pushed && matches!(node.body, Body::Element(_)) => Some((up, port)),
            _ => None,
        };
    }
    // Only an element that reaches nobody itself can be pulled from directly.
    let plain: Vec<bool> = nodes.iter().map(|n| !n.reaches && matches!(n.body, Body::Element(_))).collect();
    for node in nodes {
        node.direct = node.direct.filter(|d| plain.get(d.0 as usize).copied().unwrap_or(false));
    }
}

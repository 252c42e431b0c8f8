// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linking: the elements of one worker become nodes; maximal runs of actions become chains.

use crate::locked::Locked;
use crate::node::{Body, Member, NONE, Node};
use crate::nodes::Nodes;
use crate::shared::Shared;
use castanet_element::{Edge, Instance};
use castanet_graph::{Graph, PortKind};
use castanet_lang::PortRef;
use castanet_spec::Effects;
use std::sync::Arc;

fn port(element: usize, port: usize) -> PortRef {
    PortRef { element, port }
}

/// Returns the element whose input 0 is connected to output 0 of `e`, if neither port has another connection.
fn follower(graph: &Graph, e: usize) -> Option<usize> {
    let &[to] = graph.downstream(port(e, 0)) else { return None };
    (to.port == 0 && graph.upstream(to).len() == 1).then_some(to.element)
}

/// Links the elements of one worker: its own, and those that it shares with others under a lock. `back` tells
/// for each connection whether it closes a cycle.
pub(crate) fn link(
    shared: &Arc<Shared>,
    instances: Vec<(usize, Instance)>,
    locked: Vec<Arc<Locked>>,
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
        .filter(|(c, b)| **b && graph.output_kind(c.from.element, c.from.port) == PortKind::Push)
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
    // An action that calls handlers is a chain of its own, so that the calls are carried out before its
    // packets go on. An action that emits copies ends its chain if packets are pulled through it. If packets
    // are pushed through it, the chain continues after it: the packets wait on the action's `resume` edge until
    // the copies have been stored, sent or dropped.
    let calls = |e: usize| effects.get(e).is_some_and(|x| x.contains(Effects::CALLS));
    let copies = |e: usize| graph.spec(e).is_some_and(|s| s.copies);
    let pushes = |e: usize| graph.outputs(e) > 0 && graph.output_kind(e, 0) == PortKind::Push;
    let ends = |e: usize| calls(e) || copies(e) && !pushes(e) || back_outputs.contains(&port(e, 0));
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
    let mut edges: Vec<Edge> = Vec::new();
    let mut places = vec![(NONE, 0); n];
    // The first pass makes the chains, each from its first action, and the nodes of single elements. Only cycles
    // of actions are left then, because they have no first action. The second pass cuts each cycle anywhere and
    // makes it a chain.
    for pass in 0..2 {
        for &e in &order {
            if pass == 0 && follows.get(e).copied().unwrap_or(false) {
                continue;
            }
            let Some(instance) = local.get_mut(e).and_then(Option::take) else { continue };
            let (node, base) = (nodes.len(), edges.len() as u32);
            let (body, mains) = match instance {
                Instance::Element(body) => {
                    set(&mut places, e, node, 0);
                    edges.extend((0..graph.outputs(e)).map(|p| edge(graph, e, p, &back_outputs)));
                    (Body::Element(body), 0)
                }
                Instance::Action(action) => {
                    let mut chain = vec![(e, action)];
                    while let Some(&(last, _)) = chain.last()
                        // `joins` needs both elements in `local`, but `last` has been taken out: check the
                        // graph instead.
                        && let Some(b) = follower(graph, last)
                        && !ends(last)
                        && !calls(b)
                        && is_action(&local, b)
                        && let Some(Instance::Action(a)) = local.get_mut(b).and_then(Option::take)
                    {
                        chain.push((b, a));
                    }
                    let last = chain.last().map_or(e, |c| c.0);
                    edges.push(match graph.outputs(last) {
                        0 => Edge { node: NONE, from: last as u32, ..Edge::default() },
                        _ => edge(graph, last, 0, &back_outputs),
                    });
                    let mut members: Vec<Member> = Vec::with_capacity(chain.len());
                    for (i, (e, action)) in chain.into_iter().enumerate() {
                        set(&mut places, e, node, i);
                        let mut resume = NONE;
                        if copies(e) && pushes(e) {
                            resume = edges.len() as u32;
                            // Until all nodes are known, the field `node` of an edge holds the number of an
                            // element: here the first action of this chain.
                            let (node, port) = (members.first().map_or(e as u32, |m| m.me), i as u32 + 1);
                            edges.push(Edge { node, port, from: e as u32, ..Edge::default() });
                        }
                        members.push(Member { action, me: e as u32, base: 0, count: 0, skip: 0, resume });
                    }
                    let mains = edges.len() as u32 - base;
                    for m in &mut members {
                        m.base = edges.len() as u32;
                        m.skip = m.base - base;
                        edges.extend(
                            (1..graph.outputs(m.me as usize))
                                .map(|p| edge(graph, m.me as usize, p, &back_outputs)),
                        );
                        m.count = edges.len() as u32 - m.base;
                    }
                    (Body::Chain(members.into()), mains)
                }
            };
            let count = edges.len() as u32 - base;
            let loses = match &body {
                Body::Chain(members) => members.iter().any(|m| loses(graph, m.me as usize)),
                _ => false,
            };
            nodes.push(Node {
                body,
                me: e as u32,
                base,
                count,
                mains,
                loses,
                descending: graph.spec(e).is_some_and(|s| s.descending),
                sources: Box::default(),
                direct: None,
            });
        }
    }
    for l in locked {
        let e = l.element as usize;
        set(&mut places, e, nodes.len(), 0);
        let (base, count) = (edges.len() as u32, graph.outputs(e) as u32);
        edges.extend((0..graph.outputs(e)).map(|p| edge(graph, e, p, &back_outputs)));
        // The copies that an action emits go before the packet itself, as in a chain.
        let descending = graph.spec(e).is_some_and(|s| s.descending) || l.is_action();
        nodes.push(Node {
            body: Body::locked(l, count),
            me: e as u32,
            base,
            count,
            mains: 0,
            loses: false,
            descending,
            sources: Box::default(),
            direct: None,
        });
    }
    resolve(graph, &mut nodes, &mut edges, &places, effects);
    Nodes::new(nodes, edges, places, shared.clone())
}

/// Whether packets may leave a chain at an action, by a side output or a drop. If the graph does not know the class
/// of the action, the action counts as one that may drop packets.
fn loses(graph: &Graph, e: usize) -> bool {
    graph.outputs(e) > 1 || graph.spec(e).is_none_or(|s| !s.drops.is_empty())
}

fn set(places: &mut [(u32, u32)], e: usize, node: usize, member: usize) {
    if let Some(p) = places.get_mut(e) {
        *p = (node as u32, member as u32);
    }
}

/// Makes the edge of an output. Its `node` is the number of an element until all nodes are known.
fn edge(graph: &Graph, e: usize, p: usize, back: &std::collections::HashSet<PortRef>) -> Edge {
    let mut out = Edge { node: NONE, from: e as u32, ..Edge::default() };
    if graph.output_kind(e, p) == PortKind::Push
        && let &[to] = graph.downstream(port(e, p))
    {
        (out.node, out.port) = (to.element as u32, to.port as u32);
        out.back = back.contains(&port(e, p));
    }
    out
}

/// Replaces element numbers by node numbers, and determines where pull inputs pull from and which nodes reach
/// others.
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
    // Only an element that reaches no other element can be pulled from directly. Its emissions then wait in
    // the outbox of the task that pulls.
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

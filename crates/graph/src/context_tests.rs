// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of flow-based router context, against a model that walks all simple paths.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::PortKind;
use crate::testing::{Random, graph, random_graph, valid};
use castanet_lang::{Connection, PortRef};
use std::collections::BTreeSet;

const ALL: &[&str] = &[
    "Queue",
    "SimpleQueue",
    "Strip",
    "Joined",
    "Querier",
    "Odd",
    "Suppressor",
    "Plus",
    "Idle",
    "Check",
    "Unqueue",
    "Nobody",
];

/// Walks every path recursively. `on_path` holds only the ports of the current path.
struct Model<'a> {
    graph: &'a Graph,
    connections: &'a [(usize, Connection)],
    down: bool,
    capability: Capability,
    on_path: BTreeSet<PortRef>,
    found: BTreeSet<usize>,
}

impl Model<'_> {
    fn leave(&mut self, port: PortRef) {
        if !self.on_path.insert(port) {
            return;
        }
        for (_, c) in self.connections {
            let (near, far) = if self.down { (c.from, c.to) } else { (c.to, c.from) };
            if near != port {
                continue;
            }
            let e = far.element;
            if self.graph.spec(e).is_some_and(|s| s.has(self.capability)) {
                self.found.insert(e);
                continue;
            }
            let others = if self.down { self.graph.outputs(e) } else { self.graph.inputs(e) };
            for o in 0..others {
                let flows = match self.down {
                    true => self.graph.flows(e, far.port, o),
                    false => self.graph.flows(e, o, far.port),
                };
                if flows {
                    self.leave(PortRef { element: e, port: o });
                }
            }
        }
        self.on_path.remove(&port);
    }
}

fn model(
    (graph, connections): (&Graph, &[(usize, Connection)]),
    down: bool,
    e: usize,
    port: usize,
    capability: Capability,
) -> Vec<usize> {
    let mut m =
        Model { graph, connections, down, capability, on_path: BTreeSet::new(), found: BTreeSet::new() };
    m.leave(PortRef { element: e, port });
    m.found.into_iter().collect()
}

#[test]
fn random_cyclic_graphs_agree_with_the_model() {
    let mut random = Random(1);
    let mut found = 0;
    for _ in 0..2500 {
        let g = random_graph(&mut random, ALL);
        let connections = valid(&g);
        let with = (&g, connections.as_slice());
        for c in [Capability::Storage, Capability::EmptyNotifier] {
            for e in 0..g.len() {
                let mut union = BTreeSet::new();
                for o in 0..g.outputs(e) {
                    let near = g.nearest_downstream(e, Some(o), c);
                    assert_eq!(near, model(with, true, e, o, c), "{:?}", g.flat);
                    found += near.len();
                    union.extend(near);
                }
                assert_eq!(g.nearest_downstream(e, None, c), union.into_iter().collect::<Vec<_>>());
                for i in 0..g.inputs(e) {
                    assert_eq!(
                        g.nearest_upstream(e, Some(i), c),
                        model(with, false, e, i, c),
                        "{:?}",
                        g.flat
                    );
                }
            }
        }
    }
    assert!(found > 1000, "{found}");
}

/// Collects the elements found. Returns whether every path ends at one of them or in a cycle.
fn complete_model(g: &Graph, to: PortRef, on_path: &mut Vec<PortRef>, found: &mut BTreeSet<usize>) -> bool {
    if on_path.contains(&to) {
        return true;
    }
    on_path.push(to);
    let upstream: Vec<_> = valid(g).into_iter().filter(|(_, c)| c.to == to).map(|(_, c)| c.from).collect();
    let mut complete = !upstream.is_empty();
    for from in upstream {
        let f = from.element;
        if g.spec(f).is_some_and(|s| s.has(Capability::EmptyNotifier)) {
            found.insert(f);
            continue;
        }
        let inputs: Vec<_> = (0..g.inputs(f)).filter(|&i| g.flows(f, i, from.port)).collect();
        let any_number = |ports: &str| ports.split('/').next().is_some_and(|inputs| inputs.ends_with('-'));
        complete &= !inputs.is_empty() || g.spec(f).is_some_and(|s| any_number(s.ports));
        for i in inputs {
            if g.input_kind(f, i) != g.output_kind(f, from.port) {
                complete = false;
            } else {
                complete &= complete_model(g, PortRef { element: f, port: i }, on_path, found);
            }
        }
    }
    on_path.pop();
    complete
}

#[test]
fn completeness_agrees_with_the_model() {
    let mut random = Random(2);
    let mut complete = 0;
    for _ in 0..2000 {
        let g = random_graph(
            &mut random,
            &["Queue", "Queue", "SimpleQueue", "Strip", "Sched", "Check", "Idle", "Sink"],
        );
        for e in 0..g.len() {
            for i in 0..g.inputs(e) {
                let mut found = BTreeSet::new();
                let all = complete_model(&g, PortRef { element: e, port: i }, &mut Vec::new(), &mut found);
                let result = g.nearest_upstream_complete(e, i, Capability::EmptyNotifier);
                assert_eq!(result, (found.into_iter().collect(), all), "{:?}", g.flat);
                complete += usize::from(all);
            }
        }
    }
    assert!(complete > 300, "{complete}");
}

#[test]
fn the_paper_s_example() {
    // TOCS 2000, Figure 5: RED finds the two queues downstream of it, but not the queues downstream of those.
    let g = graph(
        "Source -> red :: Strip -> c :: Classifier; c [0] -> q1 :: Queue -> u :: Unqueue -> q3 :: Queue -> Sink; \
         c [1] -> Strip -> q2 :: Queue -> Sink; c [2] -> Discard;",
    );
    let names = |v: Vec<usize>| v.into_iter().map(|e| g.name(e).to_string()).collect::<Vec<_>>();
    let red = g.find("red").unwrap();
    assert_eq!(names(g.nearest_downstream(red, None, Capability::Storage)), ["q1", "q2"]);
    let c = g.find("c").unwrap();
    assert_eq!(names(g.nearest_downstream(c, Some(2), Capability::Storage)), [""; 0]);
    assert_eq!(names(g.nearest_upstream(g.find("q3").unwrap(), None, Capability::Storage)), ["q1"]);
    assert_eq!(names(g.downstream_filter(c, Some(1), |_| Visit::TakeAndPass)).len(), 3);
    assert_eq!(g.downstream_filter(c, Some(1), |_| Visit::Stop), []);
    assert_eq!(g.nearest_downstream(999, Some(999), Capability::Storage), []);
}

#[test]
fn pullers_that_may_sleep() {
    let cases = [
        ("Source -> q :: Queue -> x :: Sink;", true),
        ("Source -> q :: SimpleQueue -> x :: Sink;", false),
        ("Source -> a :: Queue -> s :: Sched -> Strip -> x :: Sink; Source -> b :: Queue -> [1] s;", true),
        (
            "Source -> a :: Queue -> s :: Sched -> Strip -> x :: Sink; Source -> b :: SimpleQueue -> [1] s;",
            false,
        ),
        ("Idle -> x :: Sink;", true),
        ("Joined -> Strip -> x :: Sink;", true),
        ("Source -> q :: Queue -> Unqueue -> SimpleQueue -> x :: Sink;", false),
    ];
    for (text, complete) in cases {
        let g = graph(text);
        let x = g.find("x").unwrap();
        assert_eq!(g.nearest_upstream_complete(x, 0, Capability::EmptyNotifier).1, complete, "{text}");
        assert_eq!(g.input_kind(x, 0), PortKind::Pull);
    }
}

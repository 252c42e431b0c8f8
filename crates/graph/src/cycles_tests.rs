// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of back edges, against a model of the push connections.
#![allow(clippy::unwrap_used)]

use crate::graph::{Graph, PortKind};
use crate::testing::{Random, graph, random_graph, valid};
use castanet_lang::Connection;

fn is_push(g: &Graph, c: &Connection) -> bool {
    g.output_kind(c.from.element, c.from.port) == PortKind::Push
        && g.input_kind(c.to.element, c.to.port) == PortKind::Push
}

/// The connections that can reach themselves through the connections in `usable`, by transitive closure.
fn on_cycles(g: &Graph, usable: &[(usize, Connection)]) -> Vec<usize> {
    let n = usable.len();
    let mut reach = vec![vec![false; n]; n];
    for (a, (_, c)) in usable.iter().enumerate() {
        for (b, (_, d)) in usable.iter().enumerate() {
            reach[a][b] = c.to.element == d.from.element && g.flows(c.to.element, c.to.port, d.from.port);
        }
    }
    for k in 0..n {
        for a in 0..n {
            for b in 0..n {
                reach[a][b] |= reach[a][k] && reach[k][b];
            }
        }
    }
    (0..n).filter(|&a| reach[a][a]).map(|a| usable[a].0).collect()
}

#[test]
fn random_graphs_lose_their_cycles_and_nothing_else() {
    let mut random = Random(3);
    let classes = [
        "Source",
        "Tee",
        "Strip",
        "Joined",
        "Classifier",
        "Querier",
        "Odd",
        "Suppressor",
        "Queue",
        "Unqueue",
        "Plus",
        "Check",
    ];
    let mut cyclic = 0;
    for _ in 0..3000 {
        let g = random_graph(&mut random, &classes);
        let push: Vec<_> = valid(&g).into_iter().filter(|(_, c)| is_push(&g, c)).collect();
        let before = on_cycles(&g, &push);
        let back = g.back_edges();
        assert_eq!(back.len(), g.flat.connections.len());
        for (i, _) in back.iter().enumerate().filter(|b| *b.1) {
            assert!(before.contains(&i), "{i} is on no cycle: {:?}", g.flat);
        }
        let rest: Vec<_> = push.into_iter().filter(|(i, _)| !back[*i]).collect();
        assert_eq!(on_cycles(&g, &rest), [], "{:?}", g.flat);
        cyclic += usize::from(!before.is_empty());
    }
    assert!(cyclic > 300, "{cyclic}");
}

#[test]
fn forward_paths_stay() {
    // The first two cases contain the loop of an IP router: ICMP errors go back to the route lookup.
    let cases = [
        (
            "s :: Source -> j :: Strip -> t :: Tee; t [0] -> Discard; t [1] -> e :: Counter -> j;",
            vec!["e -> j"],
        ),
        (
            "e :: Counter; j :: Strip; e -> j; s :: Source -> j -> t :: Tee; t [0] -> Discard; t [1] -> e;",
            vec!["e -> j"],
        ),
        ("s :: Source -> t :: Tee; t [1] -> t;", vec!["t -> t"]),
        ("s :: Source -> a :: Strip -> q :: Queue -> u :: Unqueue -> a;", vec![]),
        // Input 1 of a Querier leads to no output, so no cycle closes there.
        ("s :: Source -> x :: Querier; x [1] -> Strip -> [1] x; x [0] -> Discard;", vec![]),
        ("s :: Source -> x :: Querier; x [1] -> Strip -> x; x [0] -> [1] x;", vec!["Strip@3 -> x"]),
    ];
    for (text, expected) in cases {
        let (g, _, _) = crate::testing::checked(text);
        let found: Vec<_> = g
            .flat
            .connections
            .iter()
            .zip(g.back_edges())
            .filter(|c| c.1)
            .map(|(c, _)| format!("{} -> {}", g.name(c.from.element), g.name(c.to.element)))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_long_cycle_does_not_overflow_the_stack() {
    let mut text = String::from("s :: Source -> j :: Strip");
    for _ in 0..2000 {
        text.push_str(" -> Counter");
    }
    text.push_str(" -> t :: Tee; t [0] -> Discard; t [1] -> j;");
    let g = graph(&text);
    assert_eq!(g.back_edges().iter().filter(|b| **b).count(), 1);
}

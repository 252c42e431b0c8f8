// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which nodes are made from elements. Packets take the same paths in any case, so only these tests detect a
//! chain that is cut, or a queue that is no longer pulled from directly.

use super::{router_with, simulated};
use crate::node::{Body, NONE};

/// Lists the nodes of a router. A chain is in brackets, with `?` if packets may leave it before its end. A
/// single element has `!` if it reaches others, and `<` before the output that it pulls from directly.
fn nodes(text: &str) -> Vec<String> {
    let r = router_with(text, simulated(32).0);
    let nodes = &r.assembly.workers.first().unwrap().nodes;
    let name = |e: u32| r.shared().graph.name(e as usize).to_string();
    let each = nodes.nodes.iter().map(|n| {
        let own = match &n.body {
            Body::Chain(members) => {
                let names: Vec<String> = members.iter().map(|m| name(m.me)).collect();
                format!("[{}]{}", names.join(" "), if n.loses { "?" } else { "" })
            }
            Body::Element(_) => name(n.me),
            Body::Reaching(..) | Body::Locked(..) => format!("{}!", name(n.me)),
            Body::Busy => "busy".into(),
            Body::Meeting(_) => "meeting".into(),
        };
        match n.direct {
            Some((up, port)) => format!("{own} < {}.{port}", name(nodes.nodes.get(up as usize).unwrap().me)),
            None => own,
        }
    });
    each.collect()
}

#[test]
fn runs_of_actions_are_chains() {
    for (what, text, want) in [
        (
            "all of a run",
            "s :: RandomSource(60) -> a :: Null -> b :: Null -> c :: Null -> d :: Discard",
            &["s", "[a b c]", "d"][..],
        ),
        (
            "whatever the order of declaration",
            "c :: Null; b :: Null; a :: Null; d :: Discard; s :: RandomSource(60) -> a -> b -> c -> d",
            &["[a b c]", "d", "s"],
        ),
        (
            "several upstream neighbours begin a chain",
            "s :: RandomSource(60) -> a :: Null -> b :: Null -> d :: Discard; t :: RandomSource(60) -> b",
            &["s", "[a]", "[b]", "d", "t"],
        ),
        (
            "side outputs do not end a chain, and begin none",
            "s :: RandomSource(60) -> a :: Null -> p :: CheckPaint(1) -> b :: Null -> d :: Discard; p [1] -> x :: Null -> y :: Null -> d",
            &["s", "[a p b]?", "d", "[x y]"],
        ),
        (
            "an element ends a chain",
            "s :: RandomSource(60) -> a :: Null -> t :: Tee(1) -> b :: Null -> d :: Discard",
            &["s", "[a]", "t", "[b]", "d"],
        ),
        (
            "a copy that is pushed ends none",
            "s :: RandomSource(60) -> a :: Null -> p :: PaintTee(1) -> b :: Null -> d :: Discard; p [1] -> d",
            &["s", "[a p b]?", "d"],
        ),
        (
            "a copy that is pulled ends a chain",
            "s :: RandomSource(60) -> q :: Queue -> a :: Null -> p :: PaintTee(1) -> b :: Null -> u :: Unqueue -> d :: Discard; p [1] -> d",
            &["s", "q", "[a p]?", "[b]", "u!", "d"],
        ),
        (
            "an action that calls handlers stands alone",
            "s :: RandomSource(60) -> a :: Null -> c :: Counter(COUNT_CALL 3 stop) -> b :: Null -> d :: Discard",
            &["s", "[a]", "[c]", "[b]", "d"],
        ),
        (
            "without a call it does not",
            "s :: RandomSource(60) -> a :: Null -> c :: Counter -> b :: Null -> d :: Discard",
            &["s", "[a c b]", "d"],
        ),
        (
            "a cycle is cut where it closes",
            "s :: RandomSource(60) -> a :: Null -> b :: Null -> c :: Null -> a",
            &["s", "[a b c]"],
        ),
        ("a cycle without an entry", "a :: Null -> b :: Null -> c :: Null -> a", &["[a b c]"]),
    ] {
        assert_eq!(nodes(text), want, "{what}");
    }
}

#[test]
fn elements_that_pull_reach_others() {
    for (what, text, want) in [
        (
            "one queue is pulled from directly",
            "s :: RandomSource(60) -> q :: Queue -> u :: Unqueue -> d :: Discard",
            &["s", "q", "u! < q.0", "d"][..],
        ),
        (
            "an element that pulls itself is not",
            "s :: RandomSource(60) -> q :: Queue -> r :: RoundRobinSched -> u :: Unqueue -> d :: Discard",
            &["s", "q", "r! < q.0", "u!", "d"],
        ),
        (
            "a chain is not",
            "s :: RandomSource(60) -> q :: Queue -> a :: Null -> u :: Unqueue -> d :: Discard",
            &["s", "q", "[a]", "u!", "d"],
        ),
        (
            "nor one of two",
            "s :: RandomSource(60) -> q :: Queue -> r :: RoundRobinSched -> d :: Discard; t :: RandomSource(60) -> p :: Queue -> [1] r",
            &["s", "q", "r!", "d!", "t", "p"],
        ),
        (
            "nor by an element that calls handlers",
            "s :: RandomSource(60) -> q :: Queue -> x :: Script(TYPE PACKET, return 0) -> u :: Unqueue -> d :: Discard",
            &["s", "q", "x!", "u!", "d"],
        ),
        (
            "an element that only calls handlers",
            "s :: RandomSource(60, END_CALL stop) -> d :: Discard",
            &["s!", "d"],
        ),
    ] {
        assert_eq!(nodes(text), want, "{what}");
    }
}

#[test]
fn edges_lead_to_inputs_or_nowhere() {
    let r = router_with(
        "s :: RandomSource(60) -> a :: Null -> p :: CheckPaint(1) -> q :: Queue -> u :: Unqueue -> d :: Discard; p [1] -> d",
        simulated(32).0,
    );
    let nodes = &r.assembly.workers.first().unwrap().nodes;
    let name = |e: u32| r.shared().graph.name(e as usize);
    let ends = nodes.edges.iter().map(|e| {
        let to = nodes.nodes.get(e.node as usize).map_or("nothing", |n| name(n.me));
        assert!(e.node == NONE || to != "nothing");
        format!("{} to {to}.{}", name(e.from), e.port)
    });
    let want = ["s to a.0", "p to q.0", "p to d.0", "q to nothing.0", "u to d.0"];
    assert_eq!(ends.collect::<Vec<_>>(), want, "a queue is pulled from");
}

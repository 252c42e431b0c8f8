// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the checks: a snapshot of each kind of diagnostic, and a comparison of push and pull with a model.
#![allow(clippy::unwrap_used)]

use crate::graph::PortKind;
use crate::testing::{Random, TestClasses, checked, random_graph, rendered, valid};
use castanet_lang::{Diagnostic, Origin};
use castanet_spec::codes::{Processing, ProcessingCode};
use std::collections::BTreeSet;

fn shown(text: &str) -> String {
    let (_, diagnostics, sources) = checked(text);
    format!("{text}\n\n{}", rendered(&diagnostics, &sources))
}

fn messages(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics.iter().map(|d| d.message.as_str()).collect()
}

macro_rules! snapshots {
    ($($name:ident: $text:expr;)+) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(shown($text));
        })+
    };
}

snapshots! {
    has_no_output: "s :: Source -> d :: Discard -> e :: Discard;";
    has_no_input: "s :: Source -> [3] Strip -> Discard; Source -> Discard;";
    too_many_of_a_range: "s :: Source -> c :: Check; c [0] -> Discard; c [1] -> Discard; c [2] -> Discard;";
    port_number_beyond_reason: "s :: Source -> c :: Classifier; c [0] -> Discard; c [60000] -> Discard;";
    outputs_as_many_as_inputs: "s :: Source -> p :: Plus; p [0] -> Discard; p [1] -> Discard; p [2] -> Discard;";
    outputs_missing_for_inputs: "Source -> s :: Suppressor -> Discard; Source -> [1] s;";
    unused_ports: "x :: Strip; t :: Tee; Source -> t;";
    unused_in_between: "Source -> c :: Classifier; c [2] -> Discard;";
    push_output_used_twice: "Source -> c :: Counter; c -> a :: Discard; c -> b :: Discard;";
    pull_input_used_twice: "Source -> a :: Queue -> c :: Counter -> Sink; Source -> b :: Queue -> c;";
    unconstrained_output_used_twice: "i :: Idle; i -> a :: Discard; i -> b :: Discard;";
    push_to_pull: "f :: Source -> t :: Sink;";
    pull_to_push: "Source -> q :: Queue -> r :: Queue -> Sink;";
    mixed_pull_push: "Source -> q :: Queue -> Strip -> Strip -> c :: Counter -> r :: Queue -> Sink;";
    mixed_push_pull: "Source -> Strip -> Sink;";
    mixed_on_one_port: "s :: Source -> Strip -> c :: Counter -> Discard; Source -> q :: Queue -> c;";
    mixed_inputs: "Source -> j :: Joined -> Discard; Source -> q :: Queue -> [1] j;";
    agnostic_pull_into_side_output: "Source -> Queue -> c :: Check -> Sink; c [1] -> Sink;";
    pull_cycle: "Source -> Queue -> s :: Sched -> c :: Counter -> t :: PullTee -> Sink; t -> [1] s; t [1] -> Discard;";
    pull_cycle_of_one: "s :: Sched; s -> Sink; s -> s;";
    figure_4: "f :: Source -> Counter -> t :: Sink; f -> q :: Queue -> u :: Sink; q -> [1] d :: Discard; c :: Counter;";
}

#[test]
fn long_paths_are_shortened() {
    let mut text = String::from("Source -> q :: Queue");
    text.push_str(&" -> Strip".repeat(40));
    text.push_str(" -> Queue -> Sink;");
    let (_, diagnostics, sources) = checked(&text);
    assert_eq!(
        messages(&diagnostics),
        ["agnostic 'Strip@23 :: Strip' in mixed context: pull input 0, push output 0"]
    );
    assert!(diagnostics[0].labels.len() < 40);
    insta::assert_snapshot!(rendered(&diagnostics, &sources));
    let ring = format!("s :: Sched; s{} -> s; s -> Sink;", " -> Strip".repeat(40));
    let (_, diagnostics, _) = checked(&ring);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(
        diagnostics[0].message,
        "pull cycle of 41 elements: s -> Strip@2 -> Strip@3 -> Strip@4 -> Strip@5 -> Strip@6 -> Strip@7 -> Strip@8 -> Strip@9 \
         -> Strip@10 -> Strip@11 -> ... -> s"
    );
}

#[test]
fn unknown_classes_are_opaque() {
    let (g, diagnostics, sources) = checked(
        "Source -> m :: MyQueue -> Sink; m [2] -> [3] x :: strip; y :: MyQueue; y -> Discard; y -> Discard;",
    );
    assert_eq!(messages(&diagnostics), [""; 0]);
    assert_eq!((g.inputs(1), g.outputs(1)), (1, 3));
    let m = g.find("m").unwrap();
    assert_eq!((g.input_kind(m, 0), g.output_kind(m, 0)), (PortKind::Push, PortKind::Pull));
    insta::assert_snapshot!(rendered(&super::unknown_classes(&g, &TestClasses), &sources));
    let (_, diagnostics, _) =
        checked("Source -> a :: Foo; Source -> q :: Queue -> a; Foo -> b :: Sink; Foo -> b;");
    assert_eq!(
        messages(&diagnostics),
        [
            "'q :: Queue' pull output 0 connected to 'a :: Foo' push input 0",
            "illegal reuse of 'b :: Sink' pull input 0"
        ]
    );
}

#[test]
fn compounds_show_where_they_are_used() {
    let (mut flat, sources) = crate::testing::flat("two :: X; x :: Strip; Source -> Discard;");
    let used = flat.elements[0].span;
    flat.elements.remove(0);
    for c in &mut flat.connections {
        c.from.element -= 1;
        c.to.element -= 1;
    }
    flat.elements[0].name = "two/x".into();
    flat.elements[0].origin.push(Origin {
        instance: "two".into(),
        class: "X".into(),
        span: used,
        parameters: Vec::new(),
    });
    let (g, diagnostics) = crate::Graph::new(flat, &TestClasses);
    insta::assert_snapshot!(rendered(&diagnostics[..1], &sources));
    assert_eq!(g.find_from("two/", "x"), g.find("two/x"));
    assert_eq!(g.find_from("two/deep/er/", "x"), g.find("two/x"));
    assert_eq!(g.find_from("", "x"), None);
    for (scope, name) in [("two/", "x"), ("two", "Source@3"), ("a/b/", "two/x"), ("", "nobody"), ("/", "x")] {
        assert_eq!(g.find_from(scope, name), g.flat.find_from(scope, name), "{scope} {name}");
    }
}

#[test]
fn broken_references_are_left_out() {
    let (mut flat, _) = crate::testing::flat("Source -> Strip -> Discard;");
    flat.connections[0].from.element = 99;
    flat.connections[1].to.element = usize::MAX;
    let (g, _) = crate::Graph::new(flat, &TestClasses);
    assert_eq!((g.inputs(1), g.outputs(1), g.inputs(99), g.spec(99).is_none()), (1, 1, 0, true));
    assert_eq!(g.downstream(castanet_lang::PortRef { element: 7, port: usize::MAX }), []);
    let (g, diagnostics) = crate::Graph::new(castanet_lang::Flat::default(), &TestClasses);
    assert!(g.is_empty() && diagnostics.is_empty());
}

/// Computes kinds by naive iteration over all pairs of ports that must agree. Also returns whether any pair
/// conflicts.
fn model(g: &crate::Graph) -> (Vec<BTreeSet<bool>>, bool) {
    let mut ports: Vec<(usize, bool, usize)> = Vec::new();
    for e in 0..g.len() {
        ports.extend((0..g.inputs(e)).map(|p| (e, true, p)));
        ports.extend((0..g.outputs(e)).map(|p| (e, false, p)));
    }
    let code = |e: usize| g.spec(e).and_then(|s| ProcessingCode::parse(s.processing));
    let fixed = |&(e, input, p): &(usize, bool, usize)| match code(e) {
        Some(c) => {
            if input {
                c.input(p)
            } else {
                c.output(p)
            }
        }
        None => Processing::Agnostic,
    };
    let mut kinds: Vec<BTreeSet<bool>> = ports
        .iter()
        .map(|p| match fixed(p) {
            Processing::Push => [true].into(),
            Processing::Pull => [false].into(),
            Processing::Agnostic => BTreeSet::new(),
        })
        .collect();
    let connections = valid(g);
    let tied = |a: &(usize, bool, usize), b: &(usize, bool, usize)| {
        let wired = !a.1
            && b.1
            && connections
                .iter()
                .any(|(_, c)| (c.from.element, c.from.port, c.to.element, c.to.port) == (a.0, a.2, b.0, b.2));
        let inside = a.0 == b.0
            && a.1
            && !b.1
            && g.spec(a.0).is_some()
            && fixed(a) == Processing::Agnostic
            && fixed(b) == Processing::Agnostic
            && g.flows(a.0, a.2, b.2);
        wired || inside
    };
    loop {
        let before = kinds.clone();
        for (i, a) in ports.iter().enumerate() {
            for (j, b) in ports.iter().enumerate() {
                if tied(a, b) {
                    let union: BTreeSet<bool> = kinds[i].union(&kinds[j]).copied().collect();
                    kinds[i] = union.clone();
                    kinds[j] = union;
                }
            }
        }
        if kinds == before {
            let conflict = kinds.iter().any(|k| k.len() > 1);
            return (kinds, conflict);
        }
    }
}

#[test]
fn push_and_pull_agree_with_the_model() {
    let mut random = Random(6);
    let classes = [
        "Queue",
        "Strip",
        "Joined",
        "Odd",
        "Suppressor",
        "Check",
        "Unqueue",
        "Source",
        "Idle",
        "Nobody",
        "Discard",
    ];
    let (mut good, mut bad) = (0, 0);
    for _ in 0..2000 {
        let g = random_graph(&mut random, &classes);
        let (kinds, conflict) = model(&g);
        let diagnostics = crate::Graph::new(g.flat.clone(), &TestClasses).1;
        let found = diagnostics
            .iter()
            .any(|d| d.message.contains("connected to") || d.message.contains("mixed context"));
        assert_eq!(found, conflict, "{diagnostics:?} {:?}", g.flat);
        let mut at = kinds.iter();
        for e in 0..g.len() {
            let inputs = (0..g.inputs(e)).map(|p| g.input_kind(e, p));
            for kind in inputs.chain((0..g.outputs(e)).map(|p| g.output_kind(e, p))) {
                let allowed = at.next().unwrap();
                assert!(
                    allowed.contains(&(kind == PortKind::Push))
                        || (allowed.is_empty() && kind == PortKind::Push)
                );
            }
        }
        if conflict { bad += 1 } else { good += 1 }
    }
    assert!(good > 200 && bad > 200, "{good} {bad}");
}

#[test]
fn many_ports_agree_with_few() {
    // Inside elements with many ports, hubs link the ports. The result must be the same as without hubs.
    let code = |class: &str, inputs: usize, outputs: usize| {
        let mut text = format!("x :: {class};");
        for i in 0..inputs {
            text.push_str(&format!("Source -> [{i}] x;"));
        }
        for o in 0..outputs {
            text.push_str(&format!("x [{o}] -> q{o} :: Queue -> Sink;"));
        }
        text
    };
    for (class, inputs, outputs) in [
        ("Joined", 9, 7),
        ("Suppressor", 12, 12),
        ("Odd", 11, 13),
        ("Idle", 20, 5),
        ("Odd", 2, 40),
        ("Joined", 1, 40),
    ] {
        let (g, _, _) = checked(&code(class, inputs, outputs));
        let x = g.find("x").unwrap();
        for o in 0..outputs {
            let (q, mut expected) = (g.find(&format!("q{o}")).unwrap(), BTreeSet::new());
            for (i, &source) in (0..inputs)
                .zip((0..g.len()).filter(|&e| g.name(e).starts_with("Source")).collect::<Vec<_>>().iter())
            {
                if g.flows(x, i, o) {
                    expected.insert(source);
                }
            }
            let mut found: BTreeSet<_> =
                g.upstream_filter(q, Some(0), |_| crate::Visit::TakeAndPass).into_iter().collect();
            assert!(found.remove(&x));
            assert_eq!(found, expected, "{class} {inputs} {outputs} {o}");
        }
    }
    // Fixed ports connected to a hub do not constrain each other.
    let (g, diagnostics, _) = checked(&code("Check", 1, 2).replace("[0] -> q0", "[0] -> Sink; Source -> q0"));
    assert_eq!(g.output_kind(g.find("x").unwrap(), 1), PortKind::Push);
    assert_eq!(diagnostics.len(), 1);
}

/// Fails unless the work is linear: four times the size may take at most six times the steps.
fn linear(what: &str, n: usize, steps: impl Fn(usize) -> usize) {
    let (few, many) = (steps(n), steps(4 * n));
    assert!(few > n && many < 6 * few, "{what}: {few} steps for {n}, {many} for {}", 4 * n);
}

/// The number of steps that `work` takes through the graph.
fn steps(work: impl FnOnce()) -> usize {
    let before = crate::csr::STEPS.get();
    work();
    crate::csr::STEPS.get() - before
}

#[test]
fn long_configurations_take_linear_work() {
    linear("ten elements in a row", 250, |n| {
        let row = |i| format!("s{i} :: Source{} -> Queue -> Sink;", " -> Strip".repeat(7));
        let (flat, _) = crate::testing::flat(&(0..n).map(row).collect::<String>());
        assert_eq!(flat.elements.len(), 10 * n);
        steps(|| assert_eq!(crate::Graph::new(flat, &TestClasses).1, []))
    });
}

#[test]
fn hostile_shapes_take_linear_work() {
    linear("many ports in a cycle", 1000, |n| {
        let links: String = (0..n).map(|i| format!("a [{i}] -> [{i}] b;")).collect();
        let (flat, _) = crate::testing::flat(&format!("a :: Joined; b :: Joined; {links} b -> a;"));
        steps(|| {
            let (g, _) = crate::Graph::new(flat, &TestClasses);
            assert_eq!(g.back_edges().iter().filter(|b| **b).count(), 1);
            assert_eq!(g.nearest_downstream(0, None, castanet_spec::Capability::Storage), []);
        })
    });
    linear("many pull cycles", 1000, |n| {
        let text = format!("q :: Queue; s :: Sched; Source -> q; {}", "s -> Strip -> s;".repeat(n));
        let (flat, _) = crate::testing::flat(&text);
        steps(|| assert!(crate::Graph::new(flat, &TestClasses).1.len() > 12))
    });
    linear("a long chain, explained", 1000, |n| {
        let (flat, _) = crate::testing::flat(&format!("s :: Source{} -> Discard;", " -> Strip".repeat(n)));
        let (g, _) = crate::Graph::new(flat, &TestClasses);
        let mut bytes = 0;
        let walked = steps(|| {
            let placement = crate::Placement::new(&g, 2, &|_| None, &[0]);
            bytes = placement.explain(&g).len();
        });
        // Paths are shortened. Complete ones would make the output quadratic in the length of the chain.
        assert!(bytes < 150 * n, "{bytes}");
        walked
    });
}

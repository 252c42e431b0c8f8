// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::devirtualize`: which elements share a function, what the functions call, and where packets start.
//! crates/package/tests compiles such functions and runs them.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_graph::devirtualize::{Source, source};
use castanet_runtime::swap::Loaded;

fn made(text: &str) -> Source {
    let Loaded { graph, classes, .. } =
        castanet_testkit::load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (graph, units) = castanet_runtime::units(graph, classes.as_ref()).unwrap_or_else(|d| panic!("{d:?}"));
    source(&graph, &units, &|_| true, 0)
}

/// The numbers of units with code and of functions.
fn shared(text: &str) -> (usize, usize) {
    let Source { units, functions, .. } = made(text);
    (units, functions)
}

#[test]
fn elements_share_functions_by_the_four_rules() {
    for (text, want) in [
        // Discards share code, and so do Counters before them.
        ("Idle -> Counter -> a :: Discard; Idle -> Counter -> b :: Discard", (4, 2)),
        ("Idle -> Counter -> a :: Discard; Idle -> Counter -> a", (3, 2)),
        // 1: other classes. The chains differ, the Discards do not.
        ("Idle -> Counter -> Discard; Idle -> Null -> Discard", (4, 3)),
        // 2: other numbers of ports.
        (
            "Idle -> a :: Tee(1) -> Discard; Idle -> b :: Tee(2) -> Discard; b [1] -> Discard",
            (5, 3),
        ),
        // 3: a port that is push on one element, and pull on the other. Packets are not pushed to the latter, so it
        // has no code.
        ("Idle -> Counter -> Queue -> Unqueue -> Discard; Idle -> Queue -> Counter -> Unqueue -> Discard", (5, 3)),
        // 4: successors that do not share code, and other inputs of the same element.
        ("Idle -> Counter -> Discard; Idle -> Counter -> Queue -> Discard", (4, 4)),
        ("s :: Switch(0); Idle -> s; s [0] -> Counter -> [0] r :: InputSwitch(0) -> Discard; s [1] -> Counter -> [1] r", (5, 5)),
        // The output sides of an IP router, several elements deep.
        (
            "s :: Switch(0); Idle -> s; s [0] -> Paint(1) -> q :: Switch(1); q [0] -> Discard; q [1] -> Queue -> Discard;
             s [1] -> Paint(2) -> p :: Switch(0); p [0] -> Discard; p [1] -> Queue -> Discard",
            (9, 5),
        ),
    ] {
        assert_eq!(shared(text), want, "{text}\n{}", made(text).text);
    }
}

#[test]
fn functions_call_the_next_one() {
    let text = "InfiniteSource -> Paint(1) -> c :: Classifier(0/01, -); c [0] -> a :: Discard; c [1] -> Strip(1) -> b :: Discard";
    let Source { text, sites, .. } = made(text);
    for part in [
        "w.element::<castanet_elements::classify::classifier::Classifier>(",
        "paint::Paint, 0>(p, cx)",
        "        0 => f0_discard_0(w, ",
        "        _ => w.pass(edge, p),\n",
        ", |w, _, p| f",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(sites, 5);
    // Packets start behind the source only.
    let entries = text.split("pub const ENTRIES").nth(1).unwrap();
    assert_eq!(entries.matches("Guard.call").count(), 1, "{text}");
}

#[test]
fn cycles_and_elements_that_pull_are_left_to_the_run_loop() {
    // The connection that closes the cycle is no call.
    let cycle = made("Idle -> a :: Counter -> s :: Switch(0); s [0] -> a; s [1] -> Discard").text;
    assert_eq!(cycle.matches("fn ").count(), 3, "{cycle}");
    // Calls lead from the run loop to the Counter, from there to the Switch, and on to the Discard.
    let calls = cycle.matches("(w, p)").count();
    assert_eq!((cycle.matches("w.pass(").count(), calls), (2, 3), "{cycle}");
    // A Script calls handlers, and an Unqueue pulls.
    let pulls = made("Idle -> q :: Queue -> Unqueue -> c :: Counter -> Queue -> Discard").text;
    assert!(!pulls.contains("unqueue") && pulls.contains("counter"), "{pulls}");
    assert_eq!(pulls.split("pub const ENTRIES").nth(1).unwrap().matches("Guard.call").count(), 1, "{pulls}");
}

/// A chain of 20,000 elements that differ, and as many that do not.
#[test]
fn large_configurations() {
    let mut text = String::from("Idle");
    for i in 0..10_000 {
        text += if i % 3 == 0 { " -> Switch(0)" } else { " -> Queue -> Unqueue" };
    }
    text += " -> Discard;";
    for _ in 0..10_000 {
        text += "Idle -> Counter -> Discard;";
    }
    let Source { units, functions, .. } = made(&text);
    assert!(units > 25_000 && functions < 11_000, "{units} {functions}");
}

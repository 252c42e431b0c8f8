// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet_graph::undead`: what it removes, and that a router without dead code treats packets as before.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::{Classes, Random};
use castanet_graph::Graph;
use castanet_graph::undead::{Why, undead};
use castanet_lang::print::driver;
use castanet_runtime::swap::Loaded;
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::seen::Seen;
use std::sync::Arc;

/// Returns the configuration without dead code, and what was removed.
fn transformed(text: &str) -> (String, Vec<(String, Why)>) {
    let loaded: Loaded = castanet_testkit::load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let classes: Arc<dyn Classes> = loaded.classes;
    let (flat, removed) = undead(loaded.graph.flat, classes.as_ref());
    let (graph, errors) = Graph::new(flat, classes.as_ref());
    assert!(errors.iter().all(|d| !d.is_error()), "{errors:?}\n{text}\n{}", driver(&graph.flat));
    (driver(&graph.flat), removed.into_iter().map(|r| (r.element, r.why)).collect())
}

#[test]
fn what_is_removed() {
    use Why::{NoEnd, Redundant, Unreachable};
    for (text, left, removed) in [
        // Null, Tee with one output, and static switches.
        (
            "s :: InfiniteSource -> n :: Null -> t :: Tee(1) -> w :: StaticSwitch(1); d :: Discard; w[0] -> c :: Counter -> d; w[1] -> d;",
            "s :: InfiniteSource;\nd :: Discard;\n\ns -> d;\n",
            &[
                ("n :: Null", Redundant),
                ("t :: Tee", Redundant),
                ("w :: StaticSwitch", Redundant),
                ("c :: Counter", Unreachable),
            ][..],
        ),
        // A scheduler with one input that packets reach.
        (
            "InfiniteSource -> q :: Queue -> [0] p :: PrioSched; i :: Idle -> k :: Queue -> [1] p; p -> u :: Unqueue -> d :: Discard;",
            "InfiniteSource@1 :: InfiniteSource;\nq :: Queue;\nu :: Unqueue;\nd :: Discard;\n\nInfiniteSource@1 -> q\n    -> u\n    -> d;\n",
            &[("k :: Queue", Unreachable), ("p :: PrioSched", Redundant)],
        ),
        // A switch that handlers can change is not removed. Its output that led to the removed Counter gets an Idle.
        (
            "InfiniteSource -> w :: Switch; w[0] -> Discard; w[1] -> c :: Counter -> Idle;",
            "InfiniteSource@1 :: InfiniteSource;\nw :: Switch;\nDiscard@3 :: Discard;\nIdle@undead@1 :: Idle;\n\nInfiniteSource@1 -> w\n    -> Discard@3;\nw [1] -> Idle@undead@1;\n",
            &[("c :: Counter", NoEnd)],
        ),
        // An Idle at ports that have other connections.
        (
            "s :: InfiniteSource -> q :: Queue -> u :: Unqueue -> d :: Discard; i :: Idle -> q; q -> i;",
            "s :: InfiniteSource;\nq :: Queue;\nu :: Unqueue;\nd :: Discard;\n\ns -> q\n    -> u\n    -> d;\n",
            &[],
        ),
        // Packets from which an element learns do not go nowhere, although they leave it by no output.
        (
            "s :: InfiniteSource -> a :: ARPQuerier(1.0.0.1, 02:00:00:00:00:01) -> w :: Classifier(12/0806, -) -> r :: ARPResponder(1.0.0.2 02:00:00:00:00:02) -> [1] a; w[1] -> d :: Discard;",
            "",
            &[],
        ),
        // If the element is removed, they do.
        (
            "s :: InfiniteSource -> t :: Tee -> d :: Discard; t[1] -> q :: Counter -> [1] a :: ARPQuerier(1.0.0.1, 02:00:00:00:00:01) -> Idle; Idle -> a;",
            "",
            &[("a :: ARPQuerier", NoEnd), ("q :: Counter", NoEnd)],
        ),
        // Elements whose names occur in other configuration strings are not removed, and neither are elements that
        // print.
        (
            "Idle -> c :: Counter -> Discard; InfiniteSource -> Print -> Idle; Script(print c.count);",
            "",
            &[("Discard@3 :: Discard", Unreachable)],
        ),
    ] {
        let (text_left, gone) = transformed(text);
        let gone: Vec<_> = gone.iter().map(|(e, why)| (e.as_str(), *why)).collect();
        assert_eq!(gone, removed, "{text}\n{text_left}");
        if !left.is_empty() {
            assert_eq!(text_left, left, "{text}");
        }
        // The result has no dead code.
        assert_eq!(transformed(&text_left), (text_left.clone(), Vec::new()));
    }
}

#[test]
fn configurations_of_the_project_stay_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_some_and(|e| e == "click") {
            let text = std::fs::read_to_string(&file).unwrap();
            let (without, _) = transformed(&text);
            assert_eq!(transformed(&without).1, [], "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} configurations");
}

/// Returns a configuration with dead code: a Null on some connections, and elements that packets do not reach.
fn with_dead_code(c: &Configuration, random: &mut Random) -> String {
    let mut text = String::new();
    for line in c.text().lines() {
        match line.split_once("] -> [") {
            Some((from, to)) if random.below(2) == 0 => {
                text += &format!("{from}] -> Null -> Null -> [{to}\n")
            }
            _ => text += &format!("{line}\n"),
        }
    }
    text + "Idle -> Counter -> Queue -> Unqueue -> Null -> Discard;\n"
}

#[test]
fn routers_without_dead_code_do_the_same() {
    let mut random = Random::new(3, "dead code");
    let mut gone = 0;
    for seed in 0..150 {
        let wish = Wish { marks: true, cycles: true, ..Wish::default() };
        let text = with_dead_code(&Configuration::random(seed, wish), &mut random);
        let (without, removed) = transformed(&text);
        gone += removed.len();
        for batch in [1, 32] {
            let (mut before, after) = (Seen::of(&text, batch), Seen::of(&without, batch));
            // Elements that were removed no longer have counts and drops.
            let is_gone = |name: &str| removed.iter().any(|r| r.0.split(' ').next() == Some(name));
            before.counts.retain(|name, _| !is_gone(name));
            before.drops.retain(|(name, _), _| !is_gone(name));
            let strip_idle = |seen: &mut Seen| seen.drops.retain(|(name, _), _| !name.starts_with("Idle@"));
            let mut after = after;
            strip_idle(&mut before);
            strip_idle(&mut after);
            assert_eq!(before, after, "seed {seed}, batch {batch}\n{text}\n{without}");
        }
    }
    assert!(gone > 1000, "{gone} elements removed");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps of elements without a name: which of them stay, although their numbers change.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_element::prelude::*;
use castanet_element::remote::Remote;
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::Running;
use castanet_runtime::swap::{Loaded, Loader, Plan, Style, SwapError};
use castanet_testkit::*;
use std::sync::Arc;

struct Texts;
impl Loader for Texts {
    fn load(&self, _: Origin, _: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        load_with(text, |_| {}).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
}

/// Runs a router while `f` works on it, then stops it. Returns its messages.
fn running(text: &str, f: impl FnOnce(&Running)) -> String {
    let (options, log) = real(1);
    let mut r = try_router_with(text, options, |_| {}).unwrap_or_else(|e| panic!("{e}"));
    r.running().set_loader(Arc::new(Texts));
    let running = r.running().clone();
    std::thread::scope(|s| {
        let thread = s.spawn(|| r.run().unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&running)));
        running.current().unwrap().end();
        thread.join().unwrap();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
    log.lines().join("\n")
}

fn plan(old: &str, new: &str) -> Plan {
    let mut plan = Plan::default();
    running(old, |r| plan = r.plan(Origin::Operator, "config", new, Style::Lines).unwrap());
    plan
}

fn swap(r: &Running, text: &str) -> Plan {
    r.swap(Origin::Operator, "config", text).unwrap().plan
}

fn count(r: &Running, e: &str, h: &str) -> u64 {
    r.read(Some(e), h, "").unwrap().trim().parse().unwrap()
}

#[test]
fn packets_and_counts_stay_behind_an_inserted_element() {
    let messages = running("n :: Numbers(1, 100) -> Counter -> Queue(200) -> i :: Idle", |r| {
        while count(r, "Queue@3", "length") < 100 {}
        let plan = swap(r, "n :: Numbers(1, 100) -> Paint(1) -> Counter -> Queue(200) -> i :: Idle");
        assert_eq!((count(r, "Counter@3", "count"), count(r, "Queue@4", "length")), (100, 100));
        let text = plan.to_string();
        for line in [
            "+ Paint@2 :: Paint(1)\n+ n [0] -> [0] Paint@2\n+ Paint@2 [0] -> [0] Counter@3\n- n [0] -> [0] Counter@2\n",
            "= Counter@3 :: Counter: was Counter@2\n= Queue@4 :: Queue: was Queue@3\n",
            "= Queue@4 :: Queue: the packets",
            "\n1 added, 0 removed, 0 changed, 4 as they are, 2 under another number\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    });
    assert!(!messages.contains("hot swap"), "the plan alone shows pairs: {messages}");
}

#[test]
fn an_inserted_element_does_not_take_the_state_of_another_with_its_number() {
    running("n :: Numbers(1, 100) -> Queue(200) -> i :: Idle", |r| {
        while count(r, "Queue@2", "length") < 100 {}
        swap(r, "n :: Numbers(1, 100) -> Queue(7) -> u :: Unqueue(ACTIVE false) -> Queue(200) -> i :: Idle");
        assert_eq!((count(r, "Queue@2", "length"), count(r, "Queue@4", "length")), (0, 100));
    });
    // The inserted queue is on another path, between other elements.
    running("n :: Numbers(1, 100) -> Queue(200) -> i :: Idle", |r| {
        while count(r, "Queue@2", "length") < 100 {}
        swap(r, "Idle -> Queue(200) -> Idle; n :: Numbers(1, 100) -> Queue(200) -> i :: Idle");
        assert_eq!((count(r, "Queue@2", "length"), count(r, "Queue@5", "length")), (0, 100));
    });
}

#[test]
fn nothing_is_guessed_when_the_neighbours_are_renamed_too() {
    let messages = running("n :: Numbers(1, 100) -> Queue(200) -> i :: Idle", |r| {
        while count(r, "Queue@2", "length") < 100 {}
        let plan = swap(r, "other :: Idle -> Queue(200) -> j :: Idle");
        assert_eq!(count(r, "Queue@2", "length"), 0);
        assert_eq!((plan.removed.len(), plan.added.len(), plan.unpaired), (3, 3, vec!["Queue".to_string()]));
    });
    assert!(
        messages.contains("hot swap: Queue: it is not clear which elements without a name stay"),
        "{messages}"
    );
}

/// Returns the elements whose generated name changes, each with its old name, and the number of added
/// elements.
fn pairs(old: &str, new: &str) -> (Vec<String>, usize) {
    let plan = plan(old, new);
    let short = |(now, before): &(String, String)| format!("{} {before}", now.split(' ').next().unwrap());
    let mut pairs: Vec<String> = plan.renumbered.iter().map(short).collect();
    pairs.sort();
    (pairs, plan.added.len())
}

#[test]
fn elements_are_paired_by_class_configuration_and_neighbours() {
    let cases: [(&str, &str, &[&str], usize); 11] = [
        // Each case: the old and the new configuration, the elements whose generated name changes (new name, old
        // name), and the number of added elements. Here, one neighbour that stays is enough to pair the queues.
        (
            "a :: Idle -> Queue -> b :: Idle",
            "x :: Idle -> Paint(1) -> Queue -> b :: Idle",
            &["Queue@3 Queue@2"],
            2,
        ),
        // No element has a name. The source is the only one of its class, and its connections lead to the
        // others.
        (
            "RatedSource(LIMIT 0) -> Queue -> Unqueue -> Discard",
            "Idle -> Counter -> Discard; RatedSource(LIMIT 0) -> Paint(2) -> Queue -> Unqueue -> Discard",
            &["Discard@8 Discard@4", "Queue@6 Queue@2", "RatedSource@4 RatedSource@1", "Unqueue@7 Unqueue@3"],
            4,
        ),
        // Elements are paired by ports, not by order.
        (
            "Idle -> t :: Tee -> Counter -> d :: Discard; t [1] -> Counter -> d",
            "Idle -> t :: Tee; d :: Discard; t [1] -> Counter -> d; t [0] -> Counter -> d",
            &["Counter@4 Counter@5", "Counter@5 Counter@3"],
            0,
        ),
        // Two paths that cannot be told apart stay in their order.
        (
            "Idle -> Counter -> d :: Discard; Idle -> Counter -> d",
            "AddressInfo(x 1.2.3.4); Idle -> Counter -> d :: Discard; Idle -> Counter -> d",
            &["Counter@3 Counter@2", "Counter@6 Counter@5", "Idle@2 Idle@1", "Idle@5 Idle@4"],
            1,
        ),
        // With three such paths, it is not known which two were there before.
        (
            "Idle -> Counter -> d :: Discard; Idle -> Counter -> d",
            "d :: Discard; Idle -> Counter -> d; Idle -> Counter -> d; Idle -> Counter -> d",
            &[],
            6,
        ),
        ("a :: Idle -> Counter -> d :: Discard", "a :: Idle -> Counter -> Counter -> d :: Discard", &[], 2),
        // Elements with the same name and class are always paired: here `a` and `d`. The new counter is not between
        // them, so it does not replace the old one.
        (
            "a :: Idle -> Counter -> d :: Discard",
            "a :: Idle -> d :: Discard; Idle -> Counter -> Discard",
            &[],
            3,
        ),
        // The queue has another configuration string, but the same neighbours.
        (
            "a :: Idle -> Queue(5) -> b :: Idle",
            "Idle -> Discard; a :: Idle -> Queue(7) -> b :: Idle",
            &["Queue@4 Queue@2"],
            2,
        ),
        // Either new queue could replace the old one: one follows `a`, and the other precedes `b`. The one with the
        // same configuration string is chosen.
        (
            "a :: Idle -> Queue(5) -> b :: Idle",
            "a :: Idle -> Queue(7) -> Unqueue -> Queue(5) -> b :: Idle",
            &["Queue@4 Queue@2"],
            2,
        ),
        // An element in a compound without a name is paired, too.
        (
            "elementclass S { input -> Counter -> output } a :: Idle -> S -> d :: Discard",
            "elementclass S { input -> Counter -> output } a :: Idle -> Paint(1) -> S -> d :: Discard",
            &["S@3/Counter@1 S@2/Counter@1"],
            1,
        ),
        // An element without connections is paired, although its configuration differs.
        (
            "AddressInfo(a 1.2.3.4); x :: Idle -> y :: Discard",
            "x :: Idle -> y :: Discard; AddressInfo(a 1.2.3.5)",
            &["AddressInfo@3 AddressInfo@1"],
            0,
        ),
    ];
    for (old, new, expected, added) in cases {
        let (found, more) = pairs(old, new);
        assert_eq!(
            (found.as_slice(), more),
            (expected.iter().map(|s| (*s).to_string()).collect::<Vec<_>>().as_slice(), added),
            "{old}\n{new}"
        );
    }
}

#[test]
fn the_same_text_pairs_everything() {
    for text in [
        "Idle -> Counter -> Discard; Idle -> Counter -> Discard; Idle -> Queue -> Idle",
        "elementclass S { input -> Counter -> output } Idle -> S -> S -> d :: Discard; Idle -> { input -> Queue -> output } -> Idle",
        "Idle -> Tee -> Counter -> Discard; AddressInfo(a 1.2.3.4); AddressInfo(a 1.2.3.4)",
    ] {
        let plan = plan(text, text);
        assert_eq!(
            (plan.added.len(), plan.removed.len(), plan.changed.len(), plan.renumbered.len()),
            (0, 0, 0, 0),
            "{plan}"
        );
        assert!(plan.connected.is_empty() && plan.disconnected.is_empty(), "{plan}");
    }
}

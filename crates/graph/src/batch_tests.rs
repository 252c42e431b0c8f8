// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of batch limits, against a model that counts the paths of calls from a task (walks).
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Entry, Random, calls_from, calls_of_task, graph, random_graph};
use std::collections::BTreeMap;

/// Whether the task calls elements with outside effects more than once in total. A walk is a path of calls that begins
/// at the task. Each round of the loop makes all walks one step longer. Within two rounds per port, the walks have gone
/// round any cycle.
fn many_effects(g: &Graph, acts: &dyn Fn(usize) -> bool, task: usize) -> bool {
    let mut total = usize::from(acts(task));
    let mut walks: BTreeMap<Entry, usize> = BTreeMap::new();
    for c in calls_of_task(g, task) {
        *walks.entry(c).or_default() += 1;
    }
    let ports: usize = (0..g.len()).map(|e| g.inputs(e) + g.outputs(e)).sum();
    for _ in 0..2 * ports + 2 {
        let mut next: BTreeMap<Entry, usize> = BTreeMap::new();
        for (&entry, &n) in &walks {
            if acts(entry.element()) {
                total += n;
            }
            for c in calls_from(g, entry) {
                let m = next.entry(c).or_default();
                *m = (*m + n).min(2);
            }
        }
        walks = next;
    }
    total > 1
}

#[test]
fn random_graphs_agree_with_the_model() {
    let mut random = Random(4);
    let classes = [
        "Source",
        "Tee",
        "Strip",
        "Joined",
        "Classifier",
        "Check",
        "Queue",
        "Unqueue",
        "Sched",
        "Querier",
        "PullTee",
        "Odd",
    ];
    let (mut limited, mut free) = (0, 0);
    for _ in 0..1200 {
        let g = random_graph(&mut random, &classes);
        let mask = random.below(64) & random.below(64);
        let acts = |e: usize| mask >> e & 1 == 1;
        let effects = |e: usize| if acts(e) { Effects::PRINTS } else { Effects::empty() };
        let tasks: Vec<_> = (0..g.len()).collect();
        for (t, why) in batch_limits(&g, &effects, &tasks) {
            assert_eq!(why.is_some(), many_effects(&g, &acts, t), "{t} {why:?} {mask} {:?}", g.flat);
            match why {
                Some(Constraint::TwoEffects(a, b)) => assert!(a != b && acts(a) && acts(b)),
                Some(
                    Constraint::TwoPaths(e)
                    | Constraint::Cycle(e)
                    | Constraint::Calls(e)
                    | Constraint::ReadsState(e),
                ) => assert!(acts(e)),
                None => free += usize::from(mask != 0),
            }
            limited += usize::from(why.is_some());
        }
    }
    assert!(limited > 300 && free > 300, "{limited} {free}");
}

#[test]
fn reasons() {
    let cases = [
        ("x :: Source -> Print -> Discard;", None),
        (
            "x :: Source -> a :: Print -> b :: Print -> Discard;",
            Some("'a :: Print' and 'b :: Print' both have outside effects"),
        ),
        (
            "x :: Source -> c :: Classifier; c [0] -> p :: Print -> Discard; c [1] -> Strip -> p;",
            Some("two paths lead to 'p :: Print', which has outside effects"),
        ),
        (
            "x :: Source -> j :: Strip -> p :: Print -> c :: Classifier; c [0] -> Discard; c [1] -> j;",
            Some("a cycle leads to 'p :: Print', which has outside effects"),
        ),
        ("Source -> a :: Print -> Queue -> b :: Print -> x :: Sink;", None),
        (
            "Source -> Queue -> a :: Check -> x :: Unqueue -> b :: Print -> Discard; a [1] -> c :: Print -> Discard;",
            Some("'b :: Print' and 'c :: Print' both have outside effects"),
        ),
        ("Source -> q :: Queue -> x :: Unqueue -> Print -> Discard; q [1] -> Print -> Discard;", None),
        (
            "Source -> Queue -> p :: Print -> x :: ToDump;",
            Some("'p :: Print' and 'x :: ToDump' both have outside effects"),
        ),
        ("Source -> Queue -> x :: ToDump;", None),
    ];
    for (text, expected) in cases {
        let g = graph(text);
        let effects = |e: usize| g.spec(e).map_or(Effects::empty(), |s| s.effects);
        let limits = batch_limits(&g, &effects, &[g.find("x").unwrap()]);
        let why = limits[0].1.map(|w| w.describe(&g));
        assert_eq!(why.as_deref(), expected, "{text}");
    }
}

#[test]
fn reading_queue_lengths_is_no_outside_effect_but_needs_single_packets() {
    let g = graph("x :: Source -> a :: Check -> b :: Check -> Queue -> Unqueue -> Discard;");
    let [x, a, b] = ["x", "a", "b"].map(|name| g.find(name).unwrap());
    let (none, looks, prints) = (Effects::empty(), Effects::LOOKS, Effects::PRINTS);
    for (of_a, of_b, why) in [
        (looks, none, Some(Constraint::ReadsState(a))),
        (looks, prints, Some(Constraint::ReadsState(a))),
        (none, prints, None),
    ] {
        let effects = |e: usize| {
            if e == a {
                of_a
            } else if e == b {
                of_b
            } else {
                none
            }
        };
        assert_eq!(batch_limits(&g, &effects, &[x]), [(x, why)]);
    }
}

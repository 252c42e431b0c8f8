// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of placement, against a model that follows calls naively.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Random, calls_from, calls_of_task, graph, random_graph};
use std::collections::BTreeSet;

fn tasks(g: &Graph) -> Vec<usize> {
    (0..g.len()).filter(|&e| g.spec(e).is_some_and(|s| s.task)).collect()
}

fn place(g: &Graph, workers: usize) -> Placement {
    Placement::new(g, workers, &|_| None, &tasks(g))
}

#[test]
fn random_graphs_agree_with_the_model() {
    let mut random = Random(5);
    let classes = [
        "Source", "Source", "Sink", "Strip", "Tee", "Queue", "Unqueue", "Unqueue", "Sched", "Meter", "Meter",
        "Joined", "PullTee", "Querier",
    ];
    let mut locked = 0;
    for _ in 0..2000 {
        let g = random_graph(&mut random, &classes);
        let wanted: Vec<_> = (0..g.len()).map(|_| Some(random.below(6)).filter(|w| *w < 3)).collect();
        let p = Placement::new(&g, 3, &|e| wanted[e], &tasks(&g));
        let mut expected = vec![BTreeSet::new(); g.len()];
        for t in tasks(&g) {
            let w = p.task_worker(t).unwrap();
            assert!(wanted[t].is_none_or(|x| x == w));
            expected[t].insert(w);
            let mut stack = calls_of_task(&g, t);
            let mut seen = BTreeSet::new();
            while let Some(c) = stack.pop() {
                if seen.insert(c) {
                    expected[c.element()].insert(w);
                    stack.extend(calls_from(&g, c));
                }
            }
        }
        for (e, mut by) in expected.into_iter().enumerate() {
            if by.is_empty() {
                by.insert(0);
            }
            let by: Vec<_> = by.into_iter().collect();
            assert_eq!(p.workers_of(e), by, "{:?}", g.flat);
            let declared = g.spec(e).unwrap().workers;
            match p.mode(e) {
                Mode::Owned(w) => assert_eq!(by, [w]),
                Mode::Replicated => assert!(by.len() > 1 && matches!(declared, Workers::Replicate)),
                Mode::Shared => assert!(by.len() > 1 && declared == Workers::Share),
                Mode::Locked(home) => {
                    assert!(by.len() > 1 && declared == Workers::Exclusive);
                    assert_eq!(home, p.task_worker(e).unwrap_or(by[0]));
                    locked += 1;
                }
            }
            let owners = if let Mode::Locked(home) = p.mode(e) { vec![home] } else { by };
            assert_eq!(p.owners_of(e), owners);
        }
        assert!(!p.explain(&g).is_empty());
    }
    assert!(locked > 5, "{locked}");
}

const TWO: &str = "a :: Source -> ca :: Counter -> j :: Strip -> q :: Queue; b :: Source -> cb :: Counter -> j; \
     q -> u :: Unqueue -> Counter -> Strip -> Strip -> d :: Discard;";

#[test]
fn sources_take_turns_and_queues_are_shared() {
    let g = graph(TWO);
    let p = place(&g, 2);
    let worker = |n: &str| p.task_worker(g.find(n).unwrap());
    assert_eq!([worker("a"), worker("b"), worker("u"), worker("q")], [Some(0), Some(1), Some(0), None]);
    let mode = |n: &str| p.mode(g.find(n).unwrap());
    assert_eq!([mode("ca"), mode("cb"), mode("j")], [Mode::Owned(0), Mode::Owned(1), Mode::Replicated]);
    assert_eq!([mode("q"), mode("d")], [Mode::Shared, Mode::Owned(0)]);
    insta::assert_snapshot!(p.explain(&g));
}

#[test]
fn pullers_through_common_elements_stay_together() {
    let text = "Source -> q :: Queue -> c :: Counter; c -> x :: Sink; c -> y :: Sink; Source -> r :: Queue -> z :: Sink; \
                r -> w :: Sink;";
    let g = graph(text);
    let p = Placement::new(&g, 2, &|_| None, &tasks(&g));
    let worker = |p: &Placement, n: &str| p.task_worker(g.find(n).unwrap()).unwrap();
    assert_eq!(worker(&p, "x"), worker(&p, "y"));
    // There are two sources, one on each worker. The group of x and y goes to worker 0, so this worker has three
    // tasks. Therefore z and w go to worker 1.
    assert_eq!([worker(&p, "x"), worker(&p, "z"), worker(&p, "w")], [0, 1, 1]);
    let p = Placement::new(&g, 2, &|e| (g.name(e) == "y").then_some(1), &tasks(&g));
    assert_eq!([worker(&p, "x"), worker(&p, "y")], [1, 1]);
    let p = Placement::new(&g, 0, &|_| None, &[0, 0, usize::MAX]);
    assert_eq!((p.workers(), p.tasks_of(0)), (1, vec![0]));
}

#[test]
fn elements_of_two_workers_are_locked() {
    let g = graph("a :: Source -> Strip -> m :: Meter -> Discard; b :: Source -> m;");
    let p = place(&g, 2);
    assert_eq!(p.mode(g.find("m").unwrap()), Mode::Locked(0));
    insta::assert_snapshot!(p.explain(&g));
    let wrapped = Placement::new(&g, 2, &|e| (g.name(e) == "b").then_some(5), &tasks(&g));
    assert_eq!(wrapped.task_worker(g.find("b").unwrap()), Some(1));
}

#[test]
fn groups_are_separated_only_for_workers_without_tasks() {
    let text = "Source -> q :: Queue -> c :: Counter; c -> x :: Sink; c -> y :: Sink; c -> z :: Sink;";
    let g = graph(text);
    let workers = |n: usize, home: &dyn Fn(&str) -> Option<usize>| {
        let p = Placement::new(&g, n, &|e| home(g.name(e)), &tasks(&g));
        ["x", "y", "z"].map(|n| p.task_worker(g.find(n).unwrap()).unwrap())
    };
    // The source is on worker 0, so the group of x, y and z goes to worker 1.
    assert_eq!(workers(2, &|_| None), [1, 1, 1]);
    assert_eq!(workers(3, &|_| None), [1, 1, 2]);
    assert_eq!(workers(4, &|_| None), [1, 3, 2]);
    assert_eq!(workers(8, &|_| None), [1, 3, 2]);
    // Tasks with a home worker are not moved.
    assert_eq!(workers(4, &|n| (n == "z").then_some(1)), [3, 2, 1]);
    assert_eq!(workers(4, &|n| ["x", "y", "z"].contains(&n).then_some(1)), [1, 1, 1]);
    let p = Placement::new(&g, 3, &|_| None, &tasks(&g));
    assert!(p.explain(&g).contains("the worker would have no task otherwise"));
}

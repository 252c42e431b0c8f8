// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of which tasks may have several turns at once, and where their packets wait.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Random, graph, random_graph, valid};
use std::fmt::Write as _;

fn found(g: &Graph, timed: bool) -> Quanta {
    let tasks: Vec<usize> = (0..g.len()).filter(|&e| g.spec(e).is_some_and(|s| s.task)).collect();
    quanta(g, &|e| g.spec(e).map_or(Effects::all(), |s| s.effects), &tasks, timed)
}

/// The tasks that may have several turns, the refused tasks with the reasons, and the meetings, by name.
fn names(text: &str, timed: bool) -> (Vec<String>, Vec<String>, Vec<String>) {
    let g = graph(text);
    let q = found(&g, timed);
    let name = |e: usize| g.flat.elements[e].name.clone();
    let refused = q.refused.iter().map(|(e, why)| {
        let about = match *why {
            Refusal::Depends(e) | Refusal::Effects(e) | Refusal::Queue(e) | Refusal::Puller(e) => name(e),
            Refusal::Kind | Refusal::Number => String::new(),
        };
        let reason = format!("{why:?}");
        format!("{} {} {about}", name(*e), reason.split('(').next().unwrap()).trim_end().to_string()
    });
    let refused = refused.collect();
    let meetings = q.meetings.iter().map(|m| format!("{} {:?}", name(m.element), m.meets)).collect();
    (q.tasks.iter().map(|t| name(t.task)).collect(), refused, meetings)
}

#[test]
fn sources_and_tasks_that_pull_get_several_turns() {
    let text = "a, b :: PlainSource; u :: PlainUnqueue; q :: Fifo; o, p :: Ordered;
        a -> o; b -> Plain -> o; o -> q -> u -> p -> Plain;";
    let (tasks, refused, meetings) = names(text, true);
    assert_eq!((tasks, refused), (["a", "b", "u"].map(String::from).to_vec(), vec![]));
    assert_eq!(meetings, ["o Sources", "q Queue", "p Pullers"]);
}

#[test]
fn packets_wait_along_their_way() {
    // Whatever the order of the declarations, `first` comes before `second`.
    let text =
        "second, first :: Ordered; a, b :: PlainSource; a -> first -> Plain -> second -> Plain; b -> second;";
    assert_eq!(names(text, true).2, ["first Sources", "second Sources"]);
    // An element that both kinds of tasks reach waits for those that pull.
    let text = "o :: Ordered; a, b :: PlainSource; a -> Fifo -> PlainUnqueue -> o -> Plain; b -> o;";
    assert_eq!(names(text, true).2[1], "o Pullers");
}

#[test]
fn tasks_are_refused_for_a_reason() {
    for (text, why) in [
        ("a :: PlainSource -> s :: Strip -> Plain", "a Depends s"),
        ("a :: Source -> Plain", "a Depends a"),
        ("a :: PlainSource -> Plain -> s :: PlainPrint -> Plain", "a Effects s"),
        ("a :: PlainSource; a [0] -> Plain; a [1] -> Plain", "a Kind"),
        ("Idle -> Fifo -> s :: Plain -> u :: PlainUnqueue -> Plain", "u Kind"),
        ("f, g :: Fifo; Idle -> f; Idle -> g; f -> [0] u :: PlainPair -> Plain; g -> [1] u", "u Kind"),
        ("Idle -> Fifo -> u :: PlainUnqueue -> q :: Fifo -> v :: PlainUnqueue -> Plain", "u Queue q"),
        (
            "a :: PlainSource -> q :: Fifo -> u :: PlainUnqueue -> s :: Strip -> Plain",
            "u Depends s|a Puller q",
        ),
        ("a :: PlainSource -> q :: Fifo -> Sink", "a Puller q"),
    ] {
        let (_, refused, _) = names(text, true);
        let ours: Vec<&str> = refused.iter().map(String::as_str).filter(|r| why.contains(&r[..2])).collect();
        assert_eq!(ours.join("|"), why, "{text}: {refused:?}");
    }
}

#[test]
fn simulated_time_refuses_readings_of_the_clock() {
    let text = "a :: PlainSource -> t :: Timed -> Plain";
    assert_eq!(names(text, true).0, ["a"]);
    assert_eq!(names(text, false).1, ["a Depends t"]);
}

#[test]
fn the_number_of_tasks_is_limited() {
    let mut text = String::new();
    for i in 0..TASKS + 2 {
        let _ = write!(text, "a{i} :: PlainSource -> Plain;");
    }
    let (tasks, refused, _) = names(&text, true);
    assert_eq!((tasks.len(), refused.len()), (TASKS, 2));
    assert_eq!(refused[0], format!("a{TASKS} Number"));
}

#[test]
fn explanations_name_the_elements() {
    let g = graph("a :: PlainSource -> s :: Strip -> Plain; b :: PlainSource -> Plain");
    let text = found(&g, true).explain(&g);
    let line = |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap().to_string();
    assert!(
        line("a :: PlainSource")
            .ends_with("one by one       what s :: Strip does may depend on more than its packets"),
        "{text}"
    );
    assert!(line("b :: PlainSource").contains("several at once"), "{text}");
}

fn is_queue(g: &Graph, e: usize) -> bool {
    g.spec(e).is_some_and(|s| s.fifo) && g.outputs(e) == 1
}

/// All elements that the packets of a task reach, queues included, found by steps along single connections.
fn reached(g: &Graph, task: usize) -> BTreeSet<usize> {
    let (mut all, mut grown) = (BTreeSet::from([task]), true);
    while grown {
        let before = all.len();
        for (_, c) in valid(g) {
            let is_queue = is_queue(g, c.from.element);
            if all.contains(&c.from.element) && !is_queue {
                all.insert(c.to.element);
            }
        }
        grown = all.len() > before;
    }
    all.remove(&task);
    all
}

#[test]
fn packets_meet_only_what_is_declared() {
    let classes = [
        "PlainSource",
        "PlainSource",
        "PlainUnqueue",
        "PlainUnqueue",
        "Fifo",
        "Fifo",
        "Plain",
        "Ordered",
        "Strip",
        "Timed",
    ];
    let (mut random, mut tasks) = (Random(11), 0);
    for _ in 0..4000 {
        let g = random_graph(&mut random, &classes);
        let q = found(&g, false);
        let fifo = |e: usize| is_queue(&g, e);
        for t in &q.tasks {
            tasks += 1;
            for e in reached(&g, t.task) {
                let spec = g.spec(e).unwrap();
                assert!(fifo(e) || (spec.depends != Depends::Anything && !spec.clock), "{:?}", g.flat);
                let waits = q.meetings.iter().any(|m| m.element == e);
                let wanted = fifo(e) || spec.depends == Depends::Order;
                assert_eq!(waits, wanted, "{:?}", g.flat);
                // A queue is reached by sources only, and what pulls from it has several turns, too.
                let pulled = q.tasks.iter().any(|other| other.queue == Some(e));
                assert!(!fifo(e) || (t.queue.is_none() && pulled), "{:?}", g.flat);
            }
        }
        for m in &q.meetings {
            assert!(q.tasks.iter().any(|t| reached(&g, t.task).contains(&m.element)), "{:?}", g.flat);
        }
    }
    assert!(tasks > 500, "only {tasks} tasks");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that a hot swap to the same configuration is not visible from outside, and that a failed swap leaves no trace.
//! Each class that declares that it takes over state runs together with a twin that is never swapped. Both must behave
//! the same until the end.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bench;
mod cases;

use bench::{Bench, START};
use cases::{CASES, Case, ELSEWHERE};
use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::spec::{ClassSpec, Workers};

const STEPS: i64 = 260;

/// Whether a class takes over state itself. (The router moves the counts of all classes.)
fn is_told_of(spec: &ClassSpec) -> bool {
    !spec.takes_state.is_empty()
}

#[test]
fn every_class_with_state_is_driven() {
    let classes = Registry::new().classes();
    let stateful: Vec<&str> = classes.iter().filter(|c| is_told_of(c)).map(|c| c.name).collect();
    let driven = |name: &str| CASES.iter().any(|c| c.0 == name);
    let forgotten: Vec<_> = stateful.iter().filter(|n| !driven(n) && !ELSEWHERE.contains(n)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    let moves =
        |name: &str| classes.iter().any(|c| c.name == name && (is_told_of(c) || !c.counts.is_empty()));
    let silent: Vec<_> = CASES.iter().map(|c| c.0).filter(|n| !moves(n)).collect();
    assert!(silent.is_empty(), "these take no state: {silent:?}");
}

/// The output of an element in each step, and its handler values at the end.
type Seen = (Vec<Vec<String>>, Vec<(String, String)>);

/// Plays a case, and calls `happens` before step `at`. Returns what was seen.
fn play(case: &Case, at: i64, mut happens: impl FnMut(&mut Bench)) -> Seen {
    let mut bench = Bench::new(case, START);
    for (handler, value) in case.4 {
        bench.write(handler, value);
    }
    let steps = (0..STEPS).map(|n| {
        if n == at {
            happens(&mut bench);
        }
        bench.step(n)
    });
    (steps.collect(), bench.told())
}

/// Returns the first difference in the output of two elements, and all differences in their handler values.
fn differences(a: &Seen, b: &Seen) -> Vec<String> {
    let out = a.0.iter().zip(&b.0).find(|(a, b)| a != b);
    let told = a.1.iter().zip(&b.1).filter(|(a, b)| a != b);
    out.map(|d| format!("{d:?}")).into_iter().chain(told.map(|d| format!("{d:?}"))).collect()
}

/// The steps before which elements are swapped. Step 85 is in a pause, the others are in busy phases.
const MOMENTS: [i64; 4] = [37, 85, 130, 231];

#[test]
fn a_swap_is_not_seen_and_one_that_fails_is_not_either() {
    let mut wrong = Vec::new();
    for case in CASES {
        let (class, random) = (case.0, case.5);
        let twin = play(case, -1, |_| {});
        for at in MOMENTS {
            let there = play(case, at, |old| {
                let mut new = Bench::new(case, old.core.clock().peek());
                new.take(old);
                *old = new;
            });
            let back = play(case, at, |old| {
                let before = old.told();
                let mut new = Bench::new(case, old.core.clock().peek());
                new.take(old);
                old.take(&mut new);
                let after = old.told();
                if before != after {
                    wrong.push(format!("{class}, there and back at {at}: {before:?} {after:?}"));
                }
            });
            if !random {
                wrong.extend(
                    differences(&twin, &there).iter().map(|w| format!("{class}, swapped at {at}: {w}")),
                );
            }
            wrong.extend(
                differences(&twin, &back).iter().map(|w| format!("{class}, swapped and back at {at}: {w}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Creates two replicas of an element. Only the first replica gets packets.
fn two(case: &Case, clock: i64) -> [Bench; 2] {
    let mut site = castanet_element::kit::Site::default();
    [0, 1].map(|i| Bench::replica(case, clock, (i, 2), &mut site))
}

#[test]
fn state_that_workers_share_moves_once() {
    let mut wrong = Vec::new();
    let shares = |case: &&Case| {
        castanet_element::Classes::get(&Registry::new(), case.0)
            .is_some_and(|d| d.spec.workers == Workers::Share)
    };
    for case in CASES.iter().filter(shares) {
        let (class, random) = (case.0, case.5);
        let (mut twin, mut old) = (two(case, START), two(case, START));
        for (handler, value) in case.4 {
            twin[0].write(handler, value);
            old[0].write(handler, value);
        }
        for n in 0..STEPS {
            if n == 130 || n == 170 {
                // In both steps, each new replica takes over the state of each old replica. In step 130, the old
                // replicas take all state back. In step 170, the new replicas replace the old ones.
                let before = old[0].told();
                let mut new = two(case, old[0].core.clock().peek());
                for mine in &mut new {
                    for theirs in &mut old {
                        mine.take_element(theirs);
                    }
                }
                if n == 130 {
                    for mine in &mut old {
                        for theirs in &mut new {
                            mine.take_element(theirs);
                        }
                    }
                } else {
                    new[0].take_supply(&mut old[0]);
                    old = new;
                }
                let after = old[0].told();
                if before != after {
                    wrong.push(format!("{class} in step {n}: {before:?} {after:?}"));
                }
            }
            let (a, b) = (twin[0].step(n), old[0].step(n));
            if a != b && !random {
                wrong.push(format!("{class}: {a:?}\n  {b:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_new_element_that_takes_nothing_over_is_seen() {
    // The cases contain no super-packets, so they cannot show what these classes take over.
    const UNSEEN: &[&str] = &["CompleteOffload"];
    let blind: Vec<_> = CASES
        .iter()
        .filter(|c| !UNSEEN.contains(&c.0))
        .filter(|case| {
            let twin = play(case, -1, |_| {});
            MOMENTS.iter().rev().all(|at| {
                let other = play(case, *at, |old| {
                    let mut new = Bench::new(case, old.core.clock().peek());
                    new.supply = std::mem::take(&mut old.supply);
                    for i in 0..new.supply.0.len() {
                        new.core.set_note(Note::new(2 + i as u32));
                    }
                    *old = new;
                });
                differences(&twin, &other).is_empty()
            })
        })
        .map(|c| c.0)
        .collect();
    assert!(blind.is_empty(), "{blind:?}");
}

/// Plays a case twice: unchanged, and with a swap to the configuration `config` before step `at`. Returns what was seen
/// in each run.
fn changed(class: &str, config: &'static str, at: i64) -> (Seen, Seen) {
    let case = CASES.iter().find(|c| c.0 == class).unwrap();
    let other: Case = (case.0, config, case.2, case.3, case.4, case.5);
    let swapped = play(case, at, |old| {
        let mut new = Bench::new(&other, old.core.clock().peek());
        new.take(old);
        *old = new;
    });
    (play(case, -1, |_| {}), swapped)
}

fn told(seen: &Seen, handler: &str) -> String {
    seen.1.iter().find(|h| h.0 == handler).map_or(String::new(), |h| h.1.clone())
}

/// Counts the packets that left the element in `steps` steps, from step `from` on.
fn out(seen: &Seen, from: i64, steps: i64) -> usize {
    let some = seen.0.iter().skip(from as usize).take(steps as usize);
    some.flatten().filter(|line| !line.contains("left")).count()
}

#[test]
fn a_limit_that_is_moved_counts_what_was_sent_before() {
    for (class, config, at, total) in [
        ("InfiniteSource", "LIMIT 1000, BURST 3", 3, "1000"),
        ("InfiniteSource", "LIMIT 1000, BURST 3", 200, "1000"),
        ("InfiniteSource", "LIMIT 10, BURST 3", 200, "900"),
        ("RandomSource", "40, LIMIT 1000, BURST 3", 3, "1000"),
        ("RandomSource", "40, LIMIT 1000, BURST 3", 200, "1000"),
        ("MemSource", "\"abc\" \"de\" \"f\", LIMIT 802, BURST 2", 200, "802"),
        ("RatedSource", "RATE 500, LIMIT 100", 3, "100"),
        ("RatedSource", "RATE 500, LIMIT 100", 200, "100"),
    ] {
        assert_eq!(told(&changed(class, config, at).1, "count"), total, "{class}({config}) at {at}");
    }
}

#[test]
fn a_swap_to_another_rate_makes_no_burst() {
    for (class, config, most) in [
        ("Shaper", "40", 3),
        ("RatedUnqueue", "40", 3),
        ("RatedUnqueue", "90", 4),
        ("RatedSplitter", "40", 4),
        ("RatedSource", "RATE 400, LIMIT 90", 10),
    ] {
        // The swap is in the middle of a busy phase, when the element has already sent all packets that its rate
        // allows.
        let (twin, seen) = changed(class, config, 150);
        let (before, after) = (out(&twin, 150, 20), out(&seen, 150, 20));
        assert!(after <= most.max(before), "{class}, {config}: {after} in 20 ms, {before} at the old rate");
    }
}

#[test]
fn what_must_not_move_does_not() {
    for (class, config, handler, fresh) in [
        ("ARPQuerier", "1.0.0.8, 2:0:0:0:0:9", "count", "0"),
        ("ARPQuerier", "1.0.0.9, 2:0:0:0:0:8", "count", "0"),
        ("ARPQuerier", "1.0.0.9, 2:0:0:0:0:9, BROADCAST 1.0.0.255", "count", "0"),
    ] {
        let case = CASES.iter().find(|c| c.0 == class).unwrap();
        let other: Case = (case.0, config, case.2, case.3, case.4, case.5);
        let mut checked = false;
        play(case, 150, |old| {
            let before = old.told();
            let mut new = Bench::new(&other, old.core.clock().peek());
            new.take(old);
            let value = |all: &[(String, String)]| all.iter().find(|h| h.0 == handler).map(|h| h.1.clone());
            assert_eq!(value(&new.told()).as_deref(), Some(fresh), "{class}({config})");
            assert_eq!(value(&old.told()), value(&before), "{class}({config}): it stays where it is");
            checked = value(&before).as_deref() != Some(fresh);
        });
        assert!(checked, "{class}({config}): there was something");
    }
}

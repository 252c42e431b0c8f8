// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hot swap to the same configuration is not seen from outside, and one that fails leaves no trace: every class that says that
//! it takes state over is driven beside a twin that nobody swaps, and both must do the same to the end.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bench;
mod cases;

use bench::{Bench, START};
use cases::{CASES, Case, ELSEWHERE};
use castanet_element::prelude::*;
use castanet_element::spec::ClassSpec;
use castanet_elements::Registry;

const STEPS: i64 = 260;

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
    let silent: Vec<_> = CASES.iter().map(|c| c.0).filter(|n| !stateful.contains(n)).collect();
    assert!(silent.is_empty(), "these take no state: {silent:?}");
}

/// What comes out of an element in each step, and what it tells at the end.
type Seen = (Vec<Vec<String>>, Vec<(String, String)>);

/// What is seen of an element to which something happens in a step.
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

/// The first difference between what comes out of two elements, and those in what they tell.
fn differences(a: &Seen, b: &Seen) -> Vec<String> {
    let out = a.0.iter().zip(&b.0).find(|(a, b)| a != b);
    let told = a.1.iter().zip(&b.1).filter(|(a, b)| a != b);
    out.map(|d| format!("{d:?}")).into_iter().chain(told.map(|d| format!("{d:?}"))).collect()
}

/// Moments when there is much to do and when there is nothing.
const MOMENTS: [i64; 4] = [37, 85, 130, 231];

#[test]
fn a_swap_is_not_seen_and_one_that_fails_is_not_either() {
    let mut wrong = Vec::new();
    for case in CASES {
        let (class, random) = (case.0, case.5);
        let twin = play(case, -1, |_| {});
        for at in MOMENTS {
            let there = play(case, at, |old| {
                let mut new = Bench::new(case, old.core.clock.peek());
                new.take(old);
                *old = new;
            });
            let back = play(case, at, |old| {
                let before = old.told();
                let mut new = Bench::new(case, old.core.clock.peek());
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

#[test]
fn a_new_element_that_takes_nothing_over_is_seen() {
    // There are no super-packets in the play.
    const UNSEEN: &[&str] = &["CompleteOffload"];
    let blind: Vec<_> = CASES
        .iter()
        .filter(|c| !UNSEEN.contains(&c.0))
        .filter(|case| {
            let twin = play(case, -1, |_| {});
            MOMENTS.iter().rev().all(|at| {
                let other = play(case, *at, |old| {
                    let mut new = Bench::new(case, old.core.clock.peek());
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

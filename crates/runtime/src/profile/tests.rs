// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the meter with a clock that the test sets, and of the choice of rounds.
#![allow(clippy::unwrap_used)]
use super::*;
use std::cell::Cell;

/// What a reading of the clock costs.
const READING: u64 = 20;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1_000_000) };
}

/// A clock that goes on only when the test says so, and at each reading.
fn clock() -> u64 {
    NOW.set(NOW.get() + READING);
    NOW.get()
}

fn pass(time: u64) {
    NOW.set(NOW.get() + time);
}

#[test]
fn time_belongs_to_the_innermost_element() {
    let meter = Meter::new(3, clock);
    assert_eq!(meter.reading, READING as i64);
    meter.begin();
    pass(5);
    meter.measure(0, || {
        pass(100);
        meter.measure(2, || {
            pass(70);
            meter.count(2, 4);
        });
        pass(9);
        meter.count(0, 1);
    });
    pass(11);
    meter.measure(0, || pass(1000));
    meter.turn_to(3);
    let values: Vec<_> = meter.values().collect();
    assert_eq!(values, [(Some(0), 1109, 1), (Some(2), 70, 4), (None, 16, 0)]);
}

#[test]
fn a_new_profile_begins_at_zero() {
    let meter = Meter::new(1, clock);
    meter.begin();
    meter.measure(0, || pass(40));
    meter.stale.store(true, Ordering::Relaxed);
    assert_eq!(meter.values().count(), 0);
    meter.begin();
    meter.measure(0, || pass(3));
    meter.turn_to(1);
    assert_eq!(meter.values().collect::<Vec<_>>(), [(Some(0), 3, 0)]);
}

#[test]
fn few_rounds_are_measured_in_the_long_run() {
    let mut sampler = Sampler::default();
    let due: Vec<bool> = (0..1_000_000).map(|_| sampler.is_due()).collect();
    assert!(due[0]);
    let number = |rounds: std::ops::Range<usize>| due[rounds].iter().filter(|d| **d).count();
    assert!((10..60).contains(&number(0..100)), "{}", number(0..100));
    let late = number(500_000..1_000_000);
    assert!((1_500..2_500).contains(&late), "{late}");
    // The distances differ.
    let places: Vec<usize> = (500_000..1_000_000).filter(|&i| due[i]).collect();
    let mut distances: Vec<usize> = places.windows(2).map(|w| w[1] - w[0]).collect();
    distances.sort_unstable();
    distances.dedup();
    assert!(distances.len() > 100, "{}", distances.len());
}

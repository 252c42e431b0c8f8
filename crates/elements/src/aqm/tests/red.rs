// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that RED follows its formula at every average length.
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};

/// Returns the probability of a drop, before drops are spread evenly (Floyd and Jacobson 1993, section 4; gentle as in
/// Floyd 2000).
fn formula(average: f64, min: f64, max: f64, max_p: f64, gentle: bool) -> f64 {
    if average <= min {
        0.0
    } else if average <= max {
        max_p * (average - min) / (max - min)
    } else if !gentle || average > 2.0 * max {
        1.0
    } else {
        max_p + (1.0 - max_p) * (average - max) / max
    }
}

/// Mean and variance of the distance from one drop to the next, in packets. Each distance up to 1/p has probability p
/// (Floyd and Jacobson 1993, section 7, method 2). The next greater distance has the remaining probability.
fn gap(p: f64) -> (f64, f64) {
    let whole = (1.0 / p).floor() as u32;
    let moment = |power| {
        let even: f64 = (1..=whole).map(|n| p * f64::from(n).powi(power)).sum();
        even + (1.0 - p * f64::from(whole)) * f64::from(whole + 1).powi(power)
    };
    let mean = moment(1);
    (mean, moment(2) - mean * mean)
}

/// Pushes packets, and returns for each packet whether it was dropped.
fn fates(kit: &mut Kit<Red>, packets: usize, batch: usize) -> Vec<bool> {
    let mut all = Vec::new();
    while all.len() < packets {
        let n = batch.min(packets - all.len());
        let mut dropped = vec![false; n];
        for (port, p) in kit.push(0, (0..n).map(|i| packet(&[i as u8]))) {
            dropped[usize::from(p.data()[0])] = port == 1;
        }
        all.extend(dropped);
    }
    all
}

#[test]
fn drops_follow_the_formula_at_every_average() {
    for (config, gentle) in
        [("10, 40, 0.1", true), ("10, 40, 0.1", false), ("0, 20, 1", true), ("5, 5, 0.02", true)]
    {
        let numbers: Vec<f64> = config.split(", ").map(|n| n.parse().unwrap()).collect();
        let config = format!("{config}, STABILITY 0, GENTLE {gentle}");
        let mut kit = Kit::<Red>::with_ports(&config, 1, 2).unwrap();
        for length in 0..=(2.0 * numbers[1]) as usize + 3 {
            kit.gauge(1).set(length);
            let n = 20_000;
            let dropped = fates(&mut kit, n, 32).iter().filter(|d| **d).count() as f64;
            let p = formula(length as f64, numbers[0], numbers[1], numbers[2], gentle);
            if p == 0.0 {
                assert_eq!(dropped, 0.0, "{config} at {length}");
                continue;
            }
            // The tolerance: four standard deviations of a renewal process, plus the incomplete gaps at both ends.
            let (mean, variance) = gap(p);
            let want = n as f64 / mean;
            let near = 4.0 * (n as f64 * variance / mean.powi(3)).sqrt() + 2.0;
            assert!((dropped - want).abs() <= near, "{config} at {length}: {dropped}, not {want} +- {near}");
        }
    }
}

#[test]
fn packets_between_drops_are_spread_evenly() {
    // The average is 26, so each gap from 1 to 16 has the probability 0.06, and 17 has the rest, 0.04.
    let mut kit = Kit::<Red>::with_ports("10, 42, 0.12, STABILITY 0", 1, 2).unwrap();
    kit.gauge(1).set(26);
    let all = fates(&mut kit, 200_000, 32);
    let places: Vec<usize> = (0..all.len()).filter(|&i| all[i]).collect();
    let mut seen = [0_usize; 18];
    places.windows(2).for_each(|w| seen[w[1] - w[0]] += 1);
    let total = (places.len() - 1) as f64;
    let want = |n| if n == 17 { 0.04 * total } else { 0.06 * total };
    let chi: f64 = (1..18).map(|n| (seen[n] as f64 - want(n)).powi(2) / want(n)).sum();
    // Chi-squared with 16 degrees of freedom: a value above 39.3 has the probability 0.001.
    assert!(seen[0] == 0 && chi < 39.3, "{chi} {seen:?}");
}

#[test]
fn the_average_is_exact_and_the_batch_size_does_not_matter() {
    let mut runs = Vec::new();
    for batch in [1, 3, 32, 256] {
        let mut kit = Kit::<Red>::with_ports("5, 50, 0.3", 1, 2).unwrap();
        let (mut random, mut want, mut now, mut run) = (Random::new(2, "red"), 0.0_f64, 0_i64, Vec::new());
        for _ in 0..60 {
            let length = random.below(90).saturating_sub(10) as usize;
            kit.gauge(1).set(length);
            now += random.below(100_000_000) as i64;
            kit.at(now);
            let idle = random.below(3) == 0;
            run.extend(fates(&mut kit, 256, batch));
            (0..256).for_each(|_| want += (length as f64 - want) / 16.0);
            let got: f64 = kit.read("avg_queue_size").unwrap().parse().unwrap();
            // The time affects the average only while the queue is empty.
            assert!((got - want).abs() < 0.0006 || length == 0, "{got} {want}");
            want = got;
            if idle {
                now += 200_000_000;
                kit.at(now);
                kit.gauge(1).set(0);
                run.extend(fates(&mut kit, 1, 1));
                want *= 0.9375_f64.powi(10);
                let got: f64 = kit.read("avg_queue_size").unwrap().parse().unwrap();
                assert!((got - want).abs() < 0.0011, "{got} {want}");
                want = got;
            }
        }
        assert!(run.iter().filter(|d| **d).count() > 1000);
        runs.push(run);
    }
    assert!(runs.iter().all(|r| *r == runs[0]));
}

#[test]
fn what_is_pulled_comes_from_behind_what_is_dropped() {
    let run = |n| {
        let mut kit = Kit::<Red>::with_ports("0, 10, 0.5, STABILITY 0", 1, 2).unwrap();
        kit.gauge(1).set(10);
        (0..250).for_each(|i| kit.supply(0, packet(&[i])));
        let mut got = Vec::new();
        loop {
            let some = kit.pull(0, n);
            if some.is_empty() {
                break;
            }
            got.extend(some.iter().map(|p| p.data()[0]));
        }
        let drops: usize = kit.read("drops").unwrap().parse().unwrap();
        assert_eq!(got.len() + drops, 250);
        // The next drop is one or two packets away, with equal chances.
        assert!((140..195).contains(&drops), "{drops}");
        got
    };
    for n in [2, 3, 32, 256] {
        assert_eq!(run(n), run(1));
    }
}

#[test]
fn drops_are_counted_and_leave_by_output_1() {
    for outputs in [1, 2] {
        let mut kit = Kit::<Red>::with_ports("1, 2, 1, STABILITY 0", 1, outputs).unwrap();
        kit.gauge(1).set(100);
        let out = kit.push(0, [packet(b"a"), packet(b"b")]);
        assert!(out.len() == if outputs == 2 { 2 } else { 0 } && out.iter().all(|o| o.0 == 1));
        assert_eq!(kit.dropped(Reason::EarlyDrop), if outputs == 2 { 0 } else { 2 });
        assert_eq!(kit.read("stats").unwrap(), "100 current queue\n100 avg queue\n2 drops\n");
    }
}

#[test]
fn handlers_and_errors() {
    let mut kit = Kit::<Red>::new("5, 50, 0.02").unwrap();
    let values = ["min_thresh", "max_thresh", "max_p", "avg_queue_size", "drops"];
    assert_eq!(values.map(|h| kit.read(h).unwrap()), ["5", "50", "0.02", "0", "0"]);
    assert_eq!(kit.read("stats").unwrap(), "0 current queue\n0 avg queue\n0 drops\n");
    for (handler, value) in [("min_thresh", "60"), ("max_thresh", "100"), ("max_p", "0.5")] {
        kit.write(handler, value).unwrap();
        assert_eq!(kit.read(handler).unwrap(), value);
    }
    for (handler, value) in [("min_thresh", "-1"), ("max_thresh", "x"), ("max_p", "1.01"), ("max_p", "")] {
        assert!(kit.write(handler, value).is_err(), "{handler} {value}");
    }
    let config = kit.read("config").unwrap();
    assert_eq!(config, "60, 100, 0.5, STABILITY 4");
    assert!(Kit::<Red>::new(&config).is_ok());
    let mut names = Names::new();
    names.define_element("q", 2, "Queue");
    let mut named = Kit::<Red>::with_names("5, 50, 0.02, QUEUES q", 1, 1, names.clone()).unwrap();
    named.gauge(2).set(7);
    assert!(named.read("stats").unwrap().starts_with("7 current"));
    names.define_element("d", 9, "Discard");
    for (config, error) in [
        ("5, 50", "MAX_P: required argument missing"),
        ("5, 50, -0.1", "MAX_P: must lie between 0 and 1"),
        ("51, 50, 0.1", "MIN_THRESH: must not be above MAX_THRESH"),
        ("5, 50, 0.1, STABILITY 33", "STABILITY: must be at most 32"),
    ] {
        assert_eq!(Kit::<Red>::new(config).err().unwrap(), [error], "{config}");
    }
    let error = Kit::<Red>::with_names("5, 50, 0.1, QUEUES q d", 1, 1, names).err().unwrap();
    assert!(error[0].starts_with("QUEUES: ") && error[0].ends_with("does not store packets"), "{error:?}");
}

#[test]
fn hot_swap_keeps_the_average_and_not_the_thresholds() {
    let (mut old, mut new) =
        (Kit::<Red>::new("5, 50, 0.02").unwrap(), Kit::<Red>::new("6, 60, 0.03").unwrap());
    old.gauge(1).set(1000);
    old.push(0, (0..99).map(|_| packet(b"x")));
    let found = |kit: &mut Kit<Red>| ["avg_queue_size", "drops"].map(|h| kit.read(h).unwrap());
    let before = found(&mut old);
    new.take_state_of(&mut old).unwrap();
    assert_eq!(found(&mut new), before);
    assert_eq!((new.read("max_p").unwrap(), new.read("min_thresh").unwrap()), ("0.03".into(), "6".into()));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that nobody can tell whether paths at user level are machine code: routers that receive bursts of frames send the same
//! frames, print the same messages and count the same.

use super::graphs::Graph;
use super::{Seen, Timed, all, classes, conf, difference, finish, try_start};
use crate::frames::Random;
use crate::world::World;

/// What a run with compiled paths shows, and the packets that were on the paths: moved by code, and processed by elements.
type Run = (Seen, (u64, u64));

fn run(text: &str, frames: &Timed, compiled: bool) -> Result<Run, String> {
    let world = World::with_bursts(compiled);
    for (at, frame, device) in frames {
        world.receive(device, *at, frame.clone());
    }
    let (router, log) = try_start(text, &world)?;
    let seen = finish(router, &log, &world);
    let number = |line: &str, at: usize| line.split('\t').nth(at).map_or(0, |n| n.parse::<u64>().unwrap());
    let sum = |at| seen.paths.lines().map(|l| number(l, at)).sum::<u64>();
    let sums = (sum(0), sum(1));
    Ok((seen, sums))
}

/// Runs a configuration with and without compiled paths. Returns the packets on the paths. None if the configuration is not valid.
fn compare(text: &str, frames: &Timed) -> Option<(u64, u64)> {
    let (plain, none) = run(text, frames, false).ok()?;
    let (seen, moved) = run(text, frames, true).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(none, (0, 0));
    // The batch size is 1, so that the order of everything can be compared. `tests/oracle.rs` has batches.
    if let Some(how) = difference(&seen, &plain) {
        panic!("{text}\n{how}");
    }
    Some(moved)
}

/// Frames in bursts of up to 40.
fn bursts(random: &mut Random, n: usize, mut frame: impl FnMut(&mut Random) -> (Vec<u8>, String)) -> Timed {
    let mut at = 1;
    (0..n)
        .map(|_| {
            at += i64::from(random.one_in(40));
            let (frame, device) = frame(random);
            (at, frame, device)
        })
        .collect()
}

#[test]
fn each_class_does_the_same_in_machine_code() {
    let mut sum = (0, 0);
    for (i, text) in all().chain(classes::TIMED.iter().copied()).enumerate() {
        let mut random = Random::new(i as u64);
        let frames = bursts(&mut random, 1500, |random| {
            let device = if random.one_in(8) { "eth1" } else { "eth0" };
            (random.frame(), device.to_string())
        });
        let (moved, alone) = compare(text, &frames).unwrap_or_else(|| panic!("refused: {text}"));
        sum = (sum.0 + moved, sum.1 + alone);
    }
    println!("{} packets moved by machine code, {} processed by elements", sum.0, sum.1);
    assert!(sum.0 > 50_000, "{sum:?}");
}

#[test]
fn random_configurations_do_the_same_in_machine_code() {
    let (mut ran, mut sum) = (0, (0, 0));
    for seed in 0..300 {
        let text = Graph::random(seed, 400).text();
        let mut random = Random::new(seed);
        let frames = bursts(&mut random, 400, |random| {
            let device = u8::from(random.one_in(6));
            (random.mutated_for(device), format!("eth{device}"))
        });
        if let Some((moved, alone)) = compare(&text, &frames) {
            ran += 1;
            sum = (sum.0 + moved, sum.1 + alone);
        }
    }
    println!(
        "{ran} configurations, {} packets moved by machine code, {} processed by elements",
        sum.0, sum.1
    );
    assert!(ran > 280 && sum.0 > 30_000, "{ran} {sum:?}");
}

#[test]
fn the_configurations_of_the_project_do_the_same_in_machine_code() {
    let mut sum = (0, 0);
    for (i, configuration) in conf::CONFIGURATIONS.iter().enumerate() {
        let &(name, .., net, devices) = configuration;
        let mut random = Random::of_net(i as u64, net);
        let frames = bursts(&mut random, 1500, |random| {
            let device = random.of(devices);
            let number = device.as_bytes().last().map_or(0, |c| c & 15);
            (random.mutated_for(number), device.to_string())
        });
        let text = conf::text(configuration, 1500);
        let (moved, alone) = compare(&text, &frames).unwrap_or_else(|| panic!("refused: {name}"));
        println!("{name}: {moved} packets moved by machine code, {alone} processed by elements");
        sum = (sum.0 + moved, sum.1 + alone);
    }
    assert!(sum.0 > 2000, "{sum:?}");
}

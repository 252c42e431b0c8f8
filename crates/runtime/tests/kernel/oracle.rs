// SPDX-License-Identifier: MIT OR Apache-2.0
//! The naive interpreter as the oracle of the programs in the kernel: it moves one packet at a time, at user level.

use crate::frames::Random;
use crate::graphs::Graph;
use crate::{Outcome, Seen, Timed, World, all, classes, difference, finish, options, try_start};
use castanet_runtime::naive::Naive;
use castanet_runtime::swap::Loaded;
use castanet_testkit::Log;
use std::sync::Arc;

fn world_of(frames: &Timed) -> World {
    let world = World::default();
    frames.iter().for_each(|(at, frame, device)| world.receive(device, *at, frame.clone()));
    world
}

/// Runs a configuration in the naive interpreter. Reads the handlers that `like` has read.
fn naive(text: &str, frames: &Timed, like: &Seen) -> Seen {
    let (world, log) = (world_of(frames), Log::default());
    let (loaded, _) = Loaded::from_text("config", text.as_bytes(), &[], crate::world::classes())
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let Loaded { graph, classes, sources } = loaded;
    let mut naive = Naive::new(graph, classes, &sources, options(&world, &log))
        .unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
    assert!(naive.run_until_idle(100_000_000).unwrap(), "{text}: it does not end");
    // In the order of `finish`: reading some handlers of Script runs it.
    let mut names: Vec<_> = like
        .handlers
        .keys()
        .filter_map(|name| {
            let (element, handler) = name.rsplit_once('.')?;
            Some((naive.find(element)?, name, handler))
        })
        .collect();
    names.sort_by_key(|n| n.0);
    let read = |(e, name, handler): (u32, &String, &str)| Some((name.clone(), naive.read(e, handler).ok()?));
    let handlers = names.into_iter().filter_map(read).collect();
    let ledger = naive.ledger().to_string();
    Seen { sent: world.sent(), messages: log.lines(), handlers, ledger, paths: String::new() }
}

/// Runs a configuration with programs in the interpreter of eBPF, and in the naive interpreter, and compares.
fn compare(text: &str, frames: &Timed) -> Outcome {
    let world = world_of(frames);
    let (mut router, log) = match try_start(text, &world) {
        Ok(started) => started,
        Err(why) => return Outcome::Refused(why),
    };
    if let Err(why) = router.start_in_kernel(Arc::new(world.clone())) {
        return Outcome::Differs(why);
    }
    let mut seen = finish(router, &log, &world);
    // The naive interpreter does not say why it ends.
    seen.messages.retain(|m| !m.starts_with("simulated time cannot advance"));
    match difference(&seen, &naive(text, frames, &seen)) {
        Some(how) => Outcome::Differs(how),
        None => Outcome::Same(world),
    }
}

#[test]
fn each_class_does_the_same_as_in_the_naive_interpreter() {
    for (i, text) in all().chain(classes::TIMED.iter().copied()).enumerate() {
        let mut random = Random::new(500 + i as u64);
        // No frame comes when scripts write handlers, which they do each 100 ms.
        let frames = (1..300)
            .map(|i| (i + (i - 1) / 99, random.frame(), format!("eth{}", u8::from(random.one_in(8)))))
            .collect();
        // Both end at the same time, on which the age of entries depends.
        let text = &format!("{text} Script(wait 1s, stop);");
        if let Outcome::Refused(why) | Outcome::Differs(why) = compare(text, &frames) {
            panic!("{text}\n{why}");
        }
    }
}

#[test]
fn random_configurations_do_the_same_as_in_the_naive_interpreter() {
    let (mut ran, mut gone) = (0, 0);
    for seed in 10_000..10_060 {
        let text = Graph::random(seed, 200).text();
        let mut random = Random::new(seed);
        let frames = (1..200)
            .map(|at| {
                let device = u8::from(random.one_in(6));
                (at, random.mutated_for(device), format!("eth{device}"))
            })
            .collect();
        match compare(&text, &frames) {
            Outcome::Refused(_) => {}
            Outcome::Same(world) => (ran, gone) = (ran + 1, gone + world.ways().1),
            Outcome::Differs(how) => panic!("seed {seed}: {how}\n{text}"),
        }
    }
    println!("{ran} configurations, {gone} frames in the kernel");
    assert!(ran > 50 && gone > 1000);
}

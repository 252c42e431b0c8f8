// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures an idle router. `.ci/long` runs these tests, because they need an otherwise idle machine.

use crate::net::{Net, both, ours};
use castanet_lab::{Lab, RouterKind};
use std::time::Duration;

fn alone(kind: RouterKind) -> Option<Net> {
    let lab = Lab::alone().inspect_err(|why| println!("SKIP: {why}")).ok()?;
    Some(Net::within(lab, kind, (1500, 1500), &[]))
}

#[test]
#[ignore = "measures time; run by .ci/long"]
fn an_idle_router_uses_no_processor() {
    let Some(net) = alone(ours()) else { return };
    net.a.ping(3, "10.0.1.2");
    let (before, asleep) = (net.r.cpu(), net.r.sleeps());
    std::thread::sleep(Duration::from_secs(2));
    // Frequent wake-ups with little work would not show in CPU ticks, so wake-ups are counted. The router has
    // slept before, so the count is not zero.
    assert!(asleep.is_some_and(|n| n > 0));
    let woken = net.r.sleeps().zip(asleep).map(|(after, before)| after - before);
    assert!(woken.is_some_and(|n| n <= 4), "woken {woken:?} times in two seconds");
    let used = net.r.cpu().zip(before).map(|(after, before)| after - before);
    // A single clock tick may be charged to any process.
    assert!(used.is_some_and(|t| t <= Duration::from_millis(10)), "{used:?} in two seconds");
}

/// Measures the median round trip of pings on an idle network with filled neighbour caches, in milliseconds.
fn round_trip(net: &Net) -> f64 {
    net.a.ping(3, "10.0.1.2");
    let text = net.a.run("ping -c 61 -i 0.01 -W 60 10.0.1.2").good();
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    assert_eq!(times.len(), 61, "{text}");
    times.sort_by(f64::total_cmp);
    times[30]
}

#[test]
#[ignore = "measures time; run by .ci/long"]
fn an_idle_ping_takes_at_most_three_times_the_kernels() {
    let mut all = [[0.0; 5]; 2];
    // The routers alternate, so that other load affects both.
    for round in 0..5 {
        for (times, kind) in all.iter_mut().zip(both()) {
            let Some(net) = alone(kind) else { return };
            times[round] = round_trip(&net);
        }
    }
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [kernel, castanet] = all.map(|times| times[2]);
    println!("idle ping: kernel {kernel} ms, Castanet {castanet} ms");
    // An unoptimised build is slower, so it may take 1 ms more. A wait for a timer or for a full block of a
    // receive ring would take longer than that, so the test would still detect it.
    let slack = if cfg!(debug_assertions) { 1.0 } else { 0.0 };
    assert!(castanet <= 3.0 * kernel + slack, "kernel {kernel} ms, Castanet {castanet} ms");
}

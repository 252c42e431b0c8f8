// SPDX-License-Identifier: MIT OR Apache-2.0
//! A router with little to do. These measure, so each has the machine for itself.

use crate::net::{Net, both, ours};
use castanet_lab::{Kind, Lab};
use std::time::Duration;

fn alone(kind: Kind) -> Option<Net> {
    let lab = Lab::alone().inspect_err(|why| println!("SKIP: {why}")).ok()?;
    Some(Net::within(lab, kind, (1500, 1500), &[]))
}

#[test]
fn an_idle_router_uses_no_processor() {
    let Some(net) = alone(ours()) else { return };
    net.a.run("ping -c 3 -i 0.02 -W 2 10.0.1.2").good();
    let (before, asleep) = (net.r.cpu(), net.r.sleeps());
    std::thread::sleep(Duration::from_secs(2));
    // Who wakes often and does little would not be seen in ticks. It has slept before, so the number is one.
    assert!(asleep.is_some_and(|n| n > 0));
    let woken = net.r.sleeps().zip(asleep).map(|(after, before)| after - before);
    assert!(woken.is_some_and(|n| n <= 4), "woken {woken:?} times in two seconds");
    let used = net.r.cpu().zip(before).map(|(after, before)| after - before);
    // One tick of the clock may fall on anybody.
    assert!(used.is_some_and(|t| t <= Duration::from_millis(10)), "{used:?} in two seconds");
}

/// The median round trip of pings on an idle network whose hosts know each other, in milliseconds.
fn round_trip(net: &Net) -> f64 {
    net.a.run("ping -c 3 -i 0.02 -W 2 10.0.1.2").good();
    let text = net.a.run("ping -c 61 -i 0.01 -W 2 10.0.1.2").good();
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    assert_eq!(times.len(), 61, "{text}");
    times.sort_by(f64::total_cmp);
    times[30]
}

#[test]
fn an_idle_ping_takes_at_most_three_times_the_kernels() {
    let mut all = [[0.0; 5]; 2];
    // By turns, so that what else the machine does hits both.
    for round in 0..5 {
        for (times, kind) in all.iter_mut().zip(both()) {
            let Some(net) = alone(kind) else { return };
            times[round] = round_trip(&net);
        }
    }
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [kernel, castanet] = all.map(|times| times[2]);
    println!("idle ping: kernel {kernel} ms, Castanet {castanet} ms");
    // A build without optimisation computes for longer, but waits no longer: for no timer, no block to fill.
    let slack = if cfg!(debug_assertions) { 1.0 } else { 0.0 };
    assert!(castanet <= 3.0 * kernel + slack, "kernel {kernel} ms, Castanet {castanet} ms");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates that the kernel and user level measure together, with pauses of all lengths between packets.

use crate::frames::Random;
use crate::swaps::NEXT;
use crate::{Outcome, Timed, World, try_compare};

/// Frames in bursts. Some come up before the meter.
fn frames(seed: u64, number: usize) -> Timed {
    let mut random = Random::new(seed);
    let mut now = 1;
    (0..number)
        .map(|_| {
            now += match random.below(30) {
                0 => 1 + random.below(20) as i64,
                1 => random.below(1000) as i64,
                2 if random.one_in(5) => random.below(100_000) as i64,
                n => n as i64 / 12,
            };
            let length = 60 + random.below(1400) as usize;
            (now, vec![2; length], format!("eth{}", u8::from(random.one_in(4))))
        })
        .collect()
}

#[test]
fn rates_are_those_of_user_level() {
    let came_up = "FromDevice(eth1) -> Counter(COUNT_CALL 1000000 stop) ->";
    for (text, seed) in [
        (
            "m :: Meter(10, 100, 600) -> Observe(a); m [1] -> Observe(b); m [2] -> Observe(c); m [3] -> Observe(d);",
            1,
        ),
        ("m :: Meter(8, 250, 1000) -> Discard; m [1] -> Discard; m [2] -> Discard; m [3] -> Discard;", 2),
        (
            "m :: BandwidthMeter(500, 600, 4Mbps) -> Observe(a); m [1] -> Observe(b); m [2] -> Discard; m [3] -> Observe(d);",
            3,
        ),
        ("m :: AverageCounter -> Observe(a);", 4),
        ("m :: AverageCounter(3) -> Discard;", 5),
    ] {
        for up in [came_up, "FromDevice(eth1) ->"] {
            for swaps in [false, true] {
                let text = format!("FromDevice(eth0) -> {text} {up} m;");
                let swap = format!("Script(wait 700100us, write hotconfig 1); {NEXT}\n{text}");
                let all = if swaps { format!("{text} {swap}") } else { text.clone() };
                match try_compare(&all, &frames(seed, 1000), World::default) {
                    Outcome::Same(world) => assert!(world.ways().1 > 0 || text.contains("Observe"), "{text}"),
                    Outcome::Refused(why) | Outcome::Differs(why) => panic!("{all}\n{why}"),
                }
            }
        }
    }
}

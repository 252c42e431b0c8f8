// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workers of an idle router sleep. In simulated time, an idle router can be made to stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_testkit::{FEW_ROUNDS, real, rounds_while_idle, router, simulated, watched};

#[test]
fn an_idle_router_sleeps() {
    // Every task sleeps: sources wait for free space in a queue or for a timer, or have reached their limit;
    // pullers wait for packets.
    let text = "InfiniteSource(LIMIT 3) -> Discard;
        InfiniteSource -> full :: Queue(5) -> Discard(ACTIVE false);
        TimedSource(3600) -> Queue -> Unqueue -> Discard;
        TimedSource(3600) -> a :: Queue; a -> [0] r :: RoundRobinSched; b :: Queue -> [1] r; Idle -> b;
        r -> Unqueue -> Discard;";
    for workers in [1, 2] {
        let rounds = rounds_while_idle(&mut router(text, real(workers).0));
        assert!((1..=FEW_ROUNDS).contains(&rounds), "{workers} workers made {rounds} rounds while idle");
    }
}

#[test]
fn a_router_that_polls_is_told_apart() {
    // SimpleQueue has no notifier, so its puller polls.
    let mut r = router("Idle -> SimpleQueue -> Unqueue -> Discard;", real(1).0);
    let shared = r.shared().clone();
    let watch = {
        let shared = shared.clone();
        std::thread::spawn(move || {
            while shared.rounds() <= FEW_ROUNDS {
                std::thread::yield_now();
            }
            shared.end();
        })
    };
    r.run().unwrap();
    watch.join().unwrap();
    assert!(shared.rounds() > FEW_ROUNDS);
}

#[test]
fn simulated_time_stops_where_nothing_can_happen() {
    let messages = watched(|| {
        let (options, log) = simulated(32);
        let mut r = router("Idle -> Queue -> Unqueue -> Discard;", options);
        r.running().stop_when_idle();
        r.run().unwrap();
        log.lines()
    });
    let told = "simulated time cannot advance: no task is scheduled and no timer is set; stopping";
    assert_eq!(messages, [told]);
}

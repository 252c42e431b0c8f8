// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used, clippy::panic)]
use crate::{Options, Router};
use castanet_classes::Registry;
use castanet_element::Clock;
use parking_lot::Mutex;
use std::sync::Arc;

mod links;

/// The messages of a run.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn router_with(text: &str, options: Options) -> Router {
    Router::from_text(text, Arc::new(Registry::new()), options).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn simulated(batch: usize) -> (Options, Log) {
    let log = Log::default();
    let to = log.clone();
    let printer = Box::new(move |t: &str| to.lock().push(t.to_string()));
    (
        Options { batch, printer, clock: Clock::simulated(1_000_000_000_000_000_000), ..Options::default() },
        log,
    )
}

fn run(text: &str, batch: usize) -> (Router, Vec<String>) {
    let (options, log) = simulated(batch);
    let mut r = router_with(text, options);
    r.run().unwrap();
    assert_eq!(r.waiting(), 0);
    let lines = log.lock().clone();
    (r, lines)
}

fn value(r: &mut Router, element: &str, handler: &str) -> String {
    let e = r.find(element);
    assert!(e.is_some(), "{element}");
    r.read(e, handler, "").unwrap()
}

#[test]
fn packets_go_through_chains_and_queues() {
    for batch in [1, 2, 3, 32, 256] {
        let text =
            "InfiniteSource(LIMIT 1000, BURST 7, STOP true) -> a :: Counter -> Null -> q :: Queue(2000)
            -> u :: Unqueue -> b :: Counter -> d :: Discard;";
        let (mut r, _) = run(text, batch);
        assert_eq!(value(&mut r, "a", "count"), "1000", "batch {batch}");
        let held: u64 = value(&mut r, "q", "length").parse().unwrap();
        let out: u64 = value(&mut r, "d", "count").parse().unwrap();
        assert_eq!(held + out, 1000);
    }
}

#[test]
fn tees_keep_order_and_count() {
    let text =
        "s :: InfiniteSource(LIMIT 10, STOP true) -> t :: Tee; t [0] -> Print(a, CONTENTS NONE) -> Discard;
        t [1] -> Print(b, CONTENTS NONE) -> Discard;";
    let (_, log) = run(text, 32);
    let letters: String = log.iter().map(|l| &l[..1]).collect();
    assert_eq!(letters, "ab".repeat(10), "two elements with effects: one packet at a time");
}

#[test]
fn packet_by_packet_is_depth_first_even_where_one_becomes_several() {
    // 68 bytes of IP become two fragments at an MTU of 60.
    let text = "InfiniteSource(DATA \\<45000044 00010000 40110000 01000001 02000002>, LENGTH 68, LIMIT 2, STOP true)
        -> MarkIPHeader -> IPFragmenter(60) -> Print(a, CONTENTS NONE) -> Print(b, CONTENTS NONE) -> Discard;";
    let (_, log) = run(text, 32);
    let letters: String = log.iter().map(|l| &l[..1]).collect();
    assert_eq!(letters, "ab".repeat(4));
}

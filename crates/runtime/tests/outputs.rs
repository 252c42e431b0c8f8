// SPDX-License-Identifier: MIT OR Apache-2.0
//! Order and completeness of the packets that one element emits: to many outputs, and in long bursts.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_element::element;
use castanet_element::prelude::*;
use castanet_testkit::*;
use std::fmt::Write as _;

const BATCHES: [usize; 5] = [1, 2, 3, 32, 256];
/// Annotation that holds the source of packets of [`Numbers`](classes::Numbers).
const SOURCE: usize = 18;

/// Consumes packets, and counts how many of the same source arrive in a row.
#[derive(Class)]
#[class(name = "Runs", ports = "1/0", processing = "h/a", packets = "any/", workers = exclusive, handlers)]
#[class(drops(Consumed), ends(Consumed))]
struct Runs {
    runs: Vec<(u8, usize)>,
}

impl Element for Runs {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter() {
            let source = p.anno_u8(SOURCE);
            match self.runs.last_mut().filter(|last| last.0 == source) {
                Some(last) => last.1 += 1,
                None => self.runs.push((source, 1)),
            }
        }
        cx.drop_all(batch, Reason::Consumed);
    }
}

#[handlers]
impl Runs {
    /// The sources, and how many of their packets arrived in a row.
    #[read]
    fn runs(&self) -> String {
        self.runs.iter().map(|(s, n)| format!("{s}:{n}")).collect::<Vec<_>>().join(" ")
    }
}

fn finished(text: &str, batch: usize) -> castanet_runtime::Router {
    let (options, _) = simulated(batch);
    let mut r =
        try_router_with(text, options, |r| r.add(element::<Runs>())).unwrap_or_else(|e| panic!("{e}"));
    r.run().unwrap();
    assert_eq!(r.waiting(), 0, "batch {batch}: {text}");
    r
}

#[test]
fn tasks_take_turns_in_long_bursts() {
    for batch in BATCHES {
        // A burst is split after 16384 packets. Its rest follows after the turns of the other tasks. Each case: the
        // packets in one burst of source 1 and of source 2, and the runs that arrive (SOURCE:PACKETS).
        for (first, second, runs) in [
            (16_384, 5, "1:16384 2:5"),
            (16_385, 5, "1:16384 2:5 1:1"),
            (40_000, 20_000, "1:16384 2:16384 1:16384 2:3616 1:7232"),
        ] {
            let text = format!(
                "Numbers(1, {first}, {first}) -> r :: Runs; Numbers(2, {second}, {second}) -> r; Quit(1);"
            );
            let mut r = finished(&text, batch);
            assert_eq!(value(&mut r, "r", "runs"), runs, "batch {batch}");
        }
    }
}

#[test]
fn timers_come_after_a_number_of_turns() {
    // All tasks together have 128 turns before the run loop checks the timers. The timer of Quit ends the run.
    for batch in BATCHES {
        for (sources, burst, each) in [(2, 1, 64), (2, 100, 6_400), (4, 3, 96)] {
            let mut text = String::from("Quit(0);\n");
            (0..sources).for_each(|s| {
                writeln!(text, "InfiniteSource(BURST {burst}) -> c{s} :: Counter -> Discard;").unwrap();
            });
            let mut r = finished(&text, batch);
            for s in 0..sources {
                assert_eq!(
                    number(&mut r, &format!("c{s}"), "count"),
                    each,
                    "batch {batch}, {sources}, {burst}"
                );
            }
        }
    }
}

#[test]
fn elements_may_have_more_outputs_than_bits() {
    let outputs = 70_usize;
    for batch in BATCHES {
        for port in [0, 1, 62, 63, 64, 69] {
            let mut text = format!("Numbers(1, 10, 5) -> s :: Switch({port}); Quit(1);\n");
            (0..outputs).for_each(|o| writeln!(text, "s [{o}] -> c{o} :: Counter -> Discard;").unwrap());
            let mut r = finished(&text, batch);
            for o in 0..outputs {
                let want = if o == port { 10 } else { 0 };
                assert_eq!(number(&mut r, &format!("c{o}"), "count"), want, "batch {batch}, {port}, {o}");
            }
        }
        // Packets for several outputs: those for output 0 go first.
        let mut text = String::from("Numbers(1, 2, 2) -> t :: Tee; Quit(1);\n");
        (0..outputs).for_each(|o| writeln!(text, "t [{o}] -> Stamp({o}) -> r;").unwrap());
        let mut r = finished(&format!("r :: Runs; {text}"), batch);
        let runs: Vec<String> = (0..outputs).map(|o| format!("{o}:2")).collect();
        let singly: Vec<String> = (0..2 * outputs).map(|o| format!("{}:1", o % outputs)).collect();
        let got = value(&mut r, "r", "runs");
        assert!(got == runs.join(" ") || got == singly.join(" "), "batch {batch}: {got}");
    }
}

#[test]
fn copies_reach_their_end_before_the_packet_goes_on_in_its_chain() {
    // Both outputs of `c` lead to elements with outside effects, so packets move one by one. After a Tee, a packet
    // enters the chain as a batch of one. Directly after a source, it enters without a batch.
    for (source, batch) in
        ["", "-> t :: Tee(2)", "-> Queue -> Unqueue"].iter().flat_map(|s| BATCHES.map(|b| (s, b)))
    {
        let other = if source.contains('2') { "t [1] -> Discard;" } else { "" };
        let text = format!(
            "Numbers(1, 6, 3) {source} -> c :: Copy(1, 0) -> Say(1) -> Mark(1) -> Discard; {other} c [1] -> Say(2) -> Discard; Quit(1);"
        );
        let (_, log) = run(&text, batch);
        let order: Vec<&str> = log.iter().filter_map(|l| l.split(' ').nth(1)).collect();
        assert_eq!(order, ["2", "1"].repeat(6), "{source}, batch {batch}");
    }
}

#[test]
fn switches_flood_the_highest_port_first() {
    let text = "s :: EtherSwitch; t :: ListenEtherSwitch; \
        InfiniteSource(DATA \\<020000000009 020000000001 0800>, LIMIT 2, BURST 2, STOP true) -> u :: Tee -> [1] s; \
        u [1] -> [0] t; Idle -> [0] s; Idle -> [2] s; Idle -> [1] t; \
        s [0] -> Print(s0, 0) -> Discard; s [1] -> Print(s1, 0) -> Discard; s [2] -> Print(s2, 0) -> Discard; \
        t [0] -> Print(t0, 0) -> Discard; t [1] -> Print(t1, 0) -> Discard; t [2] -> Print(t2, 0) -> Discard;";
    let want = ["s2", "s0", "t2", "t1", "s2", "s0", "t2", "t1"].map(|port| format!("{port}:   14"));
    for batch in BATCHES {
        assert_eq!(run(text, batch).1, want, "batch {batch}");
    }
    let (options, log) = simulated(1);
    assert!(try_naive(text, options).unwrap().run_until_idle(1000).unwrap());
    assert_eq!(log.lines(), want);
}

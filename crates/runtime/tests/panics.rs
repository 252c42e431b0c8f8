// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that panic: the router names them, counts the packets that they had, and continues as `OnPanic`
//! says.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::remote::Remote;
use castanet_element::{CallError, action, element};
use castanet_runtime::{OnPanic, Options, Router};
use castanet_testkit::*;

/// Panics on every Nth packet.
#[derive(Class)]
#[class(name = "FaultyAction", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
struct FaultyAction {
    args: Nth,
    /// Packets so far.
    #[count(unit = "packets")]
    seen: Count,
}

/// Arguments of faulty elements.
#[derive(Args)]
struct Nth {
    /// The element panics on every packet whose number is a multiple of this.
    n: u64,
}

impl Action for FaultyAction {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        self.seen.add(1);
        assert!(!self.seen.get().is_multiple_of(self.args.n), "over a packet");
        Verdict::Next
    }
}

/// Panics on every Nth packet, like FaultyAction, but is not an action, and packets are pushed to it.
#[derive(Class)]
#[class(name = "FaultyPush", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
struct FaultyPush {
    args: Nth,
    /// Packets so far.
    #[count(unit = "packets")]
    seen: Count,
}

impl Element for FaultyPush {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            self.seen.add(1);
            assert!(!self.seen.get().is_multiple_of(self.args.n), "over a packet");
            cx.emit(0, p);
        }
    }
}

/// Panics on every Nth packet, like FaultyPush, but divides batches among two outputs.
#[derive(Class)]
#[class(name = "FaultySwitch", ports = "1/2", processing = "h/h", packets = "any/same", workers = exclusive)]
struct FaultySwitch {
    args: Nth,
    /// Packets so far.
    #[count(unit = "packets")]
    seen: Count,
}

impl Element for FaultySwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.emit_each(batch, Reason::NoPort, |_| {
            self.seen.add(1);
            assert!(!self.seen.get().is_multiple_of(self.args.n), "over a packet");
            Ok(self.seen.get() as usize % 2)
        });
    }
}

/// Panics on every Nth packet, like FaultyAction, but is not an action, and packets are pulled through it.
#[derive(Class)]
#[class(name = "FaultyPull", ports = "1/1", processing = "l/l", packets = "any/same", workers = exclusive)]
struct FaultyPull {
    args: Nth,
    /// Packets so far.
    #[count(unit = "packets")]
    seen: Count,
}

impl Element for FaultyPull {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let before = into.len();
        cx.pull(0, max, into);
        for _ in before..into.len() {
            self.seen.add(1);
            assert!(!self.seen.get().is_multiple_of(self.args.n), "over a packet");
        }
    }
}

/// Panics in a call without packets: task, timer, initialisation, cleanup or handler.
#[derive(Class)]
#[class(name = "Faulty", ports = "0/1", processing = "a/h", packets = "/any", workers = exclusive, task, lifecycle, handlers)]
#[class(ledger(enters))]
struct Faulty {
    args: Call,
    /// Turns so far.
    #[count(unit = "turns")]
    turns: Count,
}

/// Arguments of Faulty.
#[derive(Args)]
struct Call {
    /// The call that panics.
    call: String,
}

impl Faulty {
    fn call(&self, call: &str) {
        assert_ne!(self.args.call, call);
    }
}

impl Element for Faulty {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.turns.add(1);
        if self.turns.get() > 20 {
            return Turn::Sleep;
        }
        cx.entered(1);
        cx.emit(0, castanet_element::kit::packet(b"before it panics"));
        self.call("task");
        Turn::Again
    }
    fn timer(&mut self, _: u16, _: &mut Cx<'_>) {
        self.call("timer");
    }
}

#[handlers]
impl Faulty {
    /// Panics.
    #[read]
    fn boom(&self) -> String {
        panic!("over a question")
    }
    #[write]
    fn set_boom(&mut self) {
        panic!("over an order")
    }
}

impl Lifecycle for Faulty {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.call("initialise");
        let now = cx.now();
        cx.set_timer(0, now);
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.call("cleanup");
        Ok(())
    }
}

fn more(r: &mut Registry) {
    r.add(action::<FaultyAction>());
    r.add(element::<FaultyPush>());
    r.add(element::<FaultySwitch>());
    r.add(element::<FaultyPull>());
    r.add(element::<Faulty>());
}

fn faulty(text: &str, options: Options) -> Router {
    try_router_with(text, options, more).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a configuration in simulated time. Returns the router and its messages about panics.
fn ran(text: &str, batch: usize, on_panic: OnPanic) -> (Router, Vec<String>) {
    ran_profiled(text, batch, on_panic, false)
}
fn ran_profiled(text: &str, batch: usize, on_panic: OnPanic, profiled: bool) -> (Router, Vec<String>) {
    let (options, log) = simulated(batch);
    let mut r = faulty(text, Options { on_panic, ..options });
    if profiled {
        r.running().begin_profile();
    }
    r.run().unwrap();
    assert_eq!(r.waiting(), 0, "{text}");
    (r, said(&log))
}

/// Returns the messages about panics.
fn said(log: &Log) -> Vec<String> {
    log.lines().into_iter().filter(|l| l.contains("panicked")).collect()
}

fn panicked(r: &Router) -> u64 {
    r.drops().iter().filter(|d| d.0.1 == Reason::Panicked).map(|d| d.1).sum()
}

const N: u64 = 1000;

/// Paths to an element that panics on some packets: in a chain, by itself, behind a queue, on a pull path, or
/// before a delay.
const WAYS: [&str; 8] = [
    "-> Counter -> f :: FaultyAction(70) -> Counter -> s :: Sink(0)",
    "-> f :: FaultyPush(70) -> s :: Sink(0)",
    "-> f :: FaultySwitch(70) -> s :: Sink(0); f [1] -> s",
    "-> Queue(2000) -> Unqueue(5) -> Counter -> f :: FaultyPush(70) -> s :: Sink(0)",
    "-> Queue(2000) -> f :: FaultyPull(70) -> u :: Unqueue(5) -> s :: Sink(0)",
    "-> Queue(2000) -> f :: FaultyAction(70) -> u :: Unqueue(5) -> s :: Sink(0)",
    "-> Queue(2000) -> r :: RoundRobinSched -> f :: FaultyAction(70) -> u :: Unqueue(5) -> s :: Sink(0)",
    "-> f :: FaultyPush(70) -> Queue(2000) -> DelayShaper(1ms) -> u :: Unqueue(5) -> s :: Sink(0)",
];

#[test]
fn what_an_element_had_when_it_panicked_is_counted() {
    for way in WAYS {
        for batch in [1, 3, 32] {
            let text = format!("n :: Numbers(1, {N}, 8) {way}; DriverManager(wait 10s)");
            let (mut r, lines) = ran(&text, batch, OnPanic::Continue);
            let what = format!("{text}, batch {batch}, {lines:?}");
            let (came, lost) = (number(&mut r, "s", "count"), panicked(&r));
            assert_eq!(number(&mut r, "n", "count"), N, "{what}");
            assert_eq!(came + lost, N, "{what}");
            // Each panic loses one packet or one batch: the packets that the element had not finished.
            assert!((14..=14 * 32).contains(&lost), "{lost}, {what}");
            let first = lines.first().unwrap();
            for part in ["f :: Faulty", "(config:1) panicked: over a packet (at ", "panics.rs:", "it goes on"]
            {
                assert!(first.contains(part), "{part}, {what}");
            }
            assert!(lines.len() < 6, "{what}");
            assert!(r.running().panics() >= 10, "{what}");
        }
    }
}

#[test]
fn copies_on_other_ways_go_on() {
    for batch in [1, 3, 32] {
        let text = format!(
            "n :: Numbers(1, {N}, 8) -> t :: Tee(3); t[0] -> a :: Sink(0); t[1] -> f :: FaultyPush(70) -> b :: Sink(1);
             t[2] -> c :: Sink(2); DriverManager(wait 10s)"
        );
        let (mut r, lines) = ran(&text, batch, OnPanic::Continue);
        assert_eq!((number(&mut r, "a", "count"), number(&mut r, "c", "count")), (N, N), "{lines:?}");
        assert_eq!(number(&mut r, "b", "count") + panicked(&r), N, "{lines:?}");
    }
}

#[test]
fn a_disabled_element_drops_its_packets() {
    for way in WAYS {
        for (batch, profiled) in [(1, false), (32, false), (1, true), (32, true)] {
            let text = format!("n :: Numbers(1, {N}, 8) {way}; DriverManager(wait 10s)");
            let (mut r, lines) = ran_profiled(&text, batch, OnPanic::Disable, profiled);
            let what = format!("{text}, batch {batch}, {lines:?}");
            assert_eq!(lines.len(), 1, "{what}");
            assert!(lines[0].contains("it is disabled"), "{what}");
            let came = number(&mut r, "s", "count");
            assert!((38..70).contains(&came), "{came}, {what}");
            assert_eq!(came + panicked(&r), N, "{what}");
            // The handlers of the disabled element still answer, and the element is cleaned up.
            assert_eq!(number(&mut r, "f", "seen"), 70, "{what}");
            r.cleanup();
        }
    }
}

#[test]
fn a_router_that_stops_does_so_in_good_order() {
    for way in WAYS {
        let (mut r, lines) = ran(&format!("n :: Numbers(1, {N}, 8) {way}"), 32, OnPanic::Stop);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("the router stops"), "{lines:?}");
        assert_eq!(number(&mut r, "f", "seen"), 70);
        assert_eq!(r.running().panics(), 1);
    }
    // The other workers must also stop in good order.
    watched(|| {
        let (options, log) = real(2);
        let mut r = faulty(
            "Numbers(1, 4000000000) -> FaultyAction(70) -> Sink(0); InfiniteSource -> Discard",
            options,
        );
        r.run().unwrap();
        assert_eq!(said(&log).len(), 1);
    });
}

#[test]
fn tasks_and_timers_may_panic() {
    for (call, turns) in [("task", 21), ("timer", 21)] {
        let text = format!("f :: Faulty({call}) -> s :: Sink(0); DriverManager(wait 10s)");
        let (mut r, lines) = ran(&text, 32, OnPanic::Continue);
        assert_eq!(number(&mut r, "f", "turns"), turns, "{lines:?}");
        assert_eq!(number(&mut r, "s", "count") + panicked(&r), 20, "{lines:?}");
        assert!(lines[0].contains("f :: Faulty (config:1) panicked: "), "{lines:?}");
        let (mut r, lines) = ran(&text, 32, OnPanic::Disable);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(call == "timer" || number(&mut r, "f", "turns") == 1, "{lines:?}");
    }
}

#[test]
fn what_happens_once_may_panic() {
    let (options, _) = simulated(32);
    let e = try_router_with("f :: Faulty(initialise) -> Discard", options, more).map(drop).unwrap_err();
    assert!(e.contains("f :: Faulty (config:1) panicked") && e.contains("config:1:"), "{e}");
    let (mut r, _) = ran("f :: Faulty(cleanup) -> Discard; DriverManager(wait 1s)", 32, OnPanic::Stop);
    let errors = r.cleanup();
    assert!(
        matches!(&errors[..], [(who, what)] if who == "f :: Faulty" && what.contains("panicked")),
        "{errors:?}"
    );
}

#[test]
fn who_asks_an_element_that_panics_gets_an_error() {
    let text = "f :: Faulty(none) -> s :: Sink(0)";
    let (options, _) = real(1);
    let mut r = faulty(text, options);
    let f = r.find("f");
    let e = r.read(f, "boom", "").unwrap_err();
    assert!(
        matches!(&e, CallError::Panicked { element, message } if element.contains("f :: Faulty (config:1)") && message.contains("over a question")),
        "{e}"
    );
    watched(move || {
        let running = r.running().clone();
        let thread = std::thread::spawn(move || {
            r.run().unwrap();
            r
        });
        for _ in 0..3 {
            let e = running.read(Some("f"), "boom", "").unwrap_err().to_string();
            assert!(e.contains("panicked: over a question"), "{e}");
            let e = running.write(Origin::Operator, Some("f"), "boom", "").unwrap_err().to_string();
            assert!(e.contains("panicked: over an order"), "{e}");
        }
        // Panics in handlers do not stop the router.
        while running.read(Some("s"), "count", "").unwrap() != "20" {}
        running.current().unwrap().end();
        let mut r = thread.join().unwrap();
        assert_eq!(number(&mut r, "s", "count"), 20);
    });
}

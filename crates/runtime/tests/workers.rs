// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares several workers with the naive interpreter, on random graphs in which many elements allow one
//! instance only. Nothing that is compared depends on how the packets of different workers interleave.
#![allow(clippy::unwrap_used, clippy::panic)]

// Shrinking needs runs that can be repeated exactly, so its functions are not used here.
#[allow(dead_code)]
use castanet_element::prelude::*;
use castanet_element::remote::Remote as _;
use castanet_element::{CallError, Random, element};
use castanet_graph::placement::Mode;
use castanet_runtime::{Ledger, OnPanic, Options, Router, Running, Shared};
use castanet_testkit::random_graph::{Configuration, Wish};
use castanet_testkit::{
    Watchdog, number, real, simulated, try_naive, try_router, try_router_with, until, value,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const WISH: Wish = Wish {
    marks: true,
    cycles: true,
    exact: false,
    overflow: false,
    effects: false,
    time: false,
    sources: false,
    lone: true,
};

/// The observable results of a run.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Records by place, source and path, each in order.
    records: BTreeMap<String, Vec<String>>,
    /// The values of handlers.
    values: BTreeMap<String, String>,
    /// Drops, by element and reason. Reasons that a class declares as its `ends` are left out.
    drops: BTreeMap<(u32, Reason), u64>,
}

fn records(lines: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for r in lines {
        let end = r.match_indices(' ').nth(2).map_or(r.len(), |m| m.0);
        out.entry(r[..end].to_string()).or_default().push(r[end..].to_string());
    }
    out
}

/// Reads the handlers that count packets.
fn values(
    c: &Configuration,
    read: impl FnMut(&str, &str) -> Result<String, CallError>,
) -> BTreeMap<String, String> {
    let counts = |class: &str| {
        ["Counter", "Discard", "Numbers", "Sink", "Unqueue"].contains(&class) || class.starts_with("Lone")
    };
    let mut read = read;
    c.elements()
        .filter(|(_, class)| counts(class))
        .map(|(name, _)| {
            let value = read(&name, "count").unwrap_or_else(|e| panic!("{name}.count: {e}"));
            (name, value)
        })
        .collect()
}

/// Returns the accounts of the ledger, which must balance: drops by reason, and packets entered, made, left and held.
fn booked(ledger: &Ledger) -> BTreeMap<String, String> {
    ledger.check();
    let account = |a: &castanet_runtime::ledger::Account| {
        format!("{:?} {} {} {} {}", a.drops, a.entered, a.made, a.left, a.held)
    };
    ledger.accounts.iter().map(|a| (a.element.clone(), account(a))).collect()
}

fn naive(text: &str, c: &Configuration) -> (Seen, BTreeMap<String, String>) {
    let (options, log) = simulated(1);
    let mut r = try_naive(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(r.run_until_idle(100_000).unwrap(), "the naive interpreter does not come to an end\n{text}");
    let values = values(c, |e, h| r.read(r.find(e).unwrap(), h));
    (Seen { records: records(&log.lines()), values, drops: r.drops() }, booked(&r.ledger()))
}

/// Reads the table of drops.
fn drops(shared: &Shared, table: &str) -> BTreeMap<(u32, Reason), u64> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let reason = Reason::ALL.iter().copied().find(|r| r.to_string() == fields[1]).unwrap();
        ((shared.find(fields[0]).unwrap(), reason), fields[2].parse().unwrap())
    };
    table.lines().map(line).collect()
}

/// Puts tasks on random workers.
fn spread(c: &Configuration, seed: u64) -> String {
    let mut random = Random::new(seed, "homes");
    let is_task = |class: &str| class == "Numbers" || class.contains("Unqueue") || class == "LoneTask";
    c.elements().filter(|(_, class)| is_task(class)).fold(String::new(), |mut out, (name, _)| {
        let _ = write!(out, "{}{name} {}", if out.is_empty() { "" } else { ", " }, random.below(8));
        out
    })
}

/// Runs a configuration until its results are those of the naive interpreter. Returns the number of locked elements.
fn compare(seed: u64, workers: usize) -> usize {
    let c = Configuration::random(seed, WISH);
    let text = format!("{}StaticThreadSched({});\n", c.text(), spread(&c, seed));
    let (mut want, ledger_role) = naive(&text, &c);
    let (options, log) = real(workers);
    let mut r = try_router(&text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (shared, running) = (r.shared().clone(), r.running().clone());
    want.drops.retain(|&(e, reason), _| !shared.spec(e).unwrap().ends.contains(&reason));
    let placement = &shared.placement;
    let locked = (0..shared.graph.len()).filter(|&e| matches!(placement.mode(e), Mode::Locked(_))).count();
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut got = Seen::default();
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                until("the results differ", || {
                    got.records = records(&log.lines());
                    got.values = values(&c, |e, h| running.read(Some(e), h, ""));
                    let table = running.read(None, "drop_reasons", "").unwrap();
                    got.drops = drops(&shared, &table);
                    got == want
                });
            }));
            shared.end();
            if let Err(panic) = done {
                eprintln!("seed {seed}, {workers} workers\n{text}\nwant {want:#?}\ngot {got:#?}");
                std::panic::resume_unwind(panic);
            }
        });
        r.run().unwrap();
    });
    assert_eq!(r.waiting(), 0, "seed {seed}\n{text}");
    assert_eq!(booked(&r.ledger()), ledger_role, "seed {seed}\n{text}");
    locked
}

/// Compares one configuration for each seed. For a long run, the environment variable ORACLE_ROUNDS
/// multiplies the number of seeds.
fn compare_all(seeds: u64, workers: usize) {
    let _watchdog = Watchdog::arm();
    let rounds: u64 = std::env::var("ORACLE_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    let locked: usize = (0..seeds * rounds).map(|seed| compare(seed, workers)).sum();
    assert!(locked as u64 > seeds * rounds / 2, "{locked} locked elements");
}

#[test]
fn workers_show_how_long_they_poll() {
    let _watchdog = Watchdog::arm();
    // A SimpleQueue has no notifier, so the second task asks it for packets all the time. Worker 1 sleeps.
    let text =
        "Numbers(1, 10) -> SimpleQueue -> u :: Unqueue -> Discard; Idle -> Queue -> v :: Unqueue -> Discard;
        StaticThreadSched(Numbers@1 0, u 0, v 1)";
    let (options, _) = real(2);
    let mut r = castanet_testkit::router(text, options);
    let (running, end) = (r.running().clone(), r.shared().clone());
    let asker = std::thread::spawn(move || {
        let polled = || {
            let text = running.read(None, "workers", "").unwrap();
            let last = |l: &str| l.rsplit('\t').next().unwrap().parse::<f64>().unwrap();
            text.lines().map(last).collect::<Vec<_>>()
        };
        while polled()[0] < 0.01 {
            std::thread::yield_now();
        }
        let other = polled()[1];
        end.end();
        other
    });
    r.run().unwrap();
    assert_eq!(asker.join().unwrap(), 0.0);
}

#[test]
fn two_workers_do_what_one_does() {
    compare_all(150, 2);
}

#[test]
fn eight_workers_do_what_one_does() {
    compare_all(100, 8);
}

/// Runs two sources on two workers, and `f` on another thread. Ends the router when `f` returns.
fn during(text: &str, options: Options, f: impl FnOnce(&Running) + Send) -> Router {
    let _watchdog = Watchdog::arm();
    let mut r = try_router_with(text, options, |r| {
        r.add(element::<Brittle>());
        r.add(element::<Both>());
        r.add(element::<Slow>());
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let (shared, running) = (r.shared().clone(), r.running().clone());
    std::thread::scope(|s| {
        s.spawn(move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&running)));
            shared.end();
            if let Err(panic) = done {
                std::panic::resume_unwind(panic);
            }
        });
        r.run().unwrap();
    });
    r.ledger().check();
    r
}

fn count(r: &Running, element: &str, handler: &str) -> u64 {
    r.read(Some(element), handler, "").unwrap().trim().parse().unwrap()
}

/// Panics on packet N.
#[derive(Class)]
#[class(name = "Brittle", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
struct Brittle {
    args: Nth,
    /// Packets so far.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of Brittle.
#[derive(Args)]
struct Nth {
    /// The packet that it panics on.
    n: u64,
}

impl Element for Brittle {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            self.count.add(1);
            assert_ne!(self.count.get(), self.args.n, "packet N");
            cx.emit(0, p);
        }
    }
}

#[test]
fn a_panic_on_one_worker_disables_the_element_on_all() {
    // With N = 1, the element may panic on either worker. The other worker finds the disabled element.
    for n in [1, 700, 3999] {
        let (options, log) = real(2);
        let text = format!(
            "a :: Numbers(1, 2000, 7) -> b :: Brittle({n}) -> c :: Counter -> Discard; d :: Numbers(2, 2000, 5) -> b; \
             StaticThreadSched(a 0, d 1);"
        );
        let mut r = during(&text, Options { on_panic: OnPanic::Disable, ..options }, |r| {
            until("the sources end", || count(r, "a", "count") + count(r, "d", "count") == 4000);
            until("the packets end", || {
                let table = r.read(None, "drop_reasons", "").unwrap();
                let lost = table
                    .lines()
                    .filter_map(|l| l.strip_prefix("b\tpanicked\t"))
                    .map(|n| n.parse::<u64>().unwrap());
                count(r, "c", "count") + lost.sum::<u64>() == 4000
            });
            // The handler shows what the instance had counted when it panicked.
            assert_eq!(count(r, "b", "count"), n);
        });
        assert!(number(&mut r, "c", "count") < n, "{n}");
        let lines = log.lines();
        let told: Vec<&String> = lines.iter().filter(|l| l.contains("panicked")).collect();
        assert_eq!(told.len(), 1, "{lines:?}");
        assert!(told[0].contains("it is disabled"), "{told:?}");
    }
}

#[test]
fn a_locked_element_takes_another_configuration_while_all_workers_run_it() {
    let text = "a :: InfiniteSource(LENGTH 60) -> m :: RatedSplitter(100) -> c :: Counter -> Discard; \
                m [1] -> d :: Counter -> Discard; b :: InfiniteSource(LENGTH 60) -> m; StaticThreadSched(a 0, b 1);";
    let mut r = during(text, real(2).0, |r| {
        for rate in 200..300 {
            r.write(Origin::Operator, Some("m"), "config", &rate.to_string()).unwrap();
            assert_eq!(count(r, "m", "rate"), rate);
            let before = count(r, "d", "count");
            until("packets pass", || count(r, "d", "count") > before);
        }
        let refused = r.write(Origin::Operator, Some("m"), "config", "x").unwrap_err();
        assert!(refused.to_string().contains("RATE"), "{refused}");
        assert_eq!(count(r, "m", "rate"), 299);
    });
    assert_eq!(value(&mut r, "m", "config"), "299");
}

#[test]
fn a_home_learns_of_timers_and_tasks_without_being_asked() {
    for class in ["LoneTimer", "LoneTask"] {
        let text = format!(
            "a :: Numbers(1, 1) -> x :: {class} -> c :: Counter -> Discard; b :: Numbers(2, 3000, 7) -> x; \
             StaticThreadSched(a 0, x 0, b 1);"
        );
        // No handler of `x` is read, because the read would make the home worker check the timers.
        during(&text, real(2).0, |r| until(class, || count(r, "c", "count") == 3001));
    }
}

/// Passes on what is pulled through it, and drops what is pushed to it, so that workers on both sides run it.
#[derive(Class)]
#[class(name = "Both", ports = "2/1", processing = "lh/l", flow = "xy/x", packets = "any/same", workers = exclusive)]
#[class(drops(Consumed), ends(Consumed))]
struct Both {
    /// Packets that were pushed.
    #[count(unit = "packets")]
    count: Count,
}

impl Element for Both {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        cx.drop_all(batch, Reason::Consumed);
    }
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(0, max, into);
    }
}

/// Passes packets on, and is in use for most of the time.
#[derive(Class)]
#[class(name = "Slow", ports = "1/1", processing = "h/h", packets = "any/same", workers = exclusive)]
struct Slow {
    /// Packets that went through.
    #[count(unit = "packets")]
    count: Count,
}

impl Element for Slow {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        // This loop takes so long that the other worker often reaches the element meanwhile.
        for i in 0..20_000 {
            std::hint::black_box(i);
        }
        std::thread::yield_now();
        cx.forward(0, batch);
    }
}

#[test]
fn packets_for_an_element_in_use_wait_until_the_worker_holds_no_lock() {
    const EACH: u64 = 6_000;
    // While worker 1 pulls, it holds the lock of `x`. Meanwhile `p` pushes to `l`, which worker 0 uses all the time.
    let text = format!(
        "a :: Numbers(1, {EACH}, 9) -> t :: Tee; t -> [1] x :: Both; t [1] -> l :: Slow -> d :: Counter -> Discard; \
         b :: Numbers(2, {EACH}, 9) -> q :: Queue({EACH}) -> p :: Pick(2, 0) -> [0] x -> u :: Unqueue(8) -> c :: Counter -> Discard; \
         p [1] -> l; StaticThreadSched(a 0, b 1, u 1);"
    );
    let mut r = during(&text, real(2).0, |r| {
        let placement = &r.current().unwrap().placement;
        let locked = |e: &str| {
            matches!(placement.mode(r.current().unwrap().find(e).unwrap() as usize), Mode::Locked(_))
        };
        assert!(locked("x") && locked("l"));
        until("packets are lost", || {
            count(r, "x", "count") == EACH && count(r, "c", "count") + count(r, "d", "count") == 2 * EACH
        });
    });
    assert_eq!(number(&mut r, "l", "count"), number(&mut r, "d", "count"));
}

#[test]
fn workers_that_call_each_other_with_locks_held_go_on() {
    // Worker 1 holds the lock of `x` and calls a handler of `y` on worker 0. Worker 2 holds the lock of `y` and calls a
    // handler of `x` on worker 0. Worker 0 waits for one of the locks, and must answer the other call meanwhile.
    let text = "h :: Numbers(1, 5) -> t :: Tee; t -> x :: LoneAsk(y.count) -> c :: Counter -> Discard; \
                t [1] -> y :: LoneAsk(x.count) -> d :: Counter -> Discard; \
                a :: Numbers(2, 4000) -> x; b :: Numbers(3, 4000) -> y; StaticThreadSched(h 0, a 1, b 2);";
    let mut r = during(text, real(3).0, |r| {
        until("the workers wait for each other", || {
            count(r, "a", "count") + count(r, "b", "count") + count(r, "h", "count") == 8005
        });
    });
    let counts = ["a", "b", "x", "y"].map(|e| number(&mut r, e, "count"));
    assert_eq!(counts, [4000, 4000, 4005, 4005]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run loop: when it stops, sleeps and wakes; timers, shares of the processor, cycles, several workers.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::remote::Remote as _;
use castanet_runtime::Router;
use castanet_spec::Reason;
use castanet_testkit::{START, Watchdog, number, real, router, run, until, value};
use std::time::{Duration, Instant};

const BATCHES: [usize; 5] = [1, 2, 3, 32, 256];

fn dropped(r: &Router, reason: Reason) -> u64 {
    r.drops().iter().filter(|d| d.0.1 == reason).map(|d| d.1).sum()
}

/// Returns the times of recorded packets, in milliseconds since the start of simulated time.
fn times(log: &[String]) -> Vec<i64> {
    let stamp = |l: &String| l.rsplit(", ").next().and_then(|t| t.trim_end_matches(')').parse::<i64>().ok());
    log.iter().filter_map(stamp).map(|t| (t - START) / 1_000_000).collect()
}

#[test]
fn stop_requests_and_driver_scripts() {
    // A configuration, and the messages that it prints, with their times in milliseconds.
    for (text, told) in [
        // One request stops a router without a driver script.
        ("Numbers(1, 5, STOP true) -> Sink(1);", &[][..]),
        // A request to stop ends a pause and has no further effect. The end of the script stops the router.
        (
            "TimedSource(0.1, LIMIT 1, STOP true) -> Discard; t :: Tell;
             DriverManager(write t.say begin, pause, write t.say end);",
            &["0 begin", "200 end"],
        ),
        // Each request to stop ends one pause, even a pause that has not begun yet.
        (
            "TimedSource(0.1, LIMIT 1, STOP true) -> Discard; TimedSource(0.2, LIMIT 1, STOP true) -> Discard; t :: Tell;
             DriverManager(pause, write t.say one, pause, write t.say two);",
            &["200 one", "400 two"],
        ),
        (
            "Numbers(1, 5) -> Counter(COUNT_CALL 3 stop 2) -> Discard; t :: Tell;
             DriverManager(pause, write t.say one, pause, write t.say two);",
            &["0 one", "0 two"],
        ),
        // Waits are exact, and the end of the script stops a router whose sources go on for ever.
        (
            "TimedSource(0.1) -> Discard; t :: Tell;
             DriverManager(wait 1.5s, write t.say a, wait 250ms, write t.say b);",
            &["1500 a", "1750 b"],
        ),
        // A request to stop cuts a wait short; the next wait has its full length.
        (
            "TimedSource(0.5, LIMIT 1, STOP true) -> Discard; t :: Tell;
             DriverManager(wait 20s, write t.say cut, wait 2s, write t.say whole);",
            &["1000 cut", "3000 whole"],
        ),
        ("TimedSource(0.1) -> Discard; t :: Tell; DriverManager(wait 1s, stop, write t.say never);", &[]),
    ] {
        for batch in BATCHES {
            let (_, log) = run(text, batch);
            let log: Vec<_> = log.iter().filter(|l| !l.starts_with("1 1 ")).collect();
            assert_eq!(log, told, "batch {batch}: {text}");
        }
    }
}

#[test]
fn a_router_whose_sources_run_dry_goes_on() {
    // If time were not simulated, this would run for an hour.
    let (mut r, _) = run("InfiniteSource(LIMIT 2) -> c :: Counter -> Discard; Quit(3600);", 32);
    assert_eq!(value(&mut r, "c", "count"), "2");
}

#[test]
fn no_timer_finds_that_it_is_too_early() {
    let (options, _) = real(1);
    let mut r = router("b :: Busy(50);", options);
    r.run().unwrap();
    assert_eq!(number(&mut r, "b", "early"), 0);
}

#[test]
fn a_timer_that_is_always_due_holds_up_nobody() {
    for workers in [1, 2] {
        let (options, _) = real(workers);
        let mut r = router("Restless; n :: Numbers(1, 10000, STOP true) -> s :: Sink(1);", options);
        r.run().unwrap();
        assert_eq!(number(&mut r, "s", "count"), 10000);
    }
}

#[test]
fn timers_are_exact_in_simulated_time() {
    let steps = |first: i64, step: i64, n: i64| (0..n).map(|i| first + i * step).collect::<Vec<_>>();
    for (text, want, slack) in [
        ("TimedSource(0.5, LIMIT 4, STOP true) -> SetTimestamp -> Sink(1);", steps(500, 500, 4), 0),
        // The token bucket is full at the start. It holds two tokens here, and one in the next case.
        (
            "RatedSource(RATE 10, LIMIT 5, STOP true) -> SetTimestamp -> Sink(1);",
            vec![0, 0, 100, 200, 300],
            1,
        ),
        (
            "Numbers(1, 5) -> Queue -> RatedUnqueue(10) -> SetTimestamp -> Sink(1); Quit(10);",
            steps(0, 100, 5),
            1,
        ),
    ] {
        for batch in BATCHES {
            let (_, log) = run(text, batch);
            let got = times(&log);
            let near = got.len() == want.len() && got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= slack);
            assert!(near, "batch {batch}: {text}: {got:?}, wanted {want:?}");
        }
    }
}

#[test]
fn sleepers_are_woken() {
    for batch in BATCHES {
        // Simulated time jumps only when no task has anything to do, so the end of the run shows that all
        // tasks sleep.
        let text = "TimedSource(0.1, LIMIT 5) -> q :: Queue -> u :: Unqueue -> s :: Sink(1); Quit(3600);";
        let (mut r, _) = run(text, batch);
        assert_eq!((number(&mut r, "s", "count"), value(&mut r, "u", "scheduled")), (5, "false".into()));
        // A source sleeps while the queue is full: nothing is dropped.
        let (mut r, log) =
            run("s :: InfiniteSource(LIMIT 5) -> q :: Queue(2) -> Discard(ACTIVE false); Quit(1);", batch);
        assert_eq!(
            (number(&mut r, "q", "length"), number(&mut r, "q", "drops")),
            (2, 0),
            "batch {batch}: {log:?}"
        );
        assert_eq!(value(&mut r, "s", "scheduled"), "false");
        // The source continues when the queue has free space again.
        let text = "InfiniteSource(LIMIT 500) -> q :: Queue(2) -> RatedUnqueue(1000) -> c :: Counter -> Discard; Quit(9);";
        let (mut r, _) = run(text, batch);
        assert_eq!((number(&mut r, "c", "count"), number(&mut r, "q", "drops")), (500, 0), "batch {batch}");
    }
}

#[test]
fn tickets_give_shares() {
    for batch in BATCHES {
        let text = "ScheduleInfo(a 3, b 1); a :: InfiniteSource -> ca :: Counter -> Discard;
            b :: InfiniteSource -> cb :: Counter(COUNT_CALL 1000 stop) -> Discard;";
        let (mut r, _) = run(text, batch);
        let (a, b) = (number(&mut r, "ca", "count"), number(&mut r, "cb", "count"));
        assert!(b == 1000 && a.abs_diff(3000) <= 3, "batch {batch}: {a} to {b}");
        assert_eq!(
            (value(&mut r, "a", "tickets"), value(&mut r, "b", "tickets")),
            ("3072".into(), "1024".into())
        );
    }
}

#[test]
fn calls_take_place_before_the_packet_goes_on() {
    for batch in BATCHES {
        let text = "Numbers(1, 40, 40) -> Counter(COUNT_CALL 5 s.switch 1) -> s :: Switch(0);
            s [0] -> a :: Counter -> Discard; s [1] -> b :: Counter -> Discard; Quit(1);";
        let (mut r, _) = run(text, batch);
        assert_eq!((number(&mut r, "a", "count"), number(&mut r, "b", "count")), (4, 36), "batch {batch}");
    }
}

#[test]
fn cycles_end() {
    for batch in BATCHES {
        let (mut r, _) = run("Numbers(1, 7, 7) -> n :: Null -> c :: Counter -> n; Quit(1);", batch);
        // Each packet passes the counter once, and once more for every round.
        assert_eq!(
            (dropped(&r, Reason::PushLoop), number(&mut r, "c", "count")),
            (7, 7 * 1001),
            "batch {batch}"
        );
        // A copy leaves in every round.
        let text = "Numbers(1, 3, 3) -> n :: Null -> t :: Tee -> n; t [1] -> s :: Discard; Quit(1);";
        let (mut r, _) = run(text, batch);
        assert_eq!(
            (dropped(&r, Reason::PushLoop), number(&mut r, "s", "count")),
            (3, 3 * 1001),
            "batch {batch}"
        );
    }
    for batch in [1, 3] {
        // Copies multiply: the total number of rounds is bounded, and the counts still balance.
        let text = "Numbers(1, 2, 2) -> n :: Null -> c :: Counter -> t :: Tee -> n; t [1] -> n; Quit(1);";
        let (mut r, _) = run(text, batch);
        let entered = number(&mut r, "c", "count");
        let ended = dropped(&r, Reason::PushLoop) + dropped(&r, Reason::NoBuffer);
        assert_eq!(2 + entered, ended, "batch {batch}: each passage makes one more packet, and all end");
    }
}

#[test]
fn packets_are_accounted_for() {
    for batch in BATCHES {
        let text = "n :: Numbers(1, 500, 13) -> p :: Pick(5, 1) -> q :: Queue(20) -> k :: Pick(4, 1) -> RatedUnqueue(100)
                -> s :: Sink(1);
            p [1] -> d :: Discard; k [1] -> e :: Sink(2); q [1] -> o :: Counter -> Discard; Quit(0.05);";
        let (mut r, _) = run(text, batch);
        let held = number(&mut r, "q", "length");
        let all: u64 = r.drops().values().sum();
        let sent = number(&mut r, "n", "count");
        assert_eq!(sent, all + held, "batch {batch}");
        assert_eq!(all, dropped(&r, Reason::Discarded) + dropped(&r, Reason::Consumed));
        r.cleanup();
        assert_eq!(dropped(&r, Reason::Stopped), held);
        assert_eq!(r.drops().values().sum::<u64>(), sent);
    }
}

#[test]
fn two_workers_share_a_queue() {
    let text = "a :: Numbers(1, 20000, 8) -> q :: Queue(100000); b :: Numbers(2, 20000, 8) -> q;
        q -> u :: Unqueue(8) -> s :: Sink(9) ; Quit(30); ";
    for batch in [1, 32] {
        let (mut options, log) = real(2);
        options.batch = batch;
        let mut r = router(text, options);
        let shared = r.shared().clone();
        let placed = |e: &str| shared.placement.task_worker(shared.graph.find(e).unwrap());
        assert_ne!(placed("a"), placed("b"), "both workers have a source");
        let watch = {
            let (shared, log) = (shared.clone(), log.clone());
            std::thread::spawn(move || {
                let started = Instant::now();
                while log.len() < 40_000 && started.elapsed() < Duration::from_secs(100) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                shared.end();
            })
        };
        r.run().unwrap();
        watch.join().unwrap();
        for source in [1, 2] {
            let prefix = format!("9 {source} ");
            let numbers = log.lines().into_iter().filter(|l| l.starts_with(&prefix));
            let numbers: Vec<usize> =
                numbers.map(|l| l.split(' ').nth(3).unwrap().parse().unwrap()).collect();
            assert_eq!(numbers.len(), 20_000, "source {source}, batch {batch}");
            assert!(numbers.iter().enumerate().all(|(i, n)| i == *n), "source {source} in order");
        }
        assert_eq!((number(&mut r, "q", "length"), number(&mut r, "q", "drops")), (0, 0));
        assert_eq!(r.waiting(), 0);
    }
}

/// Runs a router until `done` returns true. `done` gets a function that reads handlers.
fn run_until(r: &mut Router, done: impl Fn(&dyn Fn(&str, &str) -> String) -> bool + Send) {
    let _watchdog = Watchdog::arm();
    let (shared, running) = (r.shared().clone(), r.running().clone());
    std::thread::scope(|s| {
        s.spawn(move || {
            let read = |e: &str, h: &str| running.read(Some(e), h, "").unwrap();
            until("the router does not get there", || done(&read));
            shared.end();
        });
        r.run().unwrap();
    });
}

/// The workers on which the tasks of elements run.
fn placed<const N: usize>(r: &Router, elements: [&str; N]) -> [usize; N] {
    let shared = r.shared();
    elements.map(|e| shared.placement.task_worker(shared.graph.find(e).unwrap()).unwrap())
}

#[test]
fn one_source_overflows_no_queue_of_another_worker() {
    const LIMIT: u64 = 20_000;
    // Sources that emit one packet or many in a turn, and queues whose ring has as many cells as their
    // capacity, or more.
    for (source, capacity) in [
        ("InfiniteSource(LIMIT 20000)", 3),
        ("InfiniteSource(LIMIT 20000, BURST 8)", 4),
        ("InfiniteSource(LIMIT 20000, BURST 100)", 5),
        ("RandomSource(LENGTH 60, LIMIT 20000, BURST 32)", 16),
    ] {
        for workers in 2..=4 {
            let text = format!(
                "a :: {source} -> q :: FullNoteQueue({capacity}) -> u :: Unqueue(4) -> c :: Counter -> Discard;"
            );
            let mut r = router(&text, real(workers).0);
            let [a, u] = placed(&r, ["a", "u"]);
            assert_ne!(a, u);
            run_until(&mut r, |read| read("c", "count") == LIMIT.to_string());
            let counts = [("a", "count"), ("c", "count"), ("q", "drops"), ("q", "length")];
            let counts = counts.map(|(e, h)| number(&mut r, e, h));
            assert_eq!(counts, [LIMIT, LIMIT, 0, 0], "{workers} workers: {source} {capacity}");
        }
    }
}

#[test]
fn sources_of_several_workers_overflow_a_queue_by_what_is_on_its_way() {
    const BURST: u64 = 8;
    let source = |name: &str, more: &str| format!("{name} :: InfiniteSource(BURST {BURST}{more}) -> q;");
    for workers in 2..=4 {
        for round in 0..25 {
            // Nothing pulls, so the queue fills up and stays full, and new requests for free space fail. But each of
            // the two sources may have been granted a burst earlier, and may still send it. The queue had space for one
            // of these bursts, so at most the other burst is lost. In general, `n` sources lose at most `n - 1` bursts.
            // All sources on one worker count as one source.
            let text = format!(
                "q :: FullNoteQueue({}) -> Unqueue(ACTIVE false) -> Discard; {} {} StaticThreadSched(a 0, b 1);",
                20 + round,
                source("a", ""),
                source("b", "")
            );
            let mut r = router(&text, real(workers).0);
            assert_eq!(placed(&r, ["a", "b"]), [0, 1]);
            let asleep = |read: &dyn Fn(&str, &str) -> String, e: &str| read(e, "scheduled") == "false";
            run_until(&mut r, |read| asleep(read, "a") && asleep(read, "b"));
            let [a, b] = ["a", "b"].map(|e| number(&mut r, e, "count"));
            let (held, drops) = (number(&mut r, "q", "length"), number(&mut r, "q", "drops"));
            assert_eq!((a + b, held), (held + drops, 20 + round), "{workers} workers");
            assert!(drops <= BURST, "{workers} workers: {drops} dropped");
        }
        // While packets are pulled, the queue gets full again and again, and every packet is counted.
        let limit = 20_000;
        let more = format!(", LIMIT {limit}");
        let text = format!(
            "q :: FullNoteQueue(16) -> u :: Unqueue(4) -> c :: Counter -> Discard; {} {} StaticThreadSched(a 0, b 1);",
            source("a", &more),
            source("b", &more)
        );
        let mut r = router(&text, real(workers).0);
        run_until(&mut r, |read| {
            let number = |e: &str, h: &str| read(e, h).parse::<u64>().unwrap();
            number("c", "count") + number("q", "drops") == 2 * limit
        });
        let counts = [("a", "count"), ("b", "count"), ("q", "length")].map(|(e, h)| number(&mut r, e, h));
        assert_eq!(counts, [limit, limit, 0], "{workers} workers");
        // The queue gets full again only after a packet was pulled. This bounds the number of drops.
        let (came, drops) = (number(&mut r, "c", "count"), number(&mut r, "q", "drops"));
        assert!(
            came + drops == 2 * limit && drops <= BURST * (1 + came),
            "{workers} workers: {drops} dropped"
        );
        r.ledger().check();
    }
}

#[test]
fn handlers_are_read_across_workers() {
    let text = "a :: InfiniteSource -> c :: Counter -> Discard; ask :: Ask(c.count, 20) -> Discard;";
    let (options, log) = real(2);
    let mut r = router(text, options);
    let shared = r.shared().clone();
    let placed = |e: &str| shared.placement.task_worker(shared.graph.find(e).unwrap());
    assert_ne!(placed("a"), placed("ask"));
    r.run().unwrap();
    let answers: Vec<u64> =
        log.lines().iter().map(|l| l.strip_prefix("answer ").unwrap().parse().unwrap()).collect();
    assert_eq!(answers.len(), 20);
    assert!(answers.is_sorted() && answers[0] < answers[19], "{answers:?}");
}

#[test]
fn timers_are_due_after_the_same_turns_at_every_batch_size() {
    // The source is the only task, so one call of it stands for several turns if the batch size allows this.
    for source in ["InfiniteSource", "Numbers(1, 1000)", "FromIPSummaryDump(DUMP, CHECKSUM true)"] {
        let dump = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(dump.path(), "!data ip_src\n".to_string() + &"1.0.0.1\n".repeat(1000)).unwrap();
        let source = source.replace("DUMP", dump.path().to_str().unwrap());
        let seen = |batch| {
            let text = format!("{source} -> c :: Counter -> Discard; Script(TYPE ACTIVE, wait 1ns, stop);");
            number(&mut run(&text, batch).0, "c", "count")
        };
        let want = seen(1);
        assert!(want > 0 && want < 1000, "{source}: {want}");
        for batch in [2, 5, 32, 256] {
            assert_eq!(seen(batch), want, "{source} at batch {batch}");
        }
    }
}

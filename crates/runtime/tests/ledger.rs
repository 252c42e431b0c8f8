// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger of a router, and the handlers that show drops.
#![allow(clippy::unwrap_used, clippy::panic)]

use castanet_element::action;
use castanet_element::prelude::*;
use castanet_element::remote::Remote as _;
use castanet_runtime::ledger::Account;
use castanet_runtime::{Router, Running};
use castanet_testkit::{Watchdog, real, router, run, simulated, try_router_with, value};

fn account(r: &Router, name: &str) -> Account {
    r.ledger().accounts.into_iter().find(|a| a.element == name).unwrap()
}

#[test]
fn packets_are_booked_where_they_begin_and_end() {
    let text = "n :: Numbers(1, 10) -> t :: Tee -> q :: SimpleQueue(4) -> Idle; t [1] -> Discard; t [2] -> i :: Idle; Quit(1)";
    for batch in [1, 2, 3, 32, 256] {
        let (mut r, _) = run(text, batch);
        let ledger = r.ledger();
        let all = (ledger.entered(), ledger.made(), ledger.left(), ledger.dropped(), ledger.held());
        assert_eq!(all, (10, 20, 10, 16, 4), "{ledger}");
        let q = account(&r, "q");
        assert_eq!((q.held, q.drops.into_iter().collect::<Vec<_>>()), (4, vec![(Reason::QueueFull, 6)]));
        r.cleanup();
        let ledger = r.ledger();
        ledger.check();
        assert_eq!((ledger.held(), account(&r, "q").drops.get(&Reason::Stopped)), (0, Some(&4)), "{ledger}");
    }
}

#[test]
fn drops_can_be_read_by_element_and_reason() {
    let text = "Numbers(1, 10) -> q :: SimpleQueue(4) -> Idle; Numbers(2, 3) -> i :: Idle; Numbers(3, 2) -> d :: Discard; Quit(1)";
    let (mut r, _) = run(text, 32);
    assert_eq!(value(&mut r, "q", "drop_reasons"), "queue-full\t6\n");
    assert_eq!(value(&mut r, "i", "drop_reasons"), "discarded\t3\n");
    assert_eq!(value(&mut r, "d", "drop_reasons"), "", "what a sink takes is not dropped");
    assert_eq!(r.read(None, "drop_reasons", "").unwrap(), "q\tqueue-full\t6\ni\tdiscarded\t3\n");
    // The handler is listed only if the class may drop packets.
    assert!(value(&mut r, "q", "handlers").contains("drop_reasons\trU\n"));
    let source = r.find("Numbers@1");
    assert!(!r.read(source, "handlers", "").unwrap().contains("drop_reasons"));
    assert!(r.read(source, "drop_reasons", "").is_err());
}

/// Runs a router with two workers until these sources have sent `total` packets together. Then lets `ask` read handlers,
/// ends the router, and returns it with the result.
fn ask_after<T: Send>(
    text: &str,
    sources: &[&str],
    total: u64,
    ask: impl FnOnce(&Running) -> T + Send,
) -> (Router, T) {
    let _watchdog = Watchdog::arm();
    let (options, _) = real(2);
    let mut r = router(text, options);
    let running = r.running().clone();
    let end = r.shared().clone();
    let count = |name: &&str| running.read(Some(name), "count", "").unwrap().trim().parse::<u64>().unwrap();
    let seen = std::thread::scope(|s| {
        let asker = s.spawn(|| {
            while sources.iter().map(count).sum::<u64>() < total {
                std::thread::yield_now();
            }
            let seen = ask(&running);
            end.end();
            seen
        });
        r.run().unwrap();
        asker.join().unwrap()
    });
    (r, seen)
}

#[test]
fn drops_of_several_workers_are_added_up() {
    let text = "a :: Numbers(1, 70) -> i :: Idle; b :: Numbers(2, 50) -> i; a2 :: Numbers(1, 40) -> q :: SimpleQueue(10); b2 :: Numbers(2, 30) -> q -> Idle;
        StaticThreadSched(a 0, b 1, a2 0, b2 1);";
    let (r, (i, q, all)) = ask_after(text, &["a", "b", "a2", "b2"], 190, |running| {
        let read = |name: &str| running.read(Some(name), "drop_reasons", "").unwrap();
        (read("i"), read("q"), running.read(None, "drop_reasons", "").unwrap())
    });
    assert_eq!((i.as_str(), q.as_str()), ("discarded\t120\n", "queue-full\t60\n"));
    assert_eq!(all, "i\tdiscarded\t120\nq\tqueue-full\t60\n");
    assert_eq!(account(&r, "q").held, 10);
}

/// Forgets to count the packets that it copies.
#[derive(Class)]
#[class(name = "Forgets", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, copies)]
struct Forgets {}

impl Action for Forgets {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        cx.behind(p.share().unwrap());
        Verdict::Several
    }
}

#[test]
#[should_panic(expected = "the ledger misses -3 packets")]
fn a_class_that_does_not_count_is_found() {
    let (options, _) = simulated(32);
    let text = "Numbers(1, 3) -> Forgets -> Discard; Quit(1)";
    try_router_with(text, options, |r| r.add(action::<Forgets>())).unwrap().run().unwrap();
}

#[test]
fn the_ledger_and_the_queues_can_be_read() {
    let text = "n :: Numbers(1, 10) -> t :: Tee -> q :: SimpleQueue(4) -> i :: Idle; t [1] -> d :: Discard; t [2] -> Discard; Quit(1)";
    let want = "n\tNumbers\t10\t0\t0\t0\t0\nt\tTee\t0\t20\t0\t0\t0\nq\tSimpleQueue\t0\t0\t0\t6\t4\n\
                d\tDiscard\t0\t0\t10\t0\t0\nDiscard@6\tDiscard\t0\t0\t10\t0\t0\n";
    let (mut r, _) = run(text, 32);
    assert_eq!(r.read(None, "ledger", "").unwrap(), want);
    assert_eq!(r.read(None, "queues", "").unwrap(), "q\t4\t4\n");
    for handler in ["ledger", "queues"] {
        assert!(r.read(None, handler, "x").is_err(), "it takes no parameters");
    }
}

#[test]
fn the_ledger_of_a_running_router_has_all_workers() {
    let text = "a :: Numbers(1, 3) -> q :: ThreadSafeQueue(10); b :: Numbers(2, 4) -> q -> i :: Idle;
        c :: Numbers(2, 9) -> own :: SimpleQueue(7) -> Idle; StaticThreadSched(a 0, b 1, c 1);";
    let (_, [ledger, queues, workers]) = ask_after(text, &["a", "b", "c"], 16, |running| {
        ["ledger", "queues", "workers"].map(|h| running.read(None, h, "").unwrap())
    });
    let want = "a\tNumbers\t3\t0\t0\t0\t0\nq\tThreadSafeQueue\t0\t0\t0\t0\t7\n\
                b\tNumbers\t4\t0\t0\t0\t0\nc\tNumbers\t9\t0\t0\t0\t0\nown\tSimpleQueue\t0\t0\t0\t2\t7\n";
    assert_eq!((ledger.as_str(), queues.as_str()), (want, "q\t7\t10\nown\t7\t7\n"));
    for (w, line) in workers.lines().enumerate() {
        let words: Vec<f64> = line.split('\t').map(|w| w.parse().unwrap()).collect();
        let [number, awake, exists, _, polled] = words[..] else { panic!("{workers}") };
        assert!(number == w as f64 && polled <= awake && awake <= exists, "{workers}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps: what stays, what moves, and what happens when something goes wrong.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod classes;

use castanet_element::prelude::*;
use castanet_element::remote::Remote;
use castanet_element::{CallError, Messages as _};
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::compiled::{Code, LoadCode};
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_runtime::{Options, Router, Running};
use castanet_testkit::*;
use classes::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

struct Texts;
impl Loader for Texts {
    fn load(&self, _: Origin, _: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        load_with(text, more).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
}

fn swappable(text: &str, options: Options) -> Router {
    let r = try_router_with(text, options, more).unwrap_or_else(|e| panic!("{e}"));
    r.running().set_loader(Arc::new(Texts));
    r.running().allow_swaps();
    r
}

/// Runs a router while `f` works on it, then stops it. The watchdog stops a test that hangs.
fn running(text: &str, workers: usize, f: impl FnOnce(&Running)) -> (Router, Log) {
    let _watchdog = Watchdog::arm();
    let (options, log) = real(workers);
    let mut r = swappable(text, Options { config: text.into(), ..options });
    let running = r.running().clone();
    std::thread::scope(|s| {
        let thread = s.spawn(|| r.run().unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&running)));
        if let Some(shared) = running.current() {
            shared.end();
        }
        thread.join().unwrap();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
    (r, log)
}

#[test]
fn a_loader_without_packages_has_none() {
    let (options, _) = simulated(32);
    let mut r = swappable("Idle -> Discard;", options);
    assert_eq!(r.read(None, "packages", "").unwrap(), "");
    let refused = r.running().load_package(Origin::Operator, "x").unwrap_err();
    assert!(refused.to_string().contains("this program loads none"), "{refused}");
}

fn count(r: &Running, e: &str, h: &str) -> u64 {
    r.read(Some(e), h, "").unwrap().trim().parse().unwrap()
}

#[test]
fn state_moves_between_elements_of_the_same_name_and_class() {
    let old = "n :: Numbers(1, 100) -> c :: Counter -> q :: Queue(200); q -> u :: RatedUnqueue(1) -> t :: Track; x :: Counter; Idle -> x -> Discard";
    let new = "n :: Numbers(1, 100) -> c :: Counter -> q :: Queue(150); q -> d :: Counter -> u :: Unqueue -> t :: Track";
    running(old, 1, |r| {
        while count(r, "n", "count") < 100 {}
        let plan = r.plan(Origin::Operator, "config", new, Style::Lines).unwrap();
        assert!(r.read(None, "swapplan", new).is_err(), "a read plans nothing");
        let text = r.write(Origin::Authorised, None, "swapplan", new).unwrap();
        assert_eq!(text, plan.to_string());
        for line in [
            "+ d :: Counter\n",
            "+ u :: Unqueue\n",
            "- u :: RatedUnqueue(1)\n",
            "- x :: Counter\n",
            "~ q: (200) becomes (150)\n",
            "+ q [0] -> [0] d\n",
            "- q [0] -> [0] u\n",
            "= q :: Queue: the packets",
            "= c :: Counter: ",
            "= t :: Track: the next number of each source; its counts\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert_eq!(r.swaps(), 0);
        let done = r.swap(Origin::Operator, "config", new).unwrap();
        assert_eq!(done.plan, plan);
        while count(r, "t", "count") < 100 {}
        assert_eq!((count(r, "c", "count"), count(r, "t", "wrong"), r.swaps()), (100, 0, 1));
        assert!(r.read(Some("x"), "count", "").is_err());
    });
}

#[test]
fn what_is_wrong_with_the_new_configuration_leaves_the_old_one_running() {
    let old = "Numbers(1, 4000000000) -> t :: Track; a :: Door(front); b :: Door(back)";
    let (mut r, log) = running(old, 1, |r| {
        let opened = OPEN.load(Ordering::SeqCst);
        for (new, what) in [
            ("Numbers(1, 5 -> t :: Track", "config:1"),
            ("Numbers(1, 5) -> t :: Trick", "Trick"),
            ("Numbers(1, 5) -> t :: Track; t -> Discard", "config:1"),
            ("Numbers(1) -> t :: Track", "Numbers"),
            (
                "Numbers(1, 4000000000) -> t :: Track; a :: Door(front); c :: Door(cellar); b :: Door(back, stuck)",
                "stuck",
            ),
            ("Numbers(1, 4000000000) -> t :: Track; x :: Door(front); b :: Door(back, moody)", "no mood"),
            (
                "Numbers(1, 4000000000) -> t :: Track; x :: Door(front); b :: Door(back, broken)",
                "the hinge broke",
            ),
            // If the handover of a pair fails halfway, the state that this pair has already moved is moved back.
            ("Numbers(1, 4000000000) -> t :: Track; x :: Door(front); b :: Door(back, jammed)", "half way"),
        ] {
            let text = r.swap(Origin::Operator, "config", new).unwrap_err().to_string();
            assert!(text.contains(what), "{new}: {text}");
            let late = ["stuck", "no mood", "the hinge broke", "half way"];
            assert!(r.plan(Origin::Operator, "config", new, Style::Lines).is_err() || late.contains(&what));
            assert!(
                matches!(r.write(Origin::Operator, None, "hotconfig", new), Err(CallError::Refused(e)) if e.to_string() == text)
            );
            let n = count(r, "t", "count");
            while count(r, "t", "count") == n {}
            assert_eq!((count(r, "t", "wrong"), r.swaps()), (0, 0));
            assert_eq!(r.read(Some("a"), "opened", "").unwrap(), "a");
            assert_eq!(r.read(Some("b"), "opened", "").unwrap(), "b");
            assert_eq!(OPEN.load(Ordering::SeqCst), opened);
        }
        // Open resources are handed over by key, even if the name of the element changes.
        r.swap(
            Origin::Operator,
            "config",
            "Numbers(1, 4000000000) -> t :: Track; x :: Door(front); a :: Door(cellar)",
        )
        .unwrap();
        assert_eq!(r.read(Some("x"), "opened", "").unwrap(), "a");
        assert_eq!(r.read(Some("a"), "opened", "").unwrap(), "a");
        assert_eq!(OPEN.load(Ordering::SeqCst), opened);
    });
    assert_eq!(number(&mut r, "t", "wrong"), 0);
    assert_eq!(log.len(), 0, "{:?}", log.lines());
    r.cleanup();
    assert_eq!(OPEN.load(Ordering::SeqCst), 0);
}

/// Two configurations with the same sources and sinks: queues stay, and counters are added or removed.
const STREAM: [&str; 2] = [
    "a :: Numbers(1, 4000000000) -> q :: Queue(5000) -> u :: Unqueue -> c :: Counter -> t :: Track;
     b :: Numbers(2, 4000000000) -> p :: Queue(5000) -> v :: Unqueue -> s :: Track;
     d :: Numbers(3, 4000000000) -> j :: Queue(200) -> w :: Unqueue -> k :: Track;",
    "a :: Numbers(1, 4000000000) -> q :: Queue(5000) -> x :: Counter -> u :: Unqueue(8) -> c :: Counter -> t :: Track;
     d :: Numbers(3, 4000000000) -> j :: Queue(200) -> w :: Unqueue(3) -> k :: Track; y :: Counter; Idle -> y -> Discard;
     b :: Numbers(2, 4000000000) -> p :: Queue(5000) -> v :: Unqueue -> z :: Counter -> s :: Track;",
];

/// Two workers push through one element whose class allows one instance only.
const LOCKED: [&str; 2] = [
    "a :: Numbers(1, 200000, 9) -> l :: Lone -> p :: LoneTimer -> c :: Counter -> Discard; b :: Numbers(2, 200000, 9) -> l;
     StaticThreadSched(a 0, b 1);",
    "b :: Numbers(2, 200000, 9) -> n :: Null -> l :: Lone -> p :: LoneTimer -> c :: Counter -> Discard; a :: Numbers(1, 200000, 9) -> n;
     StaticThreadSched(a 1, b 0);",
];

#[test]
fn locked_elements_keep_their_state() {
    let (mut r, log) = running(LOCKED[0], 2, |r| {
        let mut swaps = 0;
        // The number of swaps while packets move depends on the machine. It is usually several dozen.
        while swaps < 6 || count(r, "c", "count") < 400_000 {
            swaps += 1;
            r.swap(Origin::Operator, "config", LOCKED[swaps % 2]).unwrap();
        }
    });
    assert_eq!(
        ["a", "b", "l", "p", "c"].map(|e| number(&mut r, e, "count")),
        [200_000, 200_000, 400_000, 400_000, 400_000]
    );
    assert_eq!(log.len(), 0, "{:?}", log.lines());
    r.ledger().check();
}

#[test]
fn a_thousand_swaps_lose_duplicate_and_reorder_nothing() {
    for workers in [1, 2] {
        let (mut r, log) = running(STREAM[0], workers, |r| {
            let mut standstill = Vec::new();
            for i in 1..=1000 {
                let done = r.swap(Origin::Operator, "config", STREAM[i % 2]).unwrap();
                standstill.push(done.standstill);
                if i % 100 == 0 {
                    for t in ["t", "s", "k"] {
                        let n = count(r, t, "count");
                        while count(r, t, "count") == n {}
                    }
                }
            }
            standstill.sort();
            println!("{workers} workers: standstill {:?}, at most {:?}", standstill[500], standstill[999]);
            assert_eq!(r.swaps(), 1000);
        });
        for (source, queue, sink) in [("a", "q", "t"), ("b", "p", "s"), ("d", "j", "k")] {
            let (sent, held) = (number(&mut r, source, "count"), number(&mut r, queue, "length"));
            let (came, wrong) = (number(&mut r, sink, "count"), number(&mut r, sink, "wrong"));
            let full =
                r.find(queue).and_then(|q| r.drops().get(&(q, Reason::QueueFull)).copied()).unwrap_or(0);
            assert_eq!((wrong, full), (0, 0), "{workers} workers, {source}");
            assert_eq!(sent, came + held, "{workers} workers, {source}");
        }
        assert!(r.ledger().accounts.iter().all(|a| !a.gone), "{:?}", r.ledger());
        assert_eq!(log.len(), 0, "{:?}", log.lines());
    }
}

#[test]
fn swaps_from_many_threads_and_stops_race() {
    let _watchdog = Watchdog::arm();
    for round in 0..20 {
        let (options, _) = real(1 + round % 2);
        let mut r = swappable(STREAM[0], options);
        let running = r.running().clone();
        std::thread::scope(|s| {
            s.spawn(|| r.run().unwrap());
            for i in 0..3 {
                let running = running.clone();
                s.spawn(move || {
                    for k in 0..20 {
                        match running.swap(Origin::Operator, "config", STREAM[(i + k) % 2]) {
                            Ok(_) => {}
                            Err(e) => assert!(matches!(e, SwapError::Stopped), "{e}"),
                        }
                        // A call may find either configuration.
                        match running.read(Some("c"), "count", "") {
                            Ok(_) | Err(CallError::Missing(_)) => {}
                            Err(e) => panic!("{e}"),
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(round as u64));
            let _ = running.write(Origin::Operator, None, "stop", "");
        });
        assert!(matches!(running.swap(Origin::Operator, "config", STREAM[0]), Err(SwapError::Stopped)));
        assert_eq!(number(&mut r, "t", "wrong") + number(&mut r, "s", "wrong"), 0);
    }
}

#[test]
fn a_script_swaps_its_own_router() {
    // A script can swap its own router in simulated time, too. The script of the new router starts from the
    // beginning.
    let new = "i :: Idle -> c :: Counter -> k :: Counter -> Discard; DriverManager(wait 0.1s)";
    let old = format!(
        "n :: Numbers(1, 10) -> c :: Counter -> Discard;
         s :: Script(wait 0.5s, write hotconfig Idle -> Nothing, read c.count, write hotconfig {new}, wait 1000s, stop)"
    );
    for simulated in [true, false] {
        let (options, log) = if simulated { castanet_testkit::simulated(32) } else { real(1) };
        let mut r = swappable(&old, options);
        r.run().unwrap();
        let lines = log.lines();
        let first = lines.first().map_or("", |l| l.as_str());
        assert!(
            first.contains("While calling 'hotconfig Idle -> Nothing'") && first.contains("Nothing"),
            "{lines:?}"
        );
        assert!(lines.get(1).is_some_and(|l| l.contains("10")), "{lines:?}");
        assert!(r.find("i").is_some() && r.find("n").is_none(), "{lines:?}");
        assert_eq!(number(&mut r, "c", "count"), 10);
    }
}

#[test]
fn timers_of_the_new_router_count_from_the_swap() {
    let (options, log) = simulated(32);
    let new = "TimedSource(1) -> Print(TIMESTAMP true) -> Discard; DriverManager(wait 1.2s)";
    swappable(&format!("Script(wait 0.5s, write hotconfig {new}, wait 1000s)"), options).run().unwrap();
    let lines = log.lines();
    let printed = |time: &str| lines.iter().any(|l| l.contains(time));
    assert!(printed("1000000001.500000") && !printed("1000000001.000000"), "{lines:?}");
}

#[test]
fn without_leave_there_is_no_such_handler() {
    let (options, _) = real(1);
    let mut r = router("Idle -> Discard", options);
    for h in ["hotconfig", "swapplan"] {
        assert!(matches!(r.write(None, h, ""), Err(CallError::Missing(_))));
        assert!(matches!(r.read(None, h, ""), Err(CallError::Missing(_))));
        assert!(!r.read(None, "handlers", "").unwrap().contains(h));
    }
    assert!(
        r.running()
            .swap(Origin::Operator, "config", "Idle -> Discard")
            .unwrap_err()
            .to_string()
            .contains("cannot be swapped")
    );
    r.running().set_loader(Arc::new(Texts));
    r.running().allow_swaps();
    let listing = r.read(None, "handlers", "").unwrap();
    assert!(listing.contains("hotconfig\twR\n") && listing.contains("swapplan\twR\n"));
}

#[test]
fn drops_stay_in_the_accounts() {
    let old = "n :: Numbers(1, 10) -> q :: Queue(5) -> RatedUnqueue(1, BURST_DURATION 1ms) -> t :: Track; Idle -> gone :: Queue(3) -> Idle";
    let new = "n :: Numbers(1, 10) -> t :: Track";
    let (r, _) = running(old, 1, |r| {
        while count(r, "n", "count") < 10 {}
        r.swap(Origin::Operator, "config", new).unwrap();
        r.swap(Origin::Operator, "config", new).unwrap();
    });
    let ledger = r.ledger();
    let gone: u64 = ledger.accounts.iter().filter(|a| a.gone).map(|a| a.dropped()).sum();
    let consumed = r.drops().values().sum::<u64>();
    assert_eq!(gone + consumed, 10, "{ledger}");
    let q = ledger.accounts.iter().find(|a| a.gone && a.element == "q");
    assert!(q.is_some_and(|a| a.drops.contains_key(&Reason::Stopped)), "{ledger}");
    ledger.check();
}

#[test]
fn what_the_system_dropped_stays_in_the_accounts() {
    let (r, _) = running("Idle -> Discard; d :: Deaf", 1, |r| {
        for new in ["Idle -> Discard; d :: Deaf", "Idle -> Discard"] {
            r.swap(Origin::Operator, "config", new).unwrap();
        }
    });
    let ledger = r.ledger();
    let missed: Vec<_> = ledger.accounts.iter().map(|a| (a.element.as_str(), a.gone, a.missed)).collect();
    assert!(missed.contains(&("d", true, 6)), "{missed:?}");
    ledger.check();
}

/// A request to stop that arrives while a swap is committed must not be lost with the old router.
#[test]
fn requests_that_come_in_a_commit_reach_the_new_router() {
    for (k, (when, end)) in
        [("state", false), ("cleanup", false), ("state", true), ("cleanup", true)].into_iter().enumerate()
    {
        watched(move || {
            let key = format!("stop {k}");
            let text = format!("n :: Numbers(1, 4000000000) -> g :: Gate({key}) -> Discard");
            let (options, _) = real(1);
            let mut r = swappable(&text, options);
            let running = r.running().clone();
            let thread = std::thread::spawn(move || {
                r.run().unwrap();
                r
            });
            // The old configuration, which another thread may have looked up just before the swap.
            let old = running.current().unwrap();
            let call = move || if end { old.end() } else { old.stop(1) };
            CALLS.lock().insert(format!("{key} {when}"), Box::new(call));
            running.swap(Origin::Operator, "config", &text).unwrap();
            let r = thread.join().unwrap();
            assert_eq!((r.shared().requests(), running.swaps()), (0, 1), "{when} {end}");
        });
    }
}

#[test]
fn the_new_router_runs_while_the_old_one_is_cleaned_up() {
    watched(|| {
        let text = "n :: Numbers(1, 4000000000) -> g :: Gate(early, WAIT 1000) -> q :: Queue(7) -> Discard; i :: Idle -> h :: Queue -> Idle";
        let (mut r, _) = running(text, 1, |r| {
            while count(r, "n", "count") < 1000 {}
            r.swap(
                Origin::Operator,
                "config",
                "n :: Numbers(1, 4000000000) -> g :: Gate(early) -> t :: Sink(0)",
            )
            .unwrap();
            while count(r, "t", "count") < 10 {}
        });
        // The ledger also counts packets that the old router consumed, and those that were dropped when it
        // was cleaned up.
        let (sent, came) = (number(&mut r, "n", "count"), number(&mut r, "t", "count"));
        let former: u64 = r.ledger().accounts.iter().filter(|a| a.gone).map(|a| a.left + a.dropped()).sum();
        assert_eq!(sent, came + former, "{}", r.ledger());
    });
}

/// Runs a router that reads a trace. Returns the number of packets in the trace, and the messages of the router.
fn traced(file: &std::path::Path) -> (u64, Vec<String>) {
    let (options, log) = simulated(32);
    let text = format!("FromDump({}, STOP true) -> c :: Counter -> Discard", file.display());
    let mut r = swappable(&text, options);
    r.run().unwrap();
    (number(&mut r, "c", "count"), log.lines())
}

#[test]
fn files_are_handed_over_or_closed_before_they_are_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    for (i, (before, after)) in
        [("", ""), (", SNAPLEN 40", ", SNAPLEN 41"), (", SNAPLEN 40", "")].into_iter().enumerate()
    {
        let file = folder.path().join(format!("{i}.pcap"));
        let path = file.display().to_string();
        watched(move || {
            let text = |wait: &str, more: &str| {
                format!(
                    "n :: Numbers(1, 4000000000) -> g :: Gate(file {i}{wait}) -> c :: Counter -> d :: ToDump({path}{more});
                     o :: Numbers(2, 10) -> Discard"
                )
            };
            let (old, new) = (text(", WAIT 1000", before), text("", after));
            let mut first = 0;
            let (mut r, log) = running(&old, 1, |r| {
                while count(r, "c", "count") < 1000 {}
                first = 1;
                r.swap(Origin::Operator, "config", &new).unwrap();
                while count(r, "d", "count") < 1000 {}
            });
            assert_eq!(first, 1);
            let (sent, wrote) = (number(&mut r, "c", "count"), number(&mut r, "d", "count"));
            assert_eq!(r.cleanup(), []);
            assert_eq!(log.len(), 0, "{:?}", log.lines());
            let (found, said) = traced(&file);
            assert!(said.is_empty(), "{said:?}");
            assert_eq!(found, wrote);
            assert_eq!(found == sent, before == after, "{found} of {sent}");
        });
    }
}

/// Workers that wait at the barrier of a swap answer requests of other workers. If they did not, a worker that waits
/// for an answer would never reach the barrier, and the swap would hang.
#[test]
fn workers_that_have_stopped_for_a_swap_answer_questions() {
    watched(|| {
        let text = "a :: InfiniteSource -> c :: Counter -> Discard; i :: Insist(c.count) -> Discard";
        let (_, log) = running(text, 2, |r| {
            for swap in 1..=300 {
                while ANSWERS.load(Ordering::SeqCst) < swap {
                    std::thread::yield_now();
                }
                r.swap(Origin::Operator, "config", text).unwrap();
            }
        });
        assert_eq!(log.len(), 0, "{:?}", log.lines());
    });
}

#[test]
fn a_change_of_a_device_has_the_configuration_read_again() {
    let text = "Idle -> SetIPAddress(lo:ip) -> Discard";
    let (options, _) = real(1);
    if let Err(e) = try_router_with(text, options, more) {
        return println!("SKIP: the device 'lo' has no address: {e}");
    }
    running(text, 1, |r| {
        let shared = r.current().unwrap();
        assert!(!shared.device_changed("nosuch"));
        assert!(shared.device_changed("lo"));
        while r.swaps() == 0 {
            std::thread::yield_now();
        }
    });
}

/// Counts the configurations whose code it is asked for.
struct Asked(std::sync::atomic::AtomicUsize);

impl LoadCode for Asked {
    fn load(&self, _: &castanet_graph::Graph) -> Result<Option<Arc<dyn Code>>, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err("no code".into())
    }
}

#[test]
fn only_the_operators_configurations_bring_code() {
    let _watchdog = Watchdog::arm();
    let asked = Arc::new(Asked(0.into()));
    let (options, log) = real(1);
    let mut r = swappable("Idle -> Discard", Options { code: Some(asked.clone()), ..options });
    let count = || asked.0.load(Ordering::SeqCst);
    assert_eq!(count(), 1);
    let running = r.running().clone();
    std::thread::scope(|s| {
        let thread = s.spawn(|| r.run().unwrap());
        for (origin, n) in [
            (Origin::User, 1),
            (Origin::Authorised, 1),
            (Origin::Anonymous, 1),
            (Origin::Network, 1),
            (Origin::Operator, 2),
        ] {
            running.swap(origin, "config", "Idle -> Counter -> Discard").unwrap();
            assert_eq!(count(), n, "{origin:?}");
        }
        running.current().unwrap().end();
        thread.join().unwrap();
    });
    // Code that cannot be used is a warning.
    assert!(log.lines().iter().any(|l| l.contains("no code")), "{:?}", log.lines());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handler calls between elements: calls across workers, checks whether a handler exists, and handlers of a
//! class that replace those of the runtime.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_element::element;
use castanet_element::prelude::*;
use castanet_element::remote::Remote as _;
use castanet_runtime::{Options, Router};
use castanet_testkit::*;

/// An element whose handler has the same name as one that the runtime provides.
#[derive(Class)]
#[class(name = "Own", ports = "1/0", processing = "h/a", packets = "any/", workers = replicate, handlers)]
#[class(drops(Discarded))]
struct Own {}

impl Element for Own {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.drop_all(batch, Reason::Discarded);
    }
}

#[handlers]
impl Own {
    /// A text that differs from the table of the runtime.
    #[read]
    fn drop_reasons(&self) -> String {
        "its own".into()
    }
}

fn more(r: &mut castanet_classes::Registry) {
    r.add(element::<Own>());
}

fn with_classes(text: &str, options: Options) -> Router {
    try_router_with(text, options, more).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a router on two workers until `f` has returned.
fn on_two_workers(text: &str, f: impl FnOnce(&castanet_runtime::Running)) -> (Router, Log) {
    let _watchdog = Watchdog::arm();
    let (options, log) = real(2);
    let mut r = with_classes(text, options);
    let (running, shared) = (r.running().clone(), r.shared().clone());
    let failed = std::thread::scope(|s| {
        let thread = s.spawn(|| r.run().unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&running)));
        shared.end();
        thread.join().unwrap();
        done.err()
    });
    if let Some(panic) = failed {
        std::panic::resume_unwind(panic);
    }
    (r, log)
}

#[test]
fn elements_call_handlers_of_other_workers() {
    // The queue belongs to the second worker, the counter to both, the script to the first.
    let text = "a :: InfiniteSource(LIMIT 10) -> c :: Counter -> Discard; b :: InfiniteSource(LIMIT 10) -> c;
         i :: InfiniteSource(LIMIT 0) -> q :: Queue(7) -> Idle; x :: InfiniteSource(LIMIT 0) -> k :: Queue(5) -> Idle;
         StaticThreadSched(a 0, b 1, i 1, x 0);
         s :: Script(TYPE PASSIVE, write c.reset_counts, write q.capacity 9, write k.capacity 8,
             return $(c.count) $(q.capacity) $(k.capacity) $(q.name));
         wrong :: Script(TYPE PASSIVE, write q.capacity x, return done);";
    let (mut r, log) = on_two_workers(text, |r| {
        let read = |e: &str, h: &str| r.read(Some(e), h, "").unwrap();
        let shared = r.current().unwrap();
        let workers = |e: &str| shared.workers_of(shared.find(e).unwrap()).to_vec();
        assert_eq!(["c", "q", "k", "s"].map(workers), [vec![0, 1], vec![1], vec![0], vec![0]]);
        while read("c", "count") != "20" {
            std::thread::yield_now();
        }
        assert_eq!(read("s", "run"), "0 9 8 q");
        assert_eq!(read("wrong", "run"), "done");
    });
    let lines = log.lines();
    assert!(matches!(&lines[..], [l] if l.contains("capacity") && l.contains("number")), "{lines:?}");
    assert_eq!(["q", "k"].map(|e| value(&mut r, e, "capacity")), ["9", "8"]);
    assert_eq!(value(&mut r, "c", "count"), "0");
}

#[test]
fn scripts_find_out_which_handlers_there_are() {
    let names = [
        // A handler, then whether it can be read and whether it can be written. First global handlers, then
        // handlers of classes, of the runtime, and of single elements (StrideSwitch and StrideSched have one for
        // each port).
        ("stop", "false true"),
        ("version", "true false"),
        ("nothing", "false false"),
        ("c.count", "true false"),
        ("c.reset", "false true"),
        ("c.class", "true false"),
        ("n.tickets", "true true"),
        ("n.scheduled", "true false"),
        ("c.tickets", "false false"),
        ("c.nothing", "false false"),
        ("push.tickets1", "true true"),
        ("push.tickets2", "false false"),
        ("pull.tickets0", "true true"),
        ("pull.tickets1", "false false"),
        ("q.drop_reasons", "true false"),
    ];
    let asked: String =
        names.iter().map(|(n, _)| format!("print \"$(readable {n}) $(writable {n})\", ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("printed");
    let asked = asked.replace("print ", &format!("print >>{} ", file.display()));
    let text = format!(
        "n :: InfiniteSource(LIMIT 0) -> c :: Counter -> push :: StrideSwitch(1, 1) -> q :: Queue
             -> pull :: StrideSched(1) -> u :: Unqueue -> Discard; push [1] -> Discard;
         DriverManager({asked}stop);"
    );
    run(&text, 32);
    let printed = std::fs::read_to_string(file).unwrap();
    let got: Vec<&str> = printed.lines().collect();
    for ((name, want), got) in names.iter().zip(&got) {
        assert_eq!(want, got, "{name}");
    }
    assert_eq!(got.len(), names.len());
}

#[test]
fn a_class_may_answer_drop_reasons_itself() {
    let text = "a :: Numbers(1, 3) -> o :: Own; b :: Numbers(2, 3) -> o; a2 :: Numbers(1, 3) -> i :: Idle;
         StaticThreadSched(a 0, b 1, a2 0)";
    let (mut r, _) = on_two_workers(text, |r| {
        let read = |e: Option<&str>, h: &str| r.read(e, h, "").unwrap();
        while read(None, "drop_reasons") != "o\tdiscarded\t6\ni\tdiscarded\t3\n" {
            std::thread::yield_now();
        }
        assert_eq!(read(Some("o"), "drop_reasons"), "its own");
        assert_eq!(read(Some("i"), "drop_reasons"), "discarded\t3\n");
        let listed = read(Some("o"), "handlers").lines().filter(|l| l.starts_with("drop_reasons\t")).count();
        assert_eq!(listed, 1);
    });
    assert_eq!(value(&mut r, "o", "drop_reasons"), "its own");
}

#[test]
fn a_call_reaches_an_element_that_is_pulling_when_it_has_returned() {
    let text =
        "InfiniteSource(LIMIT 5) -> Queue -> c :: Counter(COUNT_CALL 2 s.switch 1) -> s :: PullSwitch(0);
                Idle -> [1] s -> u :: Unqueue -> d :: Discard; DriverManager(wait 1s)";
    let (options, log) = simulated(32);
    let mut r = router(text, options);
    r.run().unwrap();
    assert_eq!((number(&mut r, "d", "count"), value(&mut r, "s", "switch").as_str()), (2, "1"));
    assert_eq!(log.lines(), Vec::<String>::new());
    // The naive interpreter gives the same result.
    let (options, log) = simulated(1);
    let mut naive = try_naive(text, options).unwrap();
    naive.run_until_idle(10_000).unwrap();
    for (element, handler, want) in [("d", "count", "2"), ("s", "switch", "1")] {
        let e = naive.find(element).unwrap();
        assert_eq!(naive.read(e, handler).as_deref(), Ok(want), "{element}");
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that emit while they are pulled from, and elements that are pushed to while they pull.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_element::prelude::*;
use castanet_element::{CallError, element};
use castanet_runtime::Router;
use castanet_testkit::*;

/// Makes TOTAL packets when it is pulled from; every second packet goes to output 1. It tries to call
/// handlers, although its class does not declare calls.
#[derive(Class)]
#[class(name = "Spring", ports = "0/2", processing = "a/lh", packets = "/any", workers = exclusive, ledger(enters))]
struct Spring {
    args: SpringArgs,
    /// Packets made.
    #[count(unit = "packets")]
    count: Count,
}

/// Arguments of Spring.
#[derive(Args)]
struct SpringArgs {
    /// Packets to make.
    total: u64,
}

/// Tries to call handlers. Returns a description of the results unless every call was refused.
fn calls(cx: &mut Cx<'_>) -> Option<String> {
    let results = [
        cx.read_handler(Some(0), "name", "").map(drop),
        cx.write_handler(None, "timewarp", "1"),
        cx.write_handler(Some(0), "active", "false"),
    ];
    let busy = results.iter().all(|r| matches!(r, Err(CallError::Busy(_))));
    let has = (cx.has_handler(None, "stop"), cx.has_handler(Some(0), "name"));
    (!busy || has != ((false, false), (false, false))).then(|| format!("{results:?} {has:?}"))
}

impl Element for Spring {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if let Some(text) = calls(cx) {
            cx.message(&format!("an element that is pulled has called {text}"));
        }
        let before = into.len();
        while into.len() < before + max && self.count.get() < self.args.total {
            self.count.add(1);
            cx.entered(1);
            let p = castanet_element::kit::packet(b"a packet");
            match self.count.get() % 2 {
                0 => cx.emit(1, p),
                _ => into.push(p),
            }
        }
    }
}

/// Pulls MAX packets in each turn, or single ones if MAX is 0.
#[derive(Class)]
#[class(name = "Drain", ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive, task)]
struct Drain {
    args: DrainArgs,
}

/// Arguments of Drain.
#[derive(Args)]
struct DrainArgs {
    /// Maximum number of packets of a pull.
    max: u32,
    /// Whether it also tries to call handlers.
    #[arg(keyword, default = false)]
    calls: bool,
}

impl Element for Drain {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if let Some(text) = self.args.calls.then(|| calls(cx)).flatten() {
            cx.message(&format!("an element that pulls has called {text}"));
        }
        let mut batch = cx.spare_batch();
        match self.args.max {
            0 => cx.pull_one(0).into_iter().for_each(|p| batch.push(p)),
            max => cx.pull(0, max as usize, &mut batch),
        }
        let turn = if batch.is_empty() { Turn::Sleep } else { Turn::Again };
        cx.forward(0, &mut batch);
        cx.return_batch(batch);
        turn
    }
}

/// Pulls from input 0 in each turn, and passes on what is pushed to input 1.
#[derive(Class)]
#[class(name = "Both", ports = "2/1", processing = "lh/h", flow = "xx/y", packets = "any/same", workers = exclusive, task)]
struct Both {
    /// Packets that were pushed.
    #[count(unit = "packets")]
    pushed: Count,
}

impl Element for Both {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let mut batch = cx.spare_batch();
        cx.pull(0, 3, &mut batch);
        let turn = if batch.is_empty() { Turn::Sleep } else { Turn::Again };
        cx.forward(0, &mut batch);
        cx.return_batch(batch);
        turn
    }
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.pushed.add(batch.len() as u64);
        cx.forward(0, batch);
    }
}

/// Runs a configuration in simulated time. At the end, no packet may wait and no message may have been
/// printed.
fn finished(text: &str, batch: usize) -> Router {
    let (options, log) = simulated(batch);
    let more = |r: &mut castanet_classes::Registry| {
        r.add(element::<Spring>());
        r.add(element::<Drain>());
        r.add(element::<Both>());
    };
    let mut r = try_router_with(text, options, more).unwrap_or_else(|e| panic!("{e}"));
    r.run().unwrap();
    assert_eq!((r.waiting(), log.lines()), (0, Vec::new()), "batch {batch}: {text}");
    r
}

#[test]
fn packets_emitted_during_a_pull_leave_by_their_own_outputs() {
    // The run loop lets a task pull directly from a storage or source, but not through a chain or a scheduler. Because
    // of the first line of the configuration, the edges of the element Spring do not start with number 0.
    for (path, direct) in [("", true), ("-> RoundRobinSched", false), ("-> Null", false)] {
        for max in [0, 1, 2, 5] {
            for batch in [1, 3, 32] {
                let text = format!(
                    "a :: InfiniteSource(LIMIT 3) -> t :: Tee(2) -> Discard; t [1] -> Discard;
                     w :: Spring(40); w [0] {path} -> d :: Drain({max}, CALLS {direct}) -> main :: Counter -> Discard;
                     w [1] -> side :: Counter -> Discard; Quit(1);"
                );
                let mut r = finished(&text, batch);
                let counts = ["main", "side", "w"].map(|e| number(&mut r, e, "count"));
                assert_eq!(counts, [20, 20, 40], "{path}, {max}, batch {batch}");
            }
        }
    }
}

#[test]
fn packets_pushed_to_a_pulling_element_wait_until_it_has_returned() {
    for path in ["", "-> Null", "-> RoundRobinSched"] {
        for batch in [1, 3, 32] {
            let text = format!(
                "a :: InfiniteSource(LIMIT 3) -> Discard; w :: Spring(40); w [0] {path} -> [0] b :: Both -> all :: Counter -> Discard;
                 w [1] -> Null -> [1] b; Quit(1);"
            );
            let mut r = finished(&text, batch);
            assert_eq!(number(&mut r, "b", "pushed"), 20, "{path}, batch {batch}");
            assert_eq!(number(&mut r, "all", "count"), 40, "{path}, batch {batch}");
        }
    }
}

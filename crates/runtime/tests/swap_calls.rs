// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps: signals that arrive during a swap, resources that are handed over, rights, a loader that panics, and
//! a router that stops during a swap.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use castanet_classes::Registry;
use castanet_element::prelude::*;
use castanet_element::remote::Remote;
use castanet_element::{CallError, element};
use castanet_lang::{Diagnostic, Sources};
use castanet_runtime::shared::Shared;
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_runtime::{Ledger, Running};
use castanet_testkit::*;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts how often a signal of the operating system arrives.
#[derive(Class)]
#[class(name = "Watcher", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build)]
struct Watcher {
    args: WatcherArgs,
    /// Signals so far.
    #[count(unit = "packets")]
    seen: Count,
}

/// Arguments of Watcher.
#[derive(Args)]
struct WatcherArgs {
    /// Number of the signal.
    signal: i32,
}

impl Build for Watcher {
    fn build(args: WatcherArgs, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        cx.signals.push((cx.me, args.signal));
        Ok(Watcher { args, seen: Count::default() })
    }
}

impl Element for Watcher {
    fn signal(&mut self, signal: i32, _: &mut Cx<'_>) {
        self.seen.add(u64::from(signal == self.args.signal));
    }
}

type Call = Box<dyn FnOnce() + Send>;
/// Calls that tests make while state moves, by key.
static CALLS: Mutex<Vec<(String, Call)>> = Mutex::new(Vec::new());

/// An element that makes a call while a hot swap moves its state: the call that a test has stored in [`CALLS`] under
/// the key of the element. No worker runs at that moment.
#[derive(Class)]
#[class(name = "Moment", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle)]
#[class(takes_state = "nothing")]
struct Moment {
    args: MomentArgs,
}

/// Arguments of Moment.
#[derive(Args)]
struct MomentArgs {
    /// The key of the call.
    key: String,
}

impl Element for Moment {}

impl Lifecycle for Moment {
    fn take_state(&mut self, _: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        let mut calls = CALLS.lock();
        if let Some(i) = calls.iter().position(|c| c.0 == self.args.key) {
            let (_, call) = calls.swap_remove(i);
            drop(calls);
            call();
        }
        Ok(())
    }
}

/// Has a resource open, and shows whether an old router handed it over.
#[derive(Class)]
#[class(name = "Holder", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build, lifecycle, handlers)]
struct Holder {
    args: HolderArgs,
    inherits: bool,
    taken: bool,
}

/// Arguments of Holder.
#[derive(Args)]
struct HolderArgs {
    /// The resource that it has open.
    key: String,
}

impl Build for Holder {
    fn build(args: HolderArgs, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Holder { args, inherits: false, taken: false })
    }
}

impl Element for Holder {}

#[handlers]
impl Holder {
    /// Whether it expected to inherit its resource, and whether it got the resource.
    #[read]
    fn origin(&self) -> String {
        format!("{} {}", self.inherits, self.taken)
    }
}

impl Lifecycle for Holder {
    fn holds(&self) -> Option<String> {
        Some(self.args.key.clone())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.inherits = cx.inherits();
        Ok(())
    }
    fn take_over(&mut self, _: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.taken = true;
        Ok(())
    }
}

/// Holds the packets that it gets, even when it is cleaned up.
#[derive(Class)]
#[class(name = "Keeper", ports = "1/0", processing = "h/a", packets = "any/", workers = exclusive, lifecycle, ledger(holds))]
struct Keeper {
    kept: Batch,
}

impl Element for Keeper {
    fn push(&mut self, _: usize, batch: &mut Batch, _: &mut Cx<'_>) {
        self.kept.append(batch);
    }
}

impl Lifecycle for Keeper {
    fn held(&self) -> u64 {
        self.kept.len() as u64
    }
}

/// The number of elements of class Shut that were cleaned up.
static SHUT: AtomicUsize = AtomicUsize::new(0);

/// Increments `SHUT` when it is cleaned up.
#[derive(Class)]
#[class(name = "Shut", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, lifecycle)]
struct Shut {}

impl Element for Shut {}

impl Lifecycle for Shut {
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        SHUT.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Reads configurations. If it has a text, panics with that text after a swap.
struct Texts(Option<&'static str>);

fn more(r: &mut Registry) {
    r.add(element::<Watcher>());
    r.add(element::<Moment>());
    r.add(element::<Holder>());
    r.add(element::<Keeper>());
    r.add(element::<Shut>());
}

impl Loader for Texts {
    fn load(&self, _: Origin, _: &str, text: &str, _: Style) -> Result<Loaded, SwapError> {
        load_with(text, more).map_err(|e| SwapError::Refused(e.to_string()))
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], _: Style) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
    fn swapped(&self, _: &Arc<Shared>) {
        if let Some(text) = self.0 {
            panic!("{text}");
        }
    }
}

/// Reads configurations. After a configuration has been prepared, the loader ends the running router, and waits until
/// the run of that router has returned.
struct Late {
    running: Arc<Running>,
    returned: AtomicBool,
}

impl Loader for Late {
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, SwapError> {
        Texts(None).load(from, name, text, style)
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String {
        Texts(None).render(sources, diagnostics, style)
    }
    fn prepared(&self, _: &Arc<Shared>) {
        self.running.current().unwrap().end();
        until("the router returns", || self.returned.load(Ordering::SeqCst));
    }
}

/// Runs a router while `f` works on it, then ends it. Returns its ledger, or the panic of the router or of `f`.
fn running(
    text: &str,
    workers: usize,
    loader: Texts,
    f: impl FnOnce(&Arc<Running>),
) -> std::thread::Result<Ledger> {
    let _watchdog = Watchdog::arm();
    let (options, _) = real(workers);
    let mut r = try_router_with(text, options, more).unwrap_or_else(|e| panic!("{e}"));
    let running = r.running().clone();
    running.set_loader(Arc::new(loader));
    running.allow_swaps();
    std::thread::scope(|s| {
        let thread = s.spawn(|| {
            r.run().unwrap();
            r.ledger()
        });
        let done = catch_unwind(AssertUnwindSafe(|| f(&running)));
        if let Some(shared) = running.current() {
            shared.end();
        }
        let ledger = thread.join()?;
        done.map(|()| ledger)
    })
}

fn read(r: &Running, element: &str, handler: &str) -> String {
    r.read(Some(element), handler, "").unwrap()
}

#[test]
fn signals_that_come_in_a_commit_reach_the_element_that_watches_them_next() {
    const USR1: i32 = 10;
    for workers in [1, 2] {
        for (k, (next, element, seen)) in [
            ("w :: Watcher(10)", "w", "1"),
            // Elements with another signal or another name do not get the signal.
            ("w :: Watcher(12)", "w", "0"),
            ("x :: Watcher(10)", "x", "0"),
            ("w :: Counter; Idle -> w -> Discard; x :: Watcher(10)", "x", "0"),
        ]
        .into_iter()
        .enumerate()
        {
            let moment = format!("m :: Moment(signal {workers} {k})");
            let source = "n :: Numbers(1, 4000000000) -> Discard";
            let old = format!("{source}; w :: Watcher(10); o :: Watcher(12); {moment}");
            let new = format!("{source}; {moment}; {next}");
            running(&old, workers, Texts(None), |r| {
                let here = r.clone();
                let call = move || assert!(here.signal(USR1));
                CALLS.lock().push((format!("signal {workers} {k}"), Box::new(call)));
                r.swap(Origin::Operator, "config", &new).unwrap();
                // A worker handles its mail in order, so it has handled the signal before this read.
                assert_eq!(read(r, element, "seen"), seen, "{next}");
                // Signals that arrive later go to the new router immediately.
                assert_eq!(r.signal(USR1), !next.contains("12"), "{next}");
                let more = if next.contains("12") {
                    seen.to_string()
                } else {
                    (seen.parse::<u32>().unwrap() + 1).to_string()
                };
                assert_eq!(read(r, element, "seen"), more, "{next}");
            })
            .unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

#[test]
fn elements_are_told_what_they_inherit() {
    let old = "a :: Holder(red); b :: Holder(green); c :: Holder(blue)";
    let new = "x :: Holder(white); y :: Holder(green); a :: Holder(blue); c :: Holder(black)";
    running(old, 1, Texts(None), |r| {
        for e in ["a", "b", "c"] {
            assert_eq!(read(r, e, "origin"), "false false", "{e}");
        }
        let plan = r.swap(Origin::Operator, "config", new).unwrap().plan.to_string();
        for (e, origin) in
            [("x", "false false"), ("y", "true true"), ("a", "true true"), ("c", "false false")]
        {
            assert_eq!(read(r, e, "origin"), origin, "{e}");
        }
        let moves: Vec<&str> = plan.lines().filter(|l| l.starts_with('=')).collect();
        assert_eq!(moves, ["= y :: Holder: what 'b' has open", "= a :: Holder: what 'c' has open"]);
    })
    .unwrap_or_else(|panic| resume_unwind(panic));
}

#[test]
fn packets_that_remain_in_the_old_router_are_counted_as_dropped() {
    let ledger = running("n :: Numbers(1, 5) -> k :: Keeper", 1, Texts(None), |r| {
        while read(r, "n", "count") != "5" {
            std::thread::yield_now();
        }
        r.swap(Origin::Operator, "config", "n :: Numbers(1, 5) -> Idle").unwrap();
    })
    .unwrap_or_else(|panic| resume_unwind(panic));
    ledger.check();
    let keeper = ledger.accounts.iter().find(|a| a.gone && a.element == "k");
    assert!(keeper.is_some_and(|k| k.drops.get(&Reason::Stopped) == Some(&5)), "{ledger}");
}

#[test]
fn only_handlers_that_swap_demand_rights() {
    running("Idle -> Discard", 1, Texts(None), |r| {
        let write = |from, handler: &str, value: &str| r.write(from, None, handler, value);
        for handler in ["hotconfig", "loadpackage", "swapplan"] {
            let refused = write(Origin::Anonymous, handler, "Idle -> Discard");
            assert!(matches!(refused, Err(CallError::Denied(_))), "{handler}: {refused:?}");
        }
        assert_eq!(r.swaps(), 0);
        let missing = write(Origin::Anonymous, "nothing", "");
        assert!(matches!(missing, Err(CallError::Missing(_))), "{missing:?}");
        assert_eq!(write(Origin::Anonymous, "timewarp", "2"), Ok(String::new()));
        assert!(
            write(Origin::Authorised, "swapplan", "Idle -> Discard").is_ok_and(|p| p.contains("0 added"))
        );
    })
    .unwrap_or_else(|panic| resume_unwind(panic));
}

#[test]
fn a_panic_of_the_loader_after_a_swap_ends_the_run_with_its_message() {
    let text = "Idle -> Discard";
    let panic = running(text, 1, Texts(Some("the loader is broken")), |r| {
        let error = r.swap(Origin::Operator, "config", text).unwrap_err().to_string();
        assert!(error.contains("stopped"), "{error}");
    })
    .unwrap_err();
    let said = panic.downcast_ref::<String>().map(String::as_str);
    assert_eq!(said.or_else(|| panic.downcast_ref::<&str>().copied()), Some("the loader is broken"));
}

#[test]
fn a_configuration_that_is_ready_after_the_router_has_stopped_is_cleaned_up() {
    let mut r = try_router_with("Idle -> Discard", real(1).0, more).unwrap();
    let running = r.running().clone();
    let late = Arc::new(Late { running: running.clone(), returned: AtomicBool::new(false) });
    running.set_loader(late.clone());
    std::thread::scope(|s| {
        s.spawn(|| {
            r.run().unwrap();
            late.returned.store(true, Ordering::SeqCst);
        });
        let outcome = running.swap(Origin::Operator, "config", "Shut");
        assert!(matches!(outcome, Err(SwapError::Stopped)));
    });
    assert_eq!(SHUT.load(Ordering::SeqCst), 1);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Support for tests of several crates: routers from text, classes that only tests need, and network namespaces.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    missing_docs
)]

pub mod classes;
pub mod host;
pub mod lone;
pub mod namespace;
pub mod random_graph;
pub mod seen;
mod stride_list;

pub use stride_list::StrideList;

use castanet_classes::Registry;
use castanet_element::build::of_router;
use castanet_element::{Classes as _, Clock};
use castanet_jit::When;
use castanet_runtime::naive::Naive;
use castanet_runtime::swap::Loaded;
use castanet_runtime::text::TextError;
use castanet_runtime::{Given, Options, Router};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A test that takes longer than this counts as hanging.
const HANGS: Duration = Duration::from_secs(300);

/// The start of simulated time, in nanoseconds since 1970.
pub const START: i64 = 1_000_000_000_000_000_000;

/// Checks a configuration, which may use the classes of the project and of tests. Returns its graph, or the errors of
/// the text.
pub fn load(text: &str) -> Result<Loaded, TextError> {
    load_with(text, |_| {})
}

/// Like [`load`], with the classes that `more` adds.
pub fn load_with(text: &str, more: impl FnOnce(&mut Registry)) -> Result<Loaded, TextError> {
    let mut registry = Registry::new();
    classes::add_to(&mut registry);
    lone::add_to(&mut registry);
    more(&mut registry);
    Ok(Loaded::from_text("config", text.as_bytes(), &[], Arc::new(registry))?.0)
}

pub fn try_router(text: &str, options: Options) -> Result<Router, String> {
    try_router_with(text, options, |_| {})
}

pub fn try_router_with(
    text: &str,
    options: Options,
    more: impl FnOnce(&mut Registry),
) -> Result<Router, String> {
    let built = load_with(text, more).and_then(|loaded| loaded.build(options));
    built.map(|b| b.0).map_err(|e| e.to_string())
}

pub fn router(text: &str, options: Options) -> Router {
    try_router(text, options).unwrap_or_else(|e| panic!("{e}"))
}

pub fn try_naive(text: &str, options: Options) -> Result<Naive, String> {
    let Loaded { graph, classes, sources } = load(text).map_err(|e| e.to_string())?;
    let built = Naive::new(graph, classes, &sources, options);
    built.map_err(|diagnostics| TextError { sources, diagnostics }.to_string())
}

/// Waits until `holds` returns true. Panics with the message `what` after five minutes, so that the test cannot hang.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANGS, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The messages of a run, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
    pub fn printer(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        let to = self.clone();
        Box::new(move |t: &str| to.0.lock().push(t.to_string()))
    }
}

/// Options for simulated time and one worker, with messages going to a log.
pub fn simulated(batch: usize) -> (Options, Log) {
    let log = Log::default();
    (Options { batch, printer: log.printer(), clock: Clock::simulated(START), ..Options::default() }, log)
}

/// Compilers of machine code, which is ready before the first packet.
pub fn compilers() -> Given {
    let mut given = of_router(castanet_jit::compiler(When::AtOnce));
    given.extend(of_router(castanet_jit::path_compiler(When::AtOnce)));
    given
}

/// Options for real time, with messages going to a log.
pub fn real(workers: usize) -> (Options, Log) {
    let log = Log::default();
    (Options { workers, printer: log.printer(), ..Options::default() }, log)
}

/// Runs a configuration in simulated time until it stops itself.
pub fn run(text: &str, batch: usize) -> (Router, Vec<String>) {
    let (options, log) = simulated(batch);
    let mut r = router(text, options);
    r.run().unwrap();
    assert_eq!(r.waiting(), 0, "{text}");
    r.ledger().check();
    (r, log.lines())
}

pub fn value(r: &mut Router, element: &str, handler: &str) -> String {
    let e = r.find(element);
    assert!(e.is_some(), "no element {element}");
    r.read(e, handler, "").unwrap_or_else(|e| panic!("{element}.{handler}: {e}"))
}

pub fn number(r: &mut Router, element: &str, handler: &str) -> u64 {
    let v = value(r, element, handler);
    v.trim().parse().unwrap_or_else(|_| panic!("{element}.{handler}: {v}"))
}

/// Runs a test that could hang. The test fails if it has not ended after five minutes.
pub fn watched<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tx, rx) = channel();
    let thread = std::thread::spawn(move || tx.send(f()));
    match rx.recv_timeout(HANGS) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(_) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("no result"),
        },
    }
}

/// Ends the process, with all its tests, if a test has not ended after five minutes. For tests in which a
/// single call may hang: a loop around that call could not check the time. Disarmed when dropped.
pub struct Watchdog {
    _disarm: Sender<()>,
}

impl Watchdog {
    pub fn arm() -> Watchdog {
        let (disarm, disarmed) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("a test").to_string();
        std::thread::spawn(move || {
            if disarmed.recv_timeout(HANGS) == Err(RecvTimeoutError::Timeout) {
                eprintln!("the watchdog: {test} hangs");
                std::process::abort();
            }
        });
        Watchdog { _disarm: disarm }
    }
}

/// A router that has nothing to do makes at most this many rounds of the run loop, counted from its start. A router
/// that polls makes thousands.
pub const FEW_ROUNDS: u64 = 200;

/// Runs an idle router for 0.3 s, and returns how many rounds of the run loop it made.
///
/// A router that sleeps makes the same few rounds, however long it runs and whatever else the machine does. A router
/// that polls makes more rounds the longer it runs, so 0.3 s are enough to detect it.
pub fn rounds_while_idle(r: &mut Router) -> u64 {
    let shared = r.shared().clone();
    let watch = {
        let shared = shared.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            shared.end();
        })
    };
    r.run().unwrap();
    watch.join().unwrap();
    shared.rounds()
}

/// Whether the project has a class of this name.
pub fn known(class: &str) -> bool {
    Registry::new().get(class).is_some()
}

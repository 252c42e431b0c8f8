// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the runtime have in common: routers from text, and classes that only tests need.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs)]

pub mod classes;

use castanet_element::{Classes, Clock};
use castanet_elements::Registry;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown};
use castanet_runtime::naive::Naive;
use castanet_runtime::{Options, Router, Table, build};
use std::sync::{Arc, Mutex};

/// When simulated time starts.
pub const START: i64 = 1_000_000_000_000_000_000;

/// A checked graph, or what is wrong with the text.
pub fn graph(text: &str) -> Result<(Graph, Arc<dyn Classes>, Sources), String> {
    graph_with(text, |_| {})
}

/// A checked graph of these classes, those of the tests and those that `more` adds.
pub fn graph_with(
    text: &str,
    more: impl FnOnce(&mut Registry),
) -> Result<(Graph, Arc<dyn Classes>, Sources), String> {
    let mut registry = Registry::new();
    classes::add_to(&mut registry);
    more(&mut registry);
    let classes: Arc<dyn Classes> = Arc::new(registry);
    let table = Table(classes.clone());
    let mut sources = Sources::new();
    let file = sources.add("config", text);
    let o = castanet_lang::Options {
        classes: &table,
        defines: &[],
        library: &NoLibrary,
        unknown: Unknown::Error,
    };
    let (flat, mut diagnostics) = castanet_lang::load(&mut sources, file, &o);
    let (graph, more) = Graph::new(flat, &table);
    diagnostics.extend(more);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(castanet_lang::render::render_pretty(&sources, &diagnostics, false));
    }
    Ok((graph, classes, sources))
}

pub fn try_router(text: &str, options: Options) -> Result<Router, String> {
    try_router_with(text, options, |_| {})
}

pub fn try_router_with(
    text: &str,
    options: Options,
    more: impl FnOnce(&mut Registry),
) -> Result<Router, String> {
    let (graph, classes, sources) = graph_with(text, more)?;
    let built = build(graph, classes, &sources, options);
    built.map(|b| b.0).map_err(|d| castanet_lang::render::render_pretty(&sources, &d, false))
}

pub fn router(text: &str, options: Options) -> Router {
    try_router(text, options).unwrap_or_else(|e| panic!("{e}"))
}

pub fn try_naive(text: &str, options: Options) -> Result<Naive, String> {
    let (graph, classes, sources) = graph(text)?;
    let built = Naive::new(graph, classes, &sources, options);
    built.map_err(|d| castanet_lang::render::render_pretty(&sources, &d, false))
}

/// What a run printed, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
    pub fn printer(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        let to = self.clone();
        Box::new(move |t: &str| to.0.lock().unwrap().push(t.to_string()))
    }
}

/// Simulated time, one worker, messages into a log.
pub fn simulated(batch: usize) -> (Options, Log) {
    let log = Log::default();
    (Options { batch, printer: log.printer(), clock: Clock::simulated(START), ..Options::default() }, log)
}

/// Real time, messages into a log.
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

/// Runs a test that would hang if what it tests were broken: after minutes it fails instead.
pub fn watched<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tx, rx) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || tx.send(f()));
    match rx.recv_timeout(std::time::Duration::from_secs(300)) {
        Ok(done) => done,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(_) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("no result"),
        },
    }
}

/// Rounds of the run loop that a router with nothing to do makes at most, from its start on; one that polls makes thousands.
pub const FEW_ROUNDS: u64 = 200;

/// Runs a router for a while, in which it has nothing to do, and returns how many rounds of the run loop it made.
///
/// How long it runs only decides how well a router that polls is told apart: a sleeping one makes the same few rounds, however
/// long it takes and whatever else the machine does.
pub fn rounds_while_idle(r: &mut Router) -> u64 {
    let shared = r.shared().clone();
    let watch = {
        let shared = shared.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            shared.end();
        })
    };
    r.run().unwrap();
    watch.join().unwrap();
    shared.rounds()
}

/// Whether a class is known.
pub fn known(class: &str) -> bool {
    Registry::new().get(class).is_some()
}

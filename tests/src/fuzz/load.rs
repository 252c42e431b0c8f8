// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds graphs and self-terminating routers from text.

use super::fuse::{BURNT, Fuse};
use super::paths::Digest;
use castanet_classes::Registry;
use castanet_element::{Clock, action, element};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown};
use castanet_runtime::{Options, Router, Shared, build};
use std::sync::{Arc, OnceLock, Weak};

/// The start of simulated time, in nanoseconds since 1970.
const START: i64 = 1_000_000_000_000_000_000;

/// Returns the classes of the project, and Fuse.
pub fn classes() -> Arc<Registry> {
    static CLASSES: OnceLock<Arc<Registry>> = OnceLock::new();
    let made = CLASSES.get_or_init(|| {
        let mut registry = Registry::new();
        registry.add(element::<Fuse>());
        registry.add(action::<Digest>());
        Arc::new(registry)
    });
    made.clone()
}

/// Builds the graph of a text. Also returns its sources and all diagnostics.
pub fn graph(text: &str) -> (Graph, Sources, Vec<Diagnostic>) {
    let classes = classes();
    let mut sources = Sources::new();
    let file = sources.add("config", text);
    let options = castanet_lang::Options {
        classes: classes.as_ref(),
        defines: &[],
        library: &NoLibrary,
        unknown: Unknown::Error,
    };
    let (flat, mut diagnostics) = castanet_lang::load(&mut sources, file, &options);
    let (graph, more) = Graph::new(flat, classes.as_ref());
    diagnostics.extend(more);
    (graph, sources, diagnostics)
}

/// Renders diagnostics in the pretty format, then in the classic format.
pub fn show(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let pretty = castanet_lang::render::render_pretty(sources, diagnostics, false);
    pretty + &castanet_lang::render::render_classic(sources, diagnostics)
}

/// Builds a router that runs in simulated time, prints nothing, and is stopped by a `Fuse`. On failure, returns
/// the diagnostics.
pub fn router(text: &str, batch: usize) -> Result<Router, String> {
    router_on(text, batch, 1)
}

/// Like [`router`], on several workers. With more than one worker, time is real instead of simulated.
pub fn router_on(text: &str, batch: usize, workers: usize) -> Result<Router, String> {
    let (graph, sources, diagnostics) = graph(text);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(show(&sources, &diagnostics));
    }
    router_of(graph, &sources, batch, workers)
}

/// Builds the router of a graph without errors.
pub fn router_of(graph: Graph, sources: &Sources, batch: usize, workers: usize) -> Result<Router, String> {
    let clock = if workers == 1 { Clock::simulated(START) } else { Clock::real() };
    router_with(graph, sources, Options { batch, workers, clock, ..Options::default() })
}

/// Options for simulated time.
pub fn options() -> Options {
    Options { clock: Clock::simulated(START), ..Options::default() }
}

/// Builds the router of a graph without errors, with other options. It prints nothing.
pub fn router_with(graph: Graph, sources: &Sources, options: Options) -> Result<Router, String> {
    // Devices and sockets of the machine must not be used.
    let outside = |e: usize| graph.spec(e).is_some_and(|s| s.module.contains("::device::"));
    if (0..graph.len()).any(outside) {
        return Err("devices are out of reach".into());
    }
    let shared: Arc<OnceLock<Weak<Shared>>> = Arc::default();
    let of = shared.clone();
    let printer = Box::new(move |text: &str| {
        if text.ends_with(BURNT)
            && let Some(shared) = of.get().and_then(Weak::upgrade)
        {
            shared.end();
        }
    });
    let options = Options { printer, ..options };
    match build(graph, classes(), sources, options) {
        Ok((router, warnings)) => {
            show(sources, &warnings);
            // The cell is only set here, so this cannot fail.
            let _ = shared.set(Arc::downgrade(router.shared()));
            Ok(router)
        }
        Err(errors) => Err(show(sources, &errors)),
    }
}

/// Runs a router to its end, then reads every handler.
pub fn run(router: &mut Router) {
    if router.run().is_err() {
        return;
    }
    for e in 0..router.shared().graph.len() {
        let handlers: Vec<_> =
            router.shared().graph.spec(e).into_iter().flat_map(|s| s.all_handlers()).collect();
        for h in handlers
            .iter()
            .filter(|h| h.readable() && !super::handlers::reaches_outside(h.name) && h.name != "run")
        {
            let _ = router.read(u32::try_from(e).ok(), h.name, "");
        }
    }
    router.drops();
    router.cleanup();
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swap: a router gives way to another one without losing what it holds (TOCS 2000, §2.6).
//!
//! It has two phases. A thread that wants a swap *prepares*: it builds and initialises the new router beside the running one,
//! which hears nothing of it. Then the workers return, each between two batches, and the thread that runs the router
//! *commits*: what is open outside is handed over, counts and state move, the new router takes the place of the old. What goes
//! wrong up to then leaves the old router as it was.

mod cleaner;
mod commit;
mod desk;
mod plan;

pub(crate) use cleaner::Cleaner;
pub(crate) use commit::commit;
pub(crate) use desk::Desk;
pub use plan::Plan;

use crate::Running;
use crate::build::{Classes, Settings, assemble, prepare};
use crate::handlers::{SWAP, denied};
use crate::router::Router;
use crate::running::BY_HANDLER;
use crate::shared::Shared;
use castanet_element::{CallError, Clock, Remote};
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Sources};
use castanet_spec::Origin;
use plan::Moves;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// A text that became a graph.
pub struct Loaded {
    /// The graph; its checks have passed.
    pub graph: Graph,
    /// What its elements are made from.
    pub classes: Arc<dyn Classes>,
    /// What it was read from.
    pub sources: Sources,
}

/// How the errors of a new configuration are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line per error, in the format of Click: for scripts of a configuration.
    Lines,
    /// With the line of the configuration, a caret and help.
    Snippets,
}

/// Reads configurations for hot swaps.
pub trait Loader: Send + Sync {
    /// Reads and checks a text; diagnostics call it by `name`. Its origin decides what it may require.
    ///
    /// # Errors
    /// What is wrong, for a person to read.
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, String>;
    /// Diagnostics for a person to read.
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String;
    /// Loads a package of classes for configurations to come, given its name or file; the names of its classes.
    ///
    /// # Errors
    /// Why it cannot be loaded, for a person to read.
    fn load_package(&self, _from: Origin, name: &str) -> Result<Vec<String>, String> {
        Err(format!("package '{name}': this program loads none"))
    }
    /// The names of the packages that are loaded.
    fn packages(&self) -> Vec<String> {
        Vec::new()
    }
    /// Called when a router has been prepared that may take the place of the one that runs.
    fn prepared(&self, _shared: &Arc<Shared>) {}
    /// Called when another router has taken the place of the one that ran, and that one is gone.
    fn swapped(&self, _shared: &Arc<Shared>) {}
}

/// A swap that has happened.
#[derive(Clone, Debug)]
pub struct Done {
    /// What has changed.
    pub plan: Plan,
    /// How long no packet moved.
    pub standstill: Duration,
}

/// A router that waits to take the place of the one that runs.
pub(crate) struct Candidate {
    pub router: Router,
    moves: Moves,
    plan: Plan,
    loader: Arc<dyn Loader>,
    /// When the workers were asked to return.
    since: Instant,
    /// Who waits to hear how it went; without, messages tell.
    reply: Option<SyncSender<Result<Done, String>>>,
}

impl Candidate {
    /// Closes again what was opened for nothing; what that says is of no interest.
    pub fn discard(mut self) {
        self.router.cleanup();
    }
    /// Tells how it went.
    fn tell(
        reply: Option<SyncSender<Result<Done, String>>>,
        running: &Running,
        outcome: Result<Done, String>,
    ) {
        match (reply, outcome) {
            // Who asked may have gone.
            (Some(reply), outcome) => drop(reply.send(outcome)),
            (None, Err(e)) => running.say(crate::running::DEFAULT, &format!("hot swap failed: {e}")),
            (None, Ok(_)) => {}
        }
    }
}

/// What who comes too late is told.
pub(crate) const STOPPED: &str = "the router has stopped";

impl Running {
    /// Says once how configurations are read.
    pub fn set_loader(&self, loader: Arc<dyn Loader>) {
        // The first one stays.
        let _ = self.loader.set(loader);
    }
    /// Lets whoever calls handlers swap: from now on there are `hotconfig` and `swapplan`.
    pub fn allow_swaps(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
    /// Whether there are handlers that swap.
    pub fn allows_swaps(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
    /// Loads a package of classes for configurations to come; the names of its classes.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn load_package(&self, from: Origin, name: &str) -> Result<Vec<String>, String> {
        self.loader()?.load_package(from, name)
    }
    /// The names of the packages that are loaded.
    pub fn packages(&self) -> Vec<String> {
        self.loader.get().map(|l| l.packages()).unwrap_or_default()
    }
    /// Carries out the handlers that swap and prepare for it, and returns what they answer; none if it is another one, or swaps
    /// are not allowed. `swap` is how the caller may swap.
    pub(crate) fn write_swap(
        &self,
        from: Origin,
        handler: &str,
        value: &str,
        style: Style,
        swap: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<Result<String, CallError>> {
        if !self.allows_swaps() {
            return None;
        }
        let flags = SWAP.iter().find(|h| h.0 == handler)?.1;
        if !from.may_write(flags) {
            return Some(Err(denied(handler)));
        }
        let done = match handler {
            "hotconfig" => swap(value).map(|()| String::new()),
            "loadpackage" => self.load_package(from, value.trim()).map(|_| String::new()),
            // A write because it reads what the text requires, which takes a right.
            "swapplan" => self.plan(from, BY_HANDLER, value, style).map(|p| p.to_string()),
            _ => return None,
        };
        Some(done.map_err(CallError::Failed))
    }
    fn loader(&self) -> Result<Arc<dyn Loader>, String> {
        self.loader.get().cloned().ok_or_else(|| "the configuration cannot be swapped".into())
    }

    /// Has the configuration of a router read again by a thread of its own, unless another takes its place before; whether it
    /// will be.
    pub(crate) fn read_again(&self, shared: &Shared) -> bool {
        let (Ok(_), Some(running)) = (self.loader(), self.strong()) else { return false };
        // A client that sent the configuration may do no more by it than before.
        let (origin, config, before) = (shared.names.origin(), shared.config.clone(), Remote::swaps(self));
        let work = move || {
            // Several elements may have asked.
            if running.swaps() != before {
                return;
            }
            if let Err(e) = running.swap(origin, "configuration", &config) {
                let text =
                    format!("the old configuration goes on, it cannot be read again:\n{}", e.trim_end());
                running.say(crate::running::DEFAULT, &text);
            }
        };
        std::thread::Builder::new().name("read again".into()).spawn(work).is_ok()
    }

    /// What a swap to a configuration would change.
    ///
    /// # Errors
    /// When swaps are not allowed, or something is wrong with the configuration.
    pub fn plan(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Plan, String> {
        let loader = self.loader()?;
        let shared = self.current().ok_or(STOPPED)?;
        let Loaded { graph, classes, sources } = loader.load(from, name, text, style)?;
        let settings = Settings { origin: from, ..self.settings.clone() };
        let running = self.strong().ok_or(STOPPED)?;
        let prepared = prepare(graph, classes, &sources, running, settings, text.to_string());
        let prepared = prepared.map_err(|d| loader.render(&sources, &d, style))?;
        Ok(Plan::new(&shared, &prepared.shared))
    }

    /// Swaps the configuration, and waits until that has happened. Not for workers.
    ///
    /// # Errors
    /// What keeps the new configuration from running; the old one runs on then.
    pub fn swap(&self, from: Origin, name: &str, text: &str) -> Result<Done, String> {
        let desk = self.desk.take(true)?;
        let (tx, rx) = sync_channel(1);
        let (clock, style) = (self.settings.clock.clone(), Style::Snippets);
        let (old, candidate) = self.candidate(from, (name, text), style, clock, Some(tx))?;
        desk.offer(candidate)?;
        old.halt();
        rx.recv().unwrap_or_else(|_| Err(STOPPED.into()))
    }

    /// Swaps the configuration as soon as the worker that asks has ended its turn.
    pub(crate) fn swap_soon(&self, from: Origin, name: &str, text: &str, clock: Clock) -> Result<(), String> {
        let desk = self.desk.take(false)?;
        let (old, candidate) = self.candidate(from, (name, text), Style::Lines, clock, None)?;
        desk.offer(candidate)?;
        old.halt();
        Ok(())
    }

    fn candidate(
        &self,
        from: Origin,
        (name, text): (&str, &str),
        style: Style,
        clock: Clock,
        reply: Option<SyncSender<Result<Done, String>>>,
    ) -> Result<(Arc<Shared>, Candidate), String> {
        let loader = self.loader()?;
        let old = self.current().ok_or(STOPPED)?;
        let Loaded { graph, classes, sources } = loader.load(from, name, text, style)?;
        let settings = Settings { clock, origin: from, ..self.settings.clone() };
        let render = |d: Vec<Diagnostic>| loader.render(&sources, &d, style);
        let running = self.strong().ok_or(STOPPED)?;
        let prepared =
            prepare(graph, classes, &sources, running, settings, text.to_string()).map_err(render)?;
        let (router, warnings) = assemble(prepared, |new| Moves::inherited(&old, new)).map_err(render)?;
        if !warnings.is_empty() {
            self.say(crate::running::DEFAULT, loader.render(&sources, &warnings, style).trim_end());
        }
        loader.prepared(&router.shared);
        let (moves, plan) = (Moves::new(&old, &router.shared), Plan::new(&old, &router.shared));
        let since = Instant::now();
        Ok((old, Candidate { router, moves, plan, loader, since, reply }))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first phase of a hot swap: reads, builds and initialises a configuration while another one runs.

use super::candidate::{Candidate, Done, Reply};
use super::error::SwapError;
use super::loader::{Loaded, Loader, Style};
use super::plan::{Moves, Plan, pairs};
use crate::assemble::assemble;
use crate::in_kernel::check_candidate;
use crate::options::Settings;
use crate::prepare::prepare;
use crate::running::Running;
use crate::shared::{Shared, SwapCommand};
use castanet_element::{CallError, Clock, HandlerError};
use castanet_lang::Diagnostic;
use castanet_spec::Origin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

/// The name by which diagnostics call a configuration text that was written to a handler.
pub(crate) const BY_HANDLER: &str = "config";

impl Running {
    /// Sets the loader, which reads new configurations. Later calls have no effect.
    pub fn set_loader(&self, loader: Arc<dyn Loader>) {
        // This fails if a loader is set already. The first loader stays.
        let _ = self.loader.set(loader);
    }
    /// Enables the handlers `hotconfig`, `swapplan` and `loadpackage`.
    pub fn allow_swaps(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
    /// Loads a package of classes for later configurations. Returns the names of its classes.
    ///
    /// # Errors
    /// When the package cannot be loaded. The error gives the reason.
    pub fn load_package(&self, from: Origin, name: &str) -> Result<Vec<String>, SwapError> {
        self.loader()?.load_package(from, name)
    }
    /// Carries out a command, and returns the answer. `swap` is called for the command that replaces the configuration.
    /// On a worker, `swap` must only request the hot swap, because a hot swap waits for all workers. On any other
    /// thread, `swap` waits for the result.
    pub(crate) fn command(
        &self,
        from: Origin,
        command: SwapCommand,
        value: &str,
        style: Style,
        swap: impl FnOnce(&str) -> Result<String, SwapError>,
    ) -> Result<String, CallError> {
        let done = match command {
            SwapCommand::Replace => swap(value),
            SwapCommand::LoadPackage => self.load_package(from, value.trim()).map(|_| String::new()),
            SwapCommand::Plan => self.plan(from, BY_HANDLER, value, style).map(|p| p.to_string()),
        };
        done.map_err(|e| HandlerError::Failed(e.to_string()).into())
    }
    fn loader(&self) -> Result<Arc<dyn Loader>, SwapError> {
        self.loader.get().cloned().ok_or(SwapError::NoLoader)
    }

    /// Starts a thread that reads the text of a configuration again and swaps to it. Returns false if the configuration
    /// has been replaced or the thread could not be started.
    pub(crate) fn reread_config(&self, shared: &Shared) -> bool {
        let (Ok(_), Some(running)) = (self.loader(), self.strong()) else { return false };
        // The configuration keeps its origin. Otherwise a client that has written it could gain rights.
        let (origin, config, before) = (shared.names.origin(), shared.config.clone(), self.swapped());
        let work = move || {
            // Several elements may have requested that the configuration be read again. If another swap has taken place
            // in the meantime, do nothing.
            if running.swapped() != before {
                return;
            }
            if let Err(e) = running.swap(origin, "configuration", &config) {
                let text = format!(
                    "the old configuration goes on, it cannot be read again:\n{}",
                    e.to_string().trim_end()
                );
                running.session.print(&text);
            }
        };
        std::thread::Builder::new().name("reread".into()).spawn(work).is_ok()
    }

    /// Returns the changes that a swap to a configuration would make.
    ///
    /// # Errors
    /// When the program has set no loader, the router has stopped, or the configuration has errors.
    pub fn plan(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Plan, SwapError> {
        let loader = self.loader()?;
        let shared = self.current().ok_or(SwapError::Stopped)?;
        let Loaded { graph, classes, sources } = loader.load(from, name, text, style)?;
        let settings = Settings { origin: from, ..self.settings.clone() };
        let running = self.strong().ok_or(SwapError::Stopped)?;
        let prepared = prepare(graph, classes, &sources, running.parts(), settings, text.into());
        let prepared = prepared.map_err(|d| SwapError::Refused(loader.render(&sources, &d, style)))?;
        Ok(Plan::new(&shared, &prepared.shared, &pairs(&shared, &prepared.shared)))
    }

    /// Swaps to another configuration, and waits for the result. Workers must not call this, because the swap waits for
    /// them.
    ///
    /// # Errors
    /// When the new configuration cannot run. In that case, the old one continues.
    pub fn swap(&self, from: Origin, name: &str, text: &str) -> Result<Done, SwapError> {
        let permit = self.slot.acquire(true)?;
        let (tx, rx) = sync_channel(1);
        let (clock, style) = (self.settings.clock.clone(), Style::Snippets);
        let (old, candidate) = self.candidate(from, (name, text), style, clock, Some(tx))?;
        permit.submit(candidate)?;
        old.halt();
        rx.recv().unwrap_or(Err(SwapError::Stopped))
    }

    /// Requests a swap to another configuration. The swap begins when the calling worker has ended its turn.
    pub(crate) fn swap_soon(&self, from: Origin, text: &str, clock: Clock) -> Result<(), SwapError> {
        let permit = self.slot.acquire(false)?;
        let (old, candidate) = self.candidate(from, (BY_HANDLER, text), Style::Lines, clock, None)?;
        permit.submit(candidate)?;
        old.halt();
        Ok(())
    }

    fn candidate(
        &self,
        from: Origin,
        (name, text): (&str, &str),
        style: Style,
        clock: Clock,
        reply: Option<Reply>,
    ) -> Result<(Arc<Shared>, Candidate), SwapError> {
        let loader = self.loader()?;
        let old = self.current().ok_or(SwapError::Stopped)?;
        let Loaded { graph, classes, sources } = loader.load(from, name, text, style)?;
        if graph.is_empty() {
            return Err(SwapError::Empty);
        }
        let settings = Settings { clock, origin: from, ..self.settings.clone() };
        let render = |d: Vec<Diagnostic>| SwapError::Refused(loader.render(&sources, &d, style));
        let running = self.strong().ok_or(SwapError::Stopped)?;
        let prepared =
            prepare(graph, classes, &sources, running.parts(), settings, text.into()).map_err(render)?;
        let (assembly, warnings) = assemble(prepared, |new| Moves::inherited(&old, new)).map_err(render)?;
        check_candidate(&old, &assembly).map_err(|why| SwapError::Refused(format!("error: {why}\n")))?;
        let warnings = match warnings.is_empty() {
            true => String::new(),
            false => loader.render(&sources, &warnings, style).trim_end().to_string(),
        };
        if !warnings.is_empty() {
            self.session.print(&warnings);
        }
        loader.prepared(&assembly.shared);
        let new = &assembly.shared;
        let pairs = pairs(&old, new);
        let (moves, plan) = (Moves::new(&old, new, &pairs), Plan::new(&old, new, &pairs));
        let since = Instant::now();
        Ok((old, Candidate { assembly, pairs, moves, plan, warnings, loader, since, reply }))
    }
}

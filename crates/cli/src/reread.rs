// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads new configurations for a running router: texts written to a handler, and the file, which is reread on SIGHUP.

use crate::classes::Available;
use crate::control::FromClients;
use crate::kernel::Driver;
use crate::load::{NO_PACKAGES, Reach, Source, complain, load_in};
use crate::signals::{self, Handle, Hangup};
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_runtime::{Running, Shared};
use castanet_spec::Origin;
use std::sync::{Arc, OnceLock};

/// Reads later configurations with the classes, packages and variables of the first one.
pub struct Reader {
    available: Arc<Available>,
    defines: Vec<(String, String)>,
    /// The limits for configurations that clients send.
    allowed: FromClients,
    /// Registers the signals that elements watch.
    signals: OnceLock<Handle>,
    /// Whether all errors have the form of Click's driver.
    classic: bool,
    driver: Driver,
}

impl Reader {
    /// Makes a reader. `defines` are the variables of the command line; `allowed` says which
    /// packages and libraries a client's configuration may name in `require`.
    pub fn new(
        available: Arc<Available>,
        defines: &[(String, String)],
        allowed: &FromClients,
        driver: Driver,
    ) -> Arc<Reader> {
        Reader::with(available, defines, allowed.clone(), false, driver)
    }
    /// Like [`Reader::new`], for the classic driver: all errors have its form, including those for clients.
    pub fn classic(available: Arc<Available>, defines: &[(String, String)]) -> Arc<Reader> {
        Reader::with(available, defines, FromClients::default(), true, Driver::Packet)
    }
    fn with(
        available: Arc<Available>,
        defines: &[(String, String)],
        allowed: FromClients,
        classic: bool,
        driver: Driver,
    ) -> Arc<Reader> {
        Arc::new(Reader {
            available,
            defines: defines.to_vec(),
            allowed,
            signals: OnceLock::new(),
            classic,
            driver,
        })
    }
    /// Returns the messages as text. If there are errors, the format of Click's driver ends with the line
    /// `NOT_INITIALIZED`. This line is left out if the text itself was `misread`, for example because of a syntax
    /// error.
    fn rendered(&self, sources: &Sources, all: &[Diagnostic], style: Style, misread: bool) -> String {
        if !self.classic && style != Style::Lines {
            return castanet_lang::render::render_pretty(sources, all, false);
        }
        let mut text = castanet_lang::render::render_classic(sources, all);
        if !misread && all.iter().any(Diagnostic::is_error) {
            text.push_str(NOT_INITIALIZED);
            text.push('\n');
        }
        text
    }
    /// Registers this reader as the loader of a router, and catches signals for all configurations of the
    /// router. With `allow`, handlers may request hot swaps.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub fn attend(
        self: Arc<Reader>,
        running: &Arc<Running>,
        allow: bool,
        hangup: Option<Hangup>,
    ) -> std::io::Result<()> {
        running.set_loader(self.clone());
        if allow {
            running.allow_swaps();
        }
        let _ = self.signals.set(signals::watch(running, hangup, self.classic)?);
        Ok(())
    }
}

/// The last line that Click's driver prints if the elements of a configuration cannot be connected or initialised.
pub const NOT_INITIALIZED: &str = "Router could not be initialized!";

impl Loader for Reader {
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, SwapError> {
        let mut source = Source::text(name, text, self.defines.clone());
        if !from.may_require_anything() {
            source.reach = Reach::Client(self.allowed.clone());
        }
        let loaded = load_in(&self.available, &source, Unknown::Error);
        if loaded.failed() {
            let text = self.rendered(&loaded.sources, &loaded.diagnostics, style, loaded.misread);
            return Err(SwapError::Refused(text));
        }
        let graph = self.driver.apply(loaded.graph, loaded.classes.as_ref());
        Ok(Loaded { graph, classes: loaded.classes, sources: loaded.sources })
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String {
        self.rendered(sources, diagnostics, style, false)
    }
    fn load_package(&self, from: Origin, name: &str) -> Result<Vec<String>, SwapError> {
        if !from.may_require_anything() && !self.allowed.allow_packages {
            return Err(SwapError::Refused(format!("package '{name}': {NO_PACKAGES}")));
        }
        let classes =
            self.available.packages.keep(name).map_err(|refusal| SwapError::Refused(refusal.to_string()))?;
        Ok(classes.into_iter().map(str::to_string).collect())
    }
    fn packages(&self) -> Vec<String> {
        self.available.packages.names()
    }
    fn prepared(&self, shared: &Arc<Shared>) {
        // Signals are caught before the router runs, because their default action may end the process.
        if let Some(handle) = self.signals.get() {
            handle.catch(shared);
        }
    }
    fn swapped(&self, _: &Arc<Shared>) {
        self.available.packages.settle();
    }
}

/// Rereads a configuration, swaps to it, and prints the result.
pub fn reread(running: &Running, read: impl Fn() -> Result<Source, String>) {
    let swapped = read().and_then(|source| {
        let done = running.swap(Origin::Operator, &source.name, &castanet_lang::bytes::decode(&source.bytes));
        Ok((source.name, done.map_err(|e| e.to_string())?))
    });
    match swapped {
        Ok((name, done)) => {
            let text = done.plan.to_string();
            let counts = text.lines().last().unwrap_or_default();
            complain(&format!("{name} reread: {counts}; {:.3} ms", done.standstill.as_secs_f64() * 1e3));
        }
        Err(e) => {
            complain(&format!("the old configuration continues, the new one cannot run:\n{}", e.trim_end()))
        }
    }
}

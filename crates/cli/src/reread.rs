// SPDX-License-Identifier: MIT OR Apache-2.0
//! New configurations for a running router: by a handler, or from the file, which SIGHUP rereads.

use crate::control::FromClients;
use crate::load::{NO_PACKAGES, Reach, Source, complain, load_in};
use crate::signals::{self, Handle, Hangup};
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_package::Packages;
use castanet_runtime::swap::{Loaded, Loader, Style, SwapError};
use castanet_runtime::{Running, Shared};
use castanet_spec::Origin;
use std::sync::{Arc, OnceLock};

/// Reads later configurations with the packages and variables of the first one.
pub struct Reader {
    packages: Arc<Packages>,
    defines: Vec<(String, String)>,
    /// The limits for configurations that clients send.
    allowed: FromClients,
    /// Registers the signals that elements watch.
    signals: OnceLock<Handle>,
}

impl Reader {
    /// `defines` are the variables of the command line, `allowed` is what configurations of clients may require.
    pub fn new(packages: Arc<Packages>, defines: &[(String, String)], allowed: &FromClients) -> Arc<Reader> {
        let (defines, allowed) = (defines.to_vec(), allowed.clone());
        Arc::new(Reader { packages, defines, allowed, signals: OnceLock::new() })
    }
    /// Becomes the loader of a router, and catches signals for all its configurations. With `allow`, handlers may swap.
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
        let _ = self.signals.set(signals::watch(running, hangup)?);
        Ok(())
    }
}

impl Loader for Reader {
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, SwapError> {
        let mut source = Source::text(name, text, self.defines.clone());
        if !from.may_require_anything() {
            source.reach = Reach::Client(self.allowed.clone());
        }
        let loaded = load_in(&self.packages, &source, Unknown::Error);
        if loaded.failed() {
            return Err(SwapError::Refused(self.render(&loaded.sources, &loaded.diagnostics, style)));
        }
        Ok(Loaded { graph: loaded.graph, classes: loaded.classes.0, sources: loaded.sources })
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String {
        match style {
            Style::Lines => castanet_lang::render::render_classic(sources, diagnostics),
            Style::Snippets => castanet_lang::render::render_pretty(sources, diagnostics, false),
        }
    }
    fn load_package(&self, from: Origin, name: &str) -> Result<Vec<String>, SwapError> {
        if !from.may_require_anything() && !self.allowed.allow_packages {
            return Err(SwapError::Refused(format!("package '{name}': {NO_PACKAGES}")));
        }
        let classes = self.packages.keep(name).map_err(|refusal| SwapError::Refused(refusal.to_string()))?;
        Ok(classes.into_iter().map(str::to_string).collect())
    }
    fn packages(&self) -> Vec<String> {
        self.packages.names()
    }
    fn prepared(&self, shared: &Arc<Shared>) {
        // Before the router runs, because the default action of a signal may end the process.
        if let Some(handle) = self.signals.get() {
            handle.catch(shared);
        }
    }
    fn swapped(&self, _: &Arc<Shared>) {
        self.packages.settle();
    }
}

/// Rereads a configuration, swaps to it, and prints the result.
pub fn reread(running: &Running, read: impl Fn() -> Result<Source, String>) {
    let swapped = read().and_then(|source| {
        let done = running.swap(Origin::Operator, &source.name, &String::from_utf8_lossy(&source.bytes));
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

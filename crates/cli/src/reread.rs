// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations that come while a router runs: by a handler, or because the hangup signal has the file read again.

use crate::control::FromClients;
use crate::load::{NO_PACKAGES, Reach, Source, complain, load_in};
use crate::signals::{self, Handle, Hangup};
use castanet_lang::{Diagnostic, Sources, Unknown};
use castanet_package::Packages;
use castanet_runtime::swap::{Loaded, Loader};
use castanet_runtime::{Running, Shared};
use castanet_spec::Origin;
use std::sync::{Arc, OnceLock};

/// Reads configurations as the first one was read.
pub struct Reader {
    packages: Arc<Packages>,
    defines: Vec<(String, String)>,
    /// What clients' configurations may require.
    allowed: FromClients,
    /// Catches the signals of elements.
    signals: OnceLock<Handle>,
}

impl Reader {
    /// With the packages of the process, the variables of the command line, and what it allows clients.
    pub fn new(packages: Arc<Packages>, defines: &[(String, String)], allowed: &FromClients) -> Arc<Reader> {
        let (defines, allowed) = (defines.to_vec(), allowed.clone());
        Arc::new(Reader { packages, defines, allowed, signals: OnceLock::new() })
    }
    /// Reads what a router is swapped to, and catches signals for all its configurations; with `allow` handlers may swap.
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
    fn load(&self, from: Origin, name: &str, text: &str) -> Result<Loaded, String> {
        let mut source = Source::text(name, text, self.defines.clone());
        if !from.may_require_anything() {
            source.reach = Reach::Client(self.allowed.clone());
        }
        let loaded = load_in(&self.packages, &source, Unknown::Error);
        if loaded.failed() {
            return Err(self.render(&loaded.sources, &loaded.diagnostics));
        }
        Ok(Loaded { graph: loaded.graph, classes: loaded.classes.0, sources: loaded.sources })
    }
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic]) -> String {
        castanet_lang::render::render_classic(sources, diagnostics)
    }
    fn load_package(&self, from: Origin, name: &str) -> Result<Vec<String>, String> {
        if !from.may_require_anything() && !self.allowed.allow_packages {
            return Err(format!("package '{name}': {NO_PACKAGES}"));
        }
        let classes = self.packages.keep(name).map_err(|refusal| refusal.to_string())?;
        Ok(classes.into_iter().map(str::to_string).collect())
    }
    fn packages(&self) -> Vec<String> {
        self.packages.names()
    }
    fn prepared(&self, shared: &Arc<Shared>) {
        // Before the router runs: what nobody catches may end the process.
        if let Some(handle) = self.signals.get() {
            handle.catch(shared);
        }
    }
    fn swapped(&self, _: &Arc<Shared>) {
        self.packages.settle();
    }
}

/// Reads a configuration again and swaps to it; tells how that went.
pub fn reread(running: &Running, read: impl Fn() -> Result<Source, String>) {
    let swapped = read().and_then(|source| {
        let done = running.swap(Origin::Operator, &source.name, &String::from_utf8_lossy(&source.bytes))?;
        Ok((source.name, done))
    });
    match swapped {
        Ok((name, done)) => {
            let text = done.plan.to_string();
            let counts = text.lines().last().unwrap_or_default();
            complain(&format!("{name} read again: {counts}; {:.3} ms", done.standstill.as_secs_f64() * 1e3));
        }
        Err(e) => {
            complain(&format!("the old configuration goes on, the new one cannot run:\n{}", e.trim_end()))
        }
    }
}

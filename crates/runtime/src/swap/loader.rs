// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads configurations for hot swaps.

use super::error::SwapError;
use crate::shared::Shared;
use castanet_element::class::Classes;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Sources};
use castanet_spec::Origin;
use std::sync::Arc;

/// A configuration that was read and checked.
pub struct Loaded {
    /// The graph; its checks have passed.
    pub graph: Graph,
    /// The classes of its elements.
    pub classes: Arc<dyn Classes>,
    /// The texts that it was read from.
    pub sources: Sources,
}

/// The format of errors of a new configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line per error, in the format of Click, for swaps that scripts of a configuration request.
    Lines,
    /// Each error with its line of the configuration, a caret and help.
    Snippets,
}

/// Reads configurations for hot swaps.
pub trait Loader: Send + Sync {
    /// Reads and checks the text of a configuration, which diagnostics call `name`. The origin `from` decides
    /// what the text may require.
    ///
    /// # Errors
    /// When the text has errors. They are returned as text for a person to read.
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, SwapError>;
    /// Formats diagnostics for a person to read.
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String;
    /// Loads a package of classes, given by name or file, for later configurations. Returns the names of its
    /// classes.
    ///
    /// # Errors
    /// When it cannot be loaded. The error says why, in a text for a person to read.
    fn load_package(&self, _from: Origin, name: &str) -> Result<Vec<String>, SwapError> {
        Err(SwapError::Refused(format!("package '{name}': this program loads none")))
    }
    /// The names of the packages that are loaded.
    fn packages(&self) -> Vec<String> {
        Vec::new()
    }
    /// Called when a configuration has been prepared that may replace the running one.
    fn prepared(&self, _shared: &Arc<Shared>) {}
    /// Called when a configuration has replaced the previous one, and the previous one has been freed.
    fn swapped(&self, _shared: &Arc<Shared>) {}
}

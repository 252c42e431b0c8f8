// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface by which hot swaps read configurations. The program implements it.

use super::error::SwapError;
use crate::shared::Shared;
use castanet_element::class::Classes;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, Sources};
use castanet_spec::Origin;
use std::sync::Arc;

/// A configuration that was read and checked.
pub struct Loaded {
    /// The graph, whose checks have passed.
    pub graph: Graph,
    /// The classes of the graph's elements.
    pub classes: Arc<dyn Classes>,
    /// The files and texts from which the graph was read.
    pub sources: Sources,
}

/// The format of the errors in a new configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One line per error, as in Click. For swaps that handlers request.
    Lines,
    /// Several lines per error: the message, the line of the configuration with a caret, and help.
    Snippets,
}

/// Reads configurations and packages for hot swaps.
pub trait Loader: Send + Sync {
    /// Reads and checks the text of a configuration. Diagnostics call the text `name`. The origin `from` decides which
    /// files and packages the text may load.
    ///
    /// # Errors
    /// When the text has errors. They are returned as text for a person to read.
    fn load(&self, from: Origin, name: &str, text: &str, style: Style) -> Result<Loaded, SwapError>;
    /// Formats diagnostics as text for a person to read.
    fn render(&self, sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String;
    /// Loads a package of classes for later configurations. `name` is the name of the package or a file. Returns the
    /// names of its classes.
    ///
    /// # Errors
    /// When the package cannot be loaded. The error gives the reason as text for a person to read.
    fn load_package(&self, _from: Origin, name: &str) -> Result<Vec<String>, SwapError> {
        Err(SwapError::Refused(format!("package '{name}': this program loads none")))
    }
    /// The names of the packages that have been loaded.
    fn packages(&self) -> Vec<String> {
        Vec::new()
    }
    /// Called when a configuration has been prepared. The swap to this configuration can still fail.
    fn prepared(&self, _shared: &Arc<Shared>) {}
    /// Called when a configuration has replaced the previous one, and the previous one is freed.
    fn swapped(&self, _shared: &Arc<Shared>) {}
}

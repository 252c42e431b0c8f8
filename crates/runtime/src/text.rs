// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds routers and graphs from the text of a configuration in one call.

use crate::errors::failed;
use crate::options::Options;
use crate::router::{Router, build};
use crate::swap::Loaded;
use castanet_element::class::Classes;
use castanet_graph::Graph;
use castanet_lang::bytes::encode;
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown};
use std::fmt;
use std::sync::Arc;

/// The errors in the text of a configuration. Printing shows each error with its line of the text, a caret and help.
pub struct TextError {
    /// The text of the configuration, for printing its lines.
    pub sources: Sources,
    /// The errors and warnings, with at least one error.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&castanet_lang::render::render_pretty(&self.sources, &self.diagnostics, false))
    }
}

impl fmt::Debug for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TextError {}

impl Loaded {
    /// Reads and checks the text of a configuration. Diagnostics call the text `name`. `defines` are the values of
    /// variables. The text cannot load libraries with `require(library)`. The second return value holds the warnings.
    ///
    /// # Errors
    /// When the text is not a valid configuration of these classes.
    pub fn from_text(
        name: &str,
        text: &[u8],
        defines: &[(String, String)],
        classes: Arc<dyn Classes>,
    ) -> Result<(Loaded, Vec<Diagnostic>), TextError> {
        let mut sources = Sources::new();
        let known = classes.as_ref();
        let options =
            castanet_lang::Options { classes: known, defines, library: &NoLibrary, unknown: Unknown::Error };
        let (flat, mut diagnostics) = castanet_lang::load_bytes(&mut sources, name, text, &options);
        if failed(&diagnostics) {
            return Err(TextError { sources, diagnostics });
        }
        let (graph, more) = Graph::new(flat, known);
        diagnostics.extend(more);
        if failed(&diagnostics) {
            return Err(TextError { sources, diagnostics });
        }
        Ok((Loaded { graph, classes, sources }, diagnostics))
    }

    /// Builds and initialises a router. The second return value holds the warnings.
    ///
    /// # Errors
    /// Those of [`build`].
    pub fn build(self, options: Options) -> Result<(Router, Vec<Diagnostic>), TextError> {
        let Loaded { graph, classes, sources } = self;
        build(graph, classes, &sources, options).map_err(|diagnostics| TextError { sources, diagnostics })
    }
}

impl Router {
    /// Builds a router from the text of a configuration. Warnings are dropped. Use [`Loaded`] to get them.
    ///
    /// # Errors
    /// When the text is not a valid configuration of these classes, or its elements cannot be initialised.
    pub fn from_text(text: &str, classes: Arc<dyn Classes>, options: Options) -> Result<Router, TextError> {
        let (loaded, _) = Loaded::from_text("config", &encode(text), &[], classes)?;
        Ok(loaded.build(options)?.0)
    }
}

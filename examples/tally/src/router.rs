// SPDX-License-Identifier: MIT OR Apache-2.0
//! For programs that link this crate: a registry of Castanet's classes and this crate's classes, and routers made with
//! this registry.

use castanet_classes::Registry;
use castanet_runtime::swap::Loaded;
use castanet_runtime::{Options, Router};
use castanet_tally::CLASSES;
use std::sync::Arc;

/// Castanet's classes and those of this crate.
pub fn registry() -> Registry {
    let mut all = Registry::new();
    for &class in CLASSES {
        all.add(class);
    }
    all
}

/// Makes a router from the text of a configuration: expands the compounds, checks the graph, and builds the elements.
///
/// # Errors
/// The errors of the configuration, as text.
pub fn router(file: &str, text: &[u8], options: Options) -> Result<Router, String> {
    let loaded = Loaded::from_text(file, text, &[], Arc::new(registry()));
    let built = loaded.and_then(|(loaded, _)| loaded.build(options));
    built.map(|(router, _)| router).map_err(|e| e.to_string())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A registry with the classes of this crate, and routers made with it, for programs that these classes are linked into.

use castanet_elements::Registry;
use castanet_graph::Graph;
use castanet_lang::{Diagnostic, NoLibrary, Sources, Unknown, load_bytes, render};
use castanet_runtime::{Options, Router, Table};
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

/// Makes a router of a configuration: text to flat configuration, to checked graph, to elements.
///
/// # Errors
/// The errors of the configuration, as text.
pub fn router(file: &str, text: &[u8], options: Options) -> Result<Router, String> {
    let classes = Arc::new(registry());
    let table = Table(classes.clone());
    let mut sources = Sources::new();
    let language = castanet_lang::Options {
        classes: &table,
        defines: &[],
        library: &NoLibrary,
        unknown: Unknown::Error,
    };
    let (flat, mut wrong) = load_bytes(&mut sources, file, text, &language);
    if !wrong.iter().any(Diagnostic::is_error) {
        let (graph, more) = Graph::new(flat, &table);
        wrong.extend(more);
        if !wrong.iter().any(Diagnostic::is_error) {
            match castanet_runtime::build(graph, classes, &sources, options) {
                Ok((router, _)) => return Ok(router),
                Err(more) => wrong.extend(more),
            }
        }
    }
    Err(render::render_pretty(&sources, &wrong, false))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions of elements, for messages and tools.

use castanet_element::{Info, Place};
use castanet_graph::Graph;
use castanet_lang::Sources;
use castanet_lang::flat::Element;
use std::sync::Arc;

/// Returns the descriptions of all elements.
pub(crate) fn infos(graph: &Graph, sources: &Sources) -> Arc<[Info]> {
    // The name of the last element's file. Most elements are in the same file as the one before.
    let mut last: Arc<str> = Arc::default();
    let info = |e: &Element| {
        let (file, line) = sources.file_and_line(e.span);
        if *last != *file {
            last = file.into();
        }
        Info { name: e.name.clone(), class: e.class.clone(), place: Place::new(last.clone(), line) }
    };
    graph.flat.elements.iter().map(info).collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions of elements, for messages and tools.

use castanet_element::Info;
use castanet_graph::Graph;
use castanet_lang::Sources;
use castanet_lang::flat::Element;
use std::fmt::Write as _;
use std::sync::Arc;

/// Returns the descriptions of all elements.
pub(crate) fn infos(graph: &Graph, sources: &Sources) -> Arc<[Info]> {
    let info = |e: &Element| {
        let (file, line) = sources.file_and_line(e.span);
        let mut place = String::with_capacity(file.len() + 8);
        // Writing to a string does not fail.
        let _ = write!(place, "{file}:{line}");
        Info {
            name: e.name.clone(),
            class: e.class.clone(),
            config: e.config.clone(),
            place,
            scope: e.scope().to_string(),
        }
    };
    graph.flat.elements.iter().map(info).collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions of elements, for messages and tools.

use castanet_element::{Info, Place, SharedStr};
use castanet_graph::Graph;
use castanet_lang::Sources;
use castanet_lang::flat::Element;
use std::sync::Arc;

/// Returns the descriptions of all elements.
pub(crate) fn infos(graph: &Graph, sources: &Sources) -> Arc<[Info]> {
    let elements = &graph.flat.elements;
    let names: String = elements.iter().map(|e| e.name.as_str()).collect();
    let (names, mut end): (Arc<str>, usize) = (names.into(), 0);
    // The name of the last element's file. Most elements are in the same file as the one before.
    let mut last: Arc<str> = Arc::default();
    let info = |e: &Element| {
        let start = end;
        end += e.name.len();
        let (file, line) = sources.file_and_line(e.span);
        if *last != *file {
            last = file.into();
        }
        Info {
            name: SharedStr::new(names.clone(), start..end),
            class: e.class.clone(),
            place: Place::new(last.clone(), line),
        }
    };
    elements.iter().map(info).collect()
}

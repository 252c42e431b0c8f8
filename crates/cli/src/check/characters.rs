// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings about look-alike characters in arguments: typographic quotes, dashes, invisible characters.

use castanet_graph::Graph;
use castanet_lang::Diagnostic;
use castanet_lang::look_alike::in_arguments;

/// Warns about the first look-alike character in the arguments of each element. The others are not reported, because
/// a text copied from a web page often has many.
pub fn look_alikes(graph: &Graph) -> Vec<Diagnostic> {
    let elements = graph.flat.elements.iter();
    let warning = |e: &castanet_lang::Element| {
        let (place, help) = in_arguments(&e.config).into_iter().next()?;
        let message = format!("'{}' gets this character as part of its argument", e.name);
        Some(Diagnostic::warning(message, e.config_place(place)).help(help))
    };
    elements.filter_map(warning).collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts errors of elements to diagnostics.

use castanet_element::ConfigError;
use castanet_graph::Graph;
use castanet_lang::Diagnostic;

/// Converts the errors of element `e` to diagnostics. Each diagnostic points to a range of the element's configuration
/// string. `doing` says what the router was doing when the errors occurred.
pub(crate) fn explain(graph: &Graph, e: usize, doing: &str, errors: ConfigError) -> Vec<Diagnostic> {
    // Nearly all elements have none.
    let Some(element) = graph.element(e).filter(|_| !errors.0.is_empty()) else { return Vec::new() };
    let context = format!("While {doing} '{}':", element.declaration());
    let each = errors.0.into_iter().map(|error| {
        let whole = error.range.end > element.config.len();
        let span = if whole { element.span } else { element.config_place(error.range.clone()) };
        let mut d = match error.warning {
            true => Diagnostic::warning(error.message, span),
            false => Diagnostic::error(error.message, span),
        };
        d.classic = error.classic;
        d.beside_errors = error.beside_errors;
        d = d.context(context.clone(), element.span);
        for o in element.origin.iter().rev() {
            d = d.label(format!("in '{}', used here", o.instance), o.span);
        }
        d.replacement = error.replacement.map(|text| (span, text));
        if error.help.is_empty() { d } else { d.help(error.help) }
    });
    each.collect()
}

/// Whether any of the diagnostics is an error, not just a warning.
pub(crate) fn failed(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

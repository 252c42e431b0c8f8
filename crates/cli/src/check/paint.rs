// SPDX-License-Identifier: MIT OR Apache-2.0
//! A warning about `CheckPaint` where `PaintTee` is meant.
//!
//! Figure 8 of the SOSP 1999 and TOCS 2000 papers has a CheckPaint that passes all packets and copies those of one colour to output 1.
//! That element is called PaintTee in Click. A router drawn after the figure with today's CheckPaint does not forward packets of other
//! colours.

use castanet_graph::Graph;
use castanet_lang::args::{cleaned, keyword, split, unquote};
use castanet_lang::{Diagnostic, PortRef};

/// The type of redirects (RFC 792).
const REDIRECT: &str = "5";

/// Warnings for each CheckPaint whose output 1 leads to an ICMPError of type redirect.
pub fn redirects(graph: &Graph) -> Vec<Diagnostic> {
    (0..graph.len()).filter(|&e| is(graph, e, "CheckPaint")).filter_map(|e| warning(graph, e)).collect()
}

fn is(graph: &Graph, e: usize, class: &str) -> bool {
    graph.spec(e).is_some_and(|s| s.name == class)
}

fn warning(graph: &Graph, e: usize) -> Option<Diagnostic> {
    let (element, error) = (graph.element(e)?, redirect_behind(graph, PortRef { element: e, port: 1 })?);
    let name = graph.declaration(e);
    let warning = Diagnostic::warning(
        format!("output 1 of '{name}' leads to redirects, but it has the packets of all other colours"),
        element.span,
    );
    let help = format!(
        "use PaintTee({}): it passes all packets to output 0 and copies those of the colour to output 1, like the CheckPaint of the papers",
        element.config.trim()
    );
    let warning = match graph.element(error) {
        Some(redirect) => warning.label("redirects are sent here", redirect.span),
        None => warning,
    };
    Some(warning.help(help))
}

/// The ICMPError for redirects that packets of an output reach. The search ends at elements with several outputs, because in a router
/// every element reaches every other one.
fn redirect_behind(graph: &Graph, from: PortRef) -> Option<usize> {
    let mut todo = graph.downstream(from).to_vec();
    let mut seen = vec![false; graph.len()];
    while let Some(PortRef { element, .. }) = todo.pop() {
        if std::mem::replace(seen.get_mut(element)?, true) {
            continue;
        }
        if is(graph, element, "ICMPError") {
            if sends_redirects(&graph.element(element)?.config) {
                return Some(element);
            }
        } else if graph.outputs(element) == 1 {
            todo.extend_from_slice(graph.downstream(PortRef { element, port: 0 }));
        }
    }
    None
}

/// Whether the second argument of an ICMPError, or its argument TYPE, is `redirect`.
fn sends_redirects(config: &str) -> bool {
    let arguments: Vec<_> = split(config).into_iter().map(|range| cleaned(config, range)).collect();
    let named = |a: &str| match keyword(a) {
        Some(("TYPE", value)) => a.get(value).map(unquote),
        _ => None,
    };
    let kind = arguments.iter().find_map(|a| named(a)).or_else(|| arguments.get(1).map(|a| unquote(a)));
    kind.is_some_and(|k| matches!(k.trim(), "redirect" | REDIRECT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Source, load};
    use castanet_lang::Unknown;

    fn warnings(text: &str) -> usize {
        let loaded = load(&Source::text("test", text, Vec::new()), None, Unknown::Error);
        assert!(!loaded.failed(), "{text}: {:?}", loaded.diagnostics);
        redirects(&loaded.graph).len()
    }

    #[test]
    fn a_check_paint_before_redirects() {
        let router = |class: &str, error: &str| {
            format!(
                "Idle -> Paint(1) -> c :: {class}(1) -> Discard; c [1] -> Null -> Queue -> Unqueue -> {error} -> Discard;"
            )
        };
        for (class, error, want) in [
            ("CheckPaint", "ICMPError(1.0.0.1, redirect, host)", 1),
            ("CheckPaint", "ICMPError(1.0.0.1, 5, 1)", 1),
            ("CheckPaint", "ICMPError(1.0.0.1, TYPE redirect, CODE host)", 1),
            ("CheckPaint", "ICMPError(1.0.0.1, unreachable, host)", 0),
            ("CheckPaint", "Null", 0),
            ("PaintTee", "ICMPError(1.0.0.1, redirect, host)", 0),
        ] {
            assert_eq!(warnings(&router(class, error)), want, "{class} {error}");
        }
        let behind_a_classifier = "Idle -> c :: CheckPaint(1) -> Discard; c [1] -> t :: IPClassifier(icmp, -); \
                                   t -> Discard; t [1] -> ICMPError(1.0.0.1, redirect) -> Discard;";
        assert_eq!(warnings(behind_a_classifier), 0);
        assert_eq!(warnings("Idle -> CheckPaint(1) -> Discard;"), 0);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A warning about `CheckPaint` where `PaintTee` is meant.
//!
//! Figure 8 of the SOSP 1999 and TOCS 2000 papers has a CheckPaint that passes all packets and copies those of one
//! colour to output 1. In today's Click, that element is called PaintTee. A configuration that copies the figure but
//! uses today's CheckPaint does not forward packets of other colours.

use castanet_graph::Graph;
use castanet_lang::args::{cleaned, unquote};
use castanet_lang::{Diagnostic, PortRef};
use castanet_spec::{ArgCx, ClassSpec, Names, Origin, Parser};

/// The ICMP type of redirects (RFC 792).
const REDIRECT: &str = "5";

/// Returns a warning for each CheckPaint whose output 1 leads to an ICMPError of type redirect.
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

/// Follows the packets from an output to an ICMPError that sends redirects, and returns that element. The search does
/// not go beyond elements with several outputs, because paths through these lead almost everywhere in a router.
fn redirect_behind(graph: &Graph, from: PortRef) -> Option<usize> {
    let mut todo = graph.downstream(from).to_vec();
    let mut seen = vec![false; graph.len()];
    while let Some(PortRef { element, .. }) = todo.pop() {
        if std::mem::replace(seen.get_mut(element)?, true) {
            continue;
        }
        if is(graph, element, "ICMPError") {
            if sends_redirects(&graph.element(element)?.config, graph.spec(element)?) {
                return Some(element);
            }
        } else if graph.outputs(element) == 1 {
            todo.extend_from_slice(graph.downstream(PortRef { element, port: 0 }));
        }
    }
    None
}

/// Whether the argument TYPE of an ICMPError is `redirect`.
fn sends_redirects(config: &str, spec: &ClassSpec) -> bool {
    let names = Names::default();
    let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
    let place = spec
        .args
        .iter()
        .position(|a| a.name == "TYPE")
        .and_then(|i| Parser::new(config, spec.args, cx).place(i));
    place.is_some_and(|p| matches!(unquote(&cleaned(config, p)).trim(), "redirect" | REDIRECT))
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the ports of a configuration (TOCS 2000, Figure 4; language reference, section 2).

use crate::flow::Side;
use crate::graph::{Graph, PortKind};
use crate::pull_cycles;
use crate::resolve::{Resolved, inside};
use castanet_lang::{ClassNames, Connection, Diagnostic, DiagnosticKind};
use castanet_spec::codes::{Count, Outputs};
use std::collections::HashSet;

/// An error shows at most this many elements of a path, and only counts the others. Also the maximum number of errors
/// about pull cycles.
pub(crate) const SHOWN: usize = 12;

/// Runs all checks and returns the errors in the order of the checks.
pub(crate) fn all(graph: &Graph, resolved: &Resolved) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    out_of_range(graph, &mut out);
    kinds_of_connections(graph, resolved, &mut out);
    kinds_in_elements(graph, resolved, &mut out);
    pull_cycles::check(graph, &mut out);
    reused(graph, resolved, &mut out);
    unused(graph, &mut out);
    out
}

/// Returns an error for each unknown class, at its first use.
pub fn unknown_classes(graph: &Graph, classes: &dyn ClassNames) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for (e, element) in graph.flat.elements.iter().enumerate() {
        if graph.spec(e).is_none() && seen.insert(element.class.as_str()) {
            let near = || castanet_lang::nearest(&element.class, classes.names());
            let error = castanet_lang::unknown_class(&element.class, element.span, near);
            out.push(with_origin(graph, e, error));
        }
    }
    out
}

/// Adds labels for the compounds that an element was expanded from.
pub(crate) fn with_origin(graph: &Graph, e: usize, error: Diagnostic) -> Diagnostic {
    let origin = graph.element(e).map_or(&[][..], |e| &e.origin);
    origin.iter().fold(error, |error, o| {
        error.label(format!("in compound '{} :: {}', used here", o.instance, o.class), o.span)
    })
}

pub(crate) fn label_element(
    graph: &Graph,
    e: usize,
    error: Diagnostic,
    text: impl Into<String>,
) -> Diagnostic {
    match graph.element(e) {
        Some(element) => error.label(text, element.span),
        None => error,
    }
}

fn many(n: usize, word: &str) -> String {
    match n {
        0 => format!("no {word}s"),
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}

fn allowed(count: Count, word: &str) -> String {
    match (count.min, count.max) {
        (0, None) => format!("any number of {word}s"),
        (min, None) => format!("at least {}", many(min, word)),
        (min, Some(max)) if min == max => many(max, word),
        (min, Some(max)) => format!("{min} to {}", many(max, word)),
    }
}

/// Reports connections to ports that an element does not have.
fn out_of_range(graph: &Graph, out: &mut Vec<Diagnostic>) {
    for c in &graph.flat.connections {
        let ends = [(c.from, Side::Output), (c.to, Side::Input)];
        for (end, side) in ends {
            let Some(element) = graph.element(end.element) else { continue };
            let (have, word) = match side {
                Side::Output => (graph.outputs(end.element), "output"),
                _ => (graph.inputs(end.element), "input"),
            };
            if end.port < have {
                continue;
            }
            let ports = graph.codes(end.element).ports;
            let count = match side {
                Side::Output => ports.outputs_for(graph.inputs(end.element)),
                _ => ports.inputs,
            };
            let help = match (side, ports.outputs, count.max) {
                (Side::Output, Outputs::Same(plus), _) => format!(
                    "{} has as many outputs as inputs{}: {} here",
                    element.class,
                    if plus > 0 { format!(" and {plus} more") } else { String::new() },
                    many(have, "output"),
                ),
                (_, _, None) => format!(
                    "{word} numbers start at 0 without gaps; {word} {} is the next",
                    have.min(connected_ports(graph, end.element, side)),
                ),
                _ => format!("{} has {}", element.class, numbered(count, word)),
            };
            // The port number may be meant as an argument, as in `Strip[14]` instead of `Strip(14)`.
            let takes_argument =
                graph.spec(end.element).and_then(|s| s.args.first()).is_some_and(|a| a.mandatory);
            let help = match takes_argument && element.config.is_empty() {
                true => format!("{help}; arguments stand in parentheses: {}({})", element.class, end.port),
                false => help,
            };
            let error =
                Diagnostic::error(format!("'{}' has no {word} {}", element.declaration(), end.port), c.span)
                    .kind(DiagnosticKind::Port(end.element))
                    .help(help);
            let error =
                label_element(graph, end.element, error, format!("'{}' is declared here", element.name));
            out.push(with_origin(graph, end.element, error));
        }
    }
}

fn numbered(count: Count, word: &str) -> String {
    let what = allowed(count, word);
    match count.max {
        Some(1) => format!("{what}, number 0"),
        Some(max) if max > 1 => format!("{what}, numbered from 0 to {}", max - 1),
        _ => what,
    }
}

fn connected_ports(graph: &Graph, e: usize, side: Side) -> usize {
    let points = match side {
        Side::Output => graph.points.outputs(e),
        _ => graph.points.inputs(e),
    };
    points.rev().find(|&p| graph.peers(p).next().is_some()).map_or(0, |p| graph.points.port(p) + 1)
}

/// Formats a port with its kind: `pull output 0`.
fn port_text(graph: &Graph, r: &Resolved, point: usize) -> String {
    let kind = r.kind(point).unwrap_or(PortKind::Push);
    format!("{kind} {}", place_text(graph, point))
}

fn place_text(graph: &Graph, point: usize) -> String {
    let word = if graph.points.side(point) == Side::Input { "input" } else { "output" };
    format!("{word} {}", graph.points.port(point))
}

/// Adds labels for the elements that propagated a port's kind, starting with the element that fixes the kind.
fn explain(graph: &Graph, r: &Resolved, point: usize, mut error: Diagnostic) -> Diagnostic {
    let source = r.root(point);
    let e = graph.points.owner(source);
    let kind = r.kind(point).unwrap_or(PortKind::Push);
    if r.kind(source).is_none() {
        let text = format!("nothing determines push or pull here, so '{}' pushes", graph.declaration(e));
        return label_element(graph, e, error, text);
    }
    let text = format!("{} of '{}' is always {kind}", place_text(graph, source), graph.declaration(e));
    error = label_element(graph, e, error, text);
    // Two consecutive ports of the path may belong to the same element. In that case, the kind has spread through this
    // element.
    let mut steps = Vec::new();
    let mut last = None;
    for p in r.path(graph, point) {
        match last {
            Some(b) if graph.points.owner(b) == graph.points.owner(p) => steps.push((p, b)),
            _ => {}
        }
        last = Some(p);
        if steps.len() == SHOWN {
            break;
        }
    }
    let more = r.depth(point).saturating_sub(steps.len());
    for &(a, b) in steps.iter().rev() {
        let e = graph.points.owner(a);
        let text = format!(
            "'{}' is agnostic: {kind} {} makes {} {kind}",
            graph.declaration(e),
            place_text(graph, a),
            place_text(graph, b)
        );
        error = label_element(graph, e, error, text);
    }
    if more > 0 {
        let text = format!("{kind} was propagated through {} before", many(more, "agnostic element"));
        error = error.help(text);
    }
    error
}

/// The help text that names the element to insert between an output of kind `from` and an input of the other
/// kind.
fn converter(from: PortKind, between: &str) -> String {
    match from {
        PortKind::Pull => format!("insert an Unqueue {between}: it pulls packets and pushes them on"),
        PortKind::Push => format!("insert a Queue {between}: it stores pushed packets until they are pulled"),
    }
}

/// Reports connections between ports of different kinds.
fn kinds_of_connections(graph: &Graph, r: &Resolved, out: &mut Vec<Diagnostic>) {
    for c in &graph.flat.connections {
        let Some((a, b)) = ends(graph, c) else { continue };
        let (Some(from), Some(to)) = (r.kind(a), r.kind(b)) else { continue };
        if from == to {
            continue;
        }
        let (d, e) = (graph.declaration(c.from.element), graph.declaration(c.to.element));
        let message =
            format!("'{d}' {} connected to '{e}' {}", port_text(graph, r, a), port_text(graph, r, b));
        let mut error =
            Diagnostic::error(message, None).label(format!("{from} output to {to} input"), c.span);
        error = explain(graph, r, a, error);
        error = explain(graph, r, b, error);
        out.push(with_origin(graph, c.from.element, error).help(converter(from, "between them")));
    }
}

fn ends(graph: &Graph, c: &Connection) -> Option<(usize, usize)> {
    Some((graph.points.output(c.from.element, c.from.port)?, graph.points.input(c.to.element, c.to.port)?))
}

/// Reports agnostic elements with both push and pull ports: one error for each element, about its first such
/// pair of ports.
fn kinds_in_elements(graph: &Graph, r: &Resolved, out: &mut Vec<Diagnostic>) {
    // An element whose ports all have the same kind has hubs of this kind, too.
    let is_mixed = |e: usize| {
        let mut ports = graph.points.inputs(e).chain(graph.points.outputs(e)).filter_map(|p| r.kind(p));
        ports.next().is_some_and(|first| ports.any(|kind| kind != first))
    };
    let mixed: Vec<bool> = (0..graph.len()).map(is_mixed).collect();
    if !mixed.contains(&true) {
        return;
    }
    let mut last = usize::MAX;
    let mut found = Vec::new();
    for a in (0..graph.points.len()).filter(|&a| mixed[graph.points.owner(a)]) {
        for b in inside(graph, a) {
            if r.kind(a) != r.kind(b) && r.kind(a).is_some() && r.kind(b).is_some() {
                found.push((graph.points.owner(a), a, b));
            }
        }
    }
    found.sort_by_key(|f| f.0);
    for (e, a, b) in found {
        if e == last {
            continue;
        }
        last = e;
        let (Some(a), Some(b)) = (r.path(graph, a).next(), r.path(graph, b).next()) else { continue };
        // The message names inputs before outputs, and low port numbers before high ones. The points (see the glossary)
        // of an element have the same order.
        let (a, b) = (a.min(b), a.max(b));
        let d = graph.declaration(e);
        let (kind_a, kind_b) = (port_text(graph, r, a), port_text(graph, r, b));
        let mut error =
            Diagnostic::error(format!("agnostic '{d}' in mixed context: {kind_a}, {kind_b}"), None);
        error = label_element(graph, e, error, format!("{kind_a}, {kind_b}"));
        error = explain(graph, r, a, error);
        error = explain(graph, r, b, error);
        let name = graph.name(e);
        let help = match (graph.points.side(a), graph.points.side(b)) {
            (Side::Input, Side::Output) => {
                let alone = graph.inputs(e) == 1 && graph.outputs(e) == 1;
                let place = place_text(graph, a);
                let between = if alone {
                    format!("before or after '{name}'")
                } else {
                    format!("before {place} of '{name}'")
                };
                converter(r.kind(a).unwrap_or(PortKind::Push), &between)
            }
            _ => format!(
                "make {} and {} of '{name}' both push or both pull",
                place_text(graph, a),
                place_text(graph, b)
            ),
        };
        out.push(with_origin(graph, e, error).help(help));
    }
}

/// Reports push outputs and pull inputs with more than one connection. A port of an unknown class is checked
/// only if its neighbours make it push or pull.
fn reused(graph: &Graph, r: &Resolved, out: &mut Vec<Diagnostic>) {
    for point in 0..graph.points.hub_start() {
        let e = graph.points.owner(point);
        let side = graph.points.side(point);
        let kind = graph.kind(point);
        if (side == Side::Output) != (kind == PortKind::Push)
            || (r.kind(point).is_none() && graph.codes(e).opaque())
        {
            continue;
        }
        let mut connections =
            graph.peer_connections.indices(point).filter_map(|c| graph.flat.connections.get(c));
        let Some(first) = connections.next() else { continue };
        for other in connections {
            let d = graph.declaration(e);
            let place = place_text(graph, point);
            let error = Diagnostic::error(format!("illegal reuse of '{d}' {kind} {place}"), first.span)
                .at("first connection of the port")
                .label("another connection of the port", other.span);
            let error = explain(graph, r, point, error);
            let help = match kind {
                PortKind::Push => {
                    "a push output has one connection; insert a Tee to send a copy of each packet to both"
                }
                PortKind::Pull => {
                    "a pull input has one connection; insert a scheduler such as RoundRobinSched or PrioSched to choose between them"
                }
            };
            out.push(with_origin(graph, e, error).help(help));
        }
    }
}

/// Reports ports without a connection. Unknown classes may leave ports unused. A port whose connection leads to
/// a nonexistent port has been reported already.
fn unused(graph: &Graph, out: &mut Vec<Diagnostic>) {
    let points = &graph.points;
    let mut meant = HashSet::new();
    // Elements with a connection to a port that does not exist. The wrong port number may be the reason why
    // another port of the element is unused.
    let mut misnumbered = HashSet::new();
    for c in &graph.flat.connections {
        let from = points.output(c.from.element, c.from.port);
        let to = points.input(c.to.element, c.to.port);
        meant.extend(from.xor(to));
        misnumbered.extend(from.is_none().then_some((c.from.element, Side::Output)));
        misnumbered.extend(to.is_none().then_some((c.to.element, Side::Input)));
    }
    for (e, element) in graph.flat.elements.iter().enumerate() {
        if graph.codes(e).opaque() {
            continue;
        }
        for point in graph.points.inputs(e).chain(graph.points.outputs(e)) {
            if graph.is_connected(point) || meant.contains(&point) {
                continue;
            }
            let port = graph.points.port(point);
            let place = place_text(graph, point);
            let help = match graph.points.side(point) {
                Side::Input => format!(
                    "connect it, or connect an Idle if it needs no packets: Idle -> [{port}] {}",
                    element.name
                ),
                _ => format!(
                    "connect it, or connect a Discard to drop its packets: {} [{port}] -> Discard",
                    element.name
                ),
            };
            let error =
                Diagnostic::error(format!("'{}' {place} unused", element.declaration()), element.span)
                    .kind(DiagnosticKind::Port(e))
                    .help(help);
            let follows = misnumbered.contains(&(e, graph.points.side(point)));
            out.push(with_origin(graph, e, if follows { error.consequence() } else { error }));
        }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks for pull cycles. A pull that returns to its starting point would never end.

use crate::check::{SHOWN, label_element, with_origin};
use crate::flow::Side;
use crate::graph::{Graph, PortKind};
use castanet_lang::Diagnostic;

/// Reports pull cycles, found by a depth-first search. Each step that leads back to a point on the search path closes a
/// cycle and gives an error. At most [`SHOWN`] errors are reported. The search has a stack of its own, because the
/// recursive search of petgraph would overflow the call stack on a long chain of elements.
pub(crate) fn check(graph: &Graph, out: &mut Vec<Diagnostic>) {
    let points = &graph.points;
    let pull = |p: usize| points.side(p) == Side::Hub || graph.kind(p) == PortKind::Pull;
    // Pulls go against the packet flow: from inputs over connections to outputs, and inside elements from
    // outputs to inputs.
    let calls = |p: usize| -> Vec<usize> {
        match points.side(p) {
            Side::Input => graph.peers(p).map(|(q, _)| q).filter(|&q| pull(q)).collect(),
            _ => points.backward.indices(p).filter(|&q| pull(q)).collect(),
        }
    };
    // 0: not visited, 1: on the stack, 2: done.
    let mut state = vec![0u8; points.len()];
    let before = out.len();
    for root in 0..points.hub_start() {
        if state[root] != 0 || !pull(root) {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, calls(root).into_iter())];
        while let Some((point, next)) = stack.last_mut() {
            let point = *point;
            match next.next() {
                Some(q) if state[q] == 0 => {
                    state[q] = 1;
                    let calls = calls(q).into_iter();
                    stack.push((q, calls));
                }
                // The number of errors is limited, because each one takes time proportional to the length of its cycle.
                Some(q) if state[q] == 1 && out.len() - before < SHOWN => {
                    let way = stack.iter().map(|s| s.0).skip_while(|&p| p != q).collect();
                    out.push(described(graph, way));
                }
                Some(_) => {}
                None => {
                    state[point] = 2;
                    stack.pop();
                }
            }
        }
    }
}

fn described(graph: &Graph, way: Vec<usize>) -> Diagnostic {
    let mut elements: Vec<usize> = way.iter().map(|&p| graph.points.owner(p)).collect();
    elements.reverse();
    elements.dedup();
    if elements.len() > 1 && elements.first() == elements.last() {
        elements.pop();
    }
    // Rotate the cycle to start at the element with the lowest index, so that the message does not depend on
    // where the search entered the cycle.
    let first = elements.iter().enumerate().min_by_key(|e| e.1).map_or(0, |e| e.0);
    elements.rotate_left(first);
    let mut names: Vec<_> = elements.iter().map(|&e| graph.name(e)).collect();
    names.extend(names.first().copied());
    if names.len() > SHOWN {
        let more = names.len() - SHOWN;
        names.splice(SHOWN - 1..names.len() - 1, ["..."]);
        let message = format!("pull cycle of {} elements: {}", more + SHOWN - 1, names.join(" -> "));
        return labelled_cycle(graph, &elements, message);
    }
    let message = format!("pull cycle: {}", names.join(" -> "));
    labelled_cycle(graph, &elements, message)
}

fn labelled_cycle(graph: &Graph, elements: &[usize], message: String) -> Diagnostic {
    let first = elements.first().copied().unwrap_or(0);
    let mut error = Diagnostic::error(message, graph.element(first).map(|e| e.span))
        .at("a pull here returns to its start");
    for &e in elements.iter().skip(1).take(SHOWN) {
        error = label_element(graph, e, error, format!("'{}' is on the cycle", graph.declaration(e)));
    }
    with_origin(graph, first, error)
        .help("insert a Queue and an Unqueue: a queue answers pulls without pulling itself")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the connections that close push cycles. The run loop defers packets at these connections.

use crate::flow::Side;
use crate::graph::{Graph, PortKind};

/// A point on the search stack and the index of its next connection or link.
struct Frame {
    point: usize,
    next: usize,
}

struct Search<'a> {
    graph: &'a Graph,
    seen: Vec<bool>,
    /// For each input and hub, the number of push outputs that it leads to and that are on the search stack.
    open: Vec<u32>,
    back: Vec<bool>,
    stack: Vec<Frame>,
}

impl Graph {
    /// For each connection of `flat.connections`, whether it is a back edge. If the back edges are removed, the push
    /// connections and the flow codes of the elements between them form no cycle.
    ///
    /// A depth-first search in element order starts at the sources (elements that push but accept no pushes), then at
    /// other tasks, then at all other elements. A connection is a back edge only if it leads back into the current
    /// search path.
    pub fn back_edges(&self) -> Vec<bool> {
        // If each connection leads to an element with a higher number, there is no cycle.
        let forward = self.flat.connections.iter().all(|c| c.from.element < c.to.element);
        if forward {
            return vec![false; self.flat.connections.len()];
        }
        let points = &self.points;
        let mut search = Search {
            graph: self,
            seen: vec![false; points.len()],
            open: vec![0; points.len()],
            back: vec![false; self.flat.connections.len()],
            stack: Vec::new(),
        };
        let takes_pushes: Vec<bool> =
            (0..self.len()).map(|e| points.inputs(e).any(|p| self.kind(p) == PortKind::Push)).collect();
        let is_task = |e: usize| self.spec(e).is_some_and(|s| s.task);
        let rank = |e: usize| if !takes_pushes[e] { 0 } else { 2 - usize::from(is_task(e)) };
        for wanted in 0..3 {
            for e in (0..self.len()).filter(|&e| rank(e) == wanted) {
                // If no source leads into a cycle, the search enters the cycle at the push ports of its elements.
                for p in points.inputs(e).chain(points.outputs(e)).filter(|&p| self.kind(p) == PortKind::Push)
                {
                    search.from(p);
                }
            }
        }
        search.back
    }
}

impl Search<'_> {
    fn from(&mut self, point: usize) {
        self.enter(point);
        while let Some(Frame { point, next }) = self.stack.last_mut() {
            let (point, index) = (*point, *next);
            *next += 1;
            let output = self.graph.points.side(point) == Side::Output;
            let step = if output {
                self.graph.peer(point, index).map(|(q, c)| (q, Some(c)))
            } else {
                self.graph.points.forward.item(point, index).map(|&q| (q as usize, None))
            };
            match step {
                Some((q, connection)) => self.follow(q, connection),
                None => {
                    self.stack.pop();
                    if output {
                        self.count(point, false);
                    }
                }
            }
        }
    }

    fn follow(&mut self, point: usize, connection: Option<usize>) {
        let side = self.graph.points.side(point);
        if side != Side::Hub && self.graph.kind(point) == PortKind::Pull {
            return;
        }
        if let Some(c) = connection {
            // The connection closes a cycle if an output that can be reached from this input is on the search stack.
            // `open` counts these outputs, even for inputs that the search has visited before. So the search can decide
            // here whether the connection is a back edge.
            let mut hubs = self.graph.points.forward.indices(point);
            let closes = self.open[point] > 0
                || hubs.any(|h| self.graph.points.side(h) == Side::Hub && self.open[h] > 0);
            if let (true, Some(back)) = (closes, self.back.get_mut(c)) {
                *back = true;
            }
        }
        self.enter(point);
    }

    fn enter(&mut self, point: usize) {
        if !self.seen[point] {
            self.seen[point] = true;
            if self.graph.points.side(point) == Side::Output {
                self.count(point, true);
            }
            self.stack.push(Frame { point, next: 0 });
        }
    }

    /// Updates `open` when an output enters the search stack (`up` is true) or leaves it. Adds or subtracts one for the
    /// inputs linked directly to the output, and for the hubs between inputs and the output. Inputs linked through hubs
    /// are not updated, because there may be many. For these inputs, the search reads `open` of the hubs.
    fn count(&mut self, output: usize, up: bool) {
        let points = &self.graph.points;
        let mut change = |p: usize| {
            let n = &mut self.open[p];
            *n = if up { n.saturating_add(1) } else { n.saturating_sub(1) };
        };
        for p in points.backward.indices(output) {
            change(p);
            if points.side(p) == Side::Hub {
                for q in points.backward.indices(p).filter(|&q| points.side(q) == Side::Hub) {
                    change(q);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "cycles_tests.rs"]
mod tests;

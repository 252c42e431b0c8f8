// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flow-based router context: which elements packets may meet next, or may have come through (TOCS 2000, section 2.4).

use crate::flow::Side;
use crate::graph::Graph;
use castanet_spec::Capability;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What a search does at an element that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Go on through it.
    Pass,
    /// Take it into the result and search no further behind it.
    Take,
    /// Take it into the result and go on through it.
    TakeAndPass,
    /// Search no further behind it.
    Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Down,
    Up,
}

impl Graph {
    /// The elements of a capability that packets leaving `e` (by one output, or by any) meet first; in element order.
    pub fn nearest_downstream(&self, e: usize, output: Option<usize>, capability: Capability) -> Vec<usize> {
        self.downstream_filter(e, output, |f| self.nearest(f, capability))
    }

    /// The elements of a capability that packets entering `e` (by one input, or by any) came through last; in element
    /// order.
    pub fn nearest_upstream(&self, e: usize, input: Option<usize>, capability: Capability) -> Vec<usize> {
        self.upstream_filter(e, input, |f| self.nearest(f, capability))
    }

    fn nearest(&self, e: usize, capability: Capability) -> Visit {
        if self.spec(e).is_some_and(|s| s.has(capability)) { Visit::Take } else { Visit::Pass }
    }

    /// A search downstream; `visit` is asked once about each element met. The result is in element order.
    ///
    /// Inside elements the search follows their flow codes. `e` itself is met only if a cycle leads back to it.
    pub fn downstream_filter(
        &self,
        e: usize,
        output: Option<usize>,
        visit: impl FnMut(usize) -> Visit,
    ) -> Vec<usize> {
        let points = match output {
            Some(port) => self.points.output(e, port).into_iter().collect(),
            None => self.points.outputs(e).collect(),
        };
        self.search(Direction::Down, points, visit)
    }

    /// A search upstream, as [`Graph::downstream_filter`].
    pub fn upstream_filter(
        &self,
        e: usize,
        input: Option<usize>,
        visit: impl FnMut(usize) -> Visit,
    ) -> Vec<usize> {
        let points = match input {
            Some(port) => self.points.input(e, port).into_iter().collect(),
            None => self.points.inputs(e).collect(),
        };
        self.search(Direction::Up, points, visit)
    }

    fn search(
        &self,
        way: Direction,
        mut stack: Vec<usize>,
        mut visit: impl FnMut(usize) -> Visit,
    ) -> Vec<usize> {
        let leaves = if way == Direction::Down { Side::Output } else { Side::Input };
        // Sets rather than arrays: a search takes as long as what it meets, not as the whole configuration.
        let mut seen: HashSet<usize> = stack.iter().copied().collect();
        let mut verdicts: HashMap<usize, Visit> = HashMap::new();
        let mut found = Vec::new();
        while let Some(point) = stack.pop() {
            let mut next: Vec<usize> = if self.points.side(point) == leaves {
                self.peers(point).map(|p| p.0).collect()
            } else if way == Direction::Down {
                self.points.forward.row(point).to_vec()
            } else {
                self.points.backward.row(point).to_vec()
            };
            if self.points.side(point) == leaves {
                next.retain(|&p| {
                    let f = self.points.owner(p);
                    let verdict = *verdicts.entry(f).or_insert_with(|| {
                        let verdict = visit(f);
                        if matches!(verdict, Visit::Take | Visit::TakeAndPass) {
                            found.push(f);
                        }
                        verdict
                    });
                    matches!(verdict, Visit::Pass | Visit::TakeAndPass)
                });
            }
            for p in next {
                if seen.insert(p) {
                    stack.push(p);
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// As [`Graph::nearest_upstream`] from one input, and whether every path upstream ends in such an element, so that
    /// one who pulls there may sleep on what they say.
    ///
    /// A path does not end so where it comes to an output of a source, or to an element that turns push
    /// into pull and lacks the capability: it may have packets and not say so. A path that goes round a cycle for ever has no end.
    pub fn nearest_upstream_complete(
        &self,
        e: usize,
        input: usize,
        capability: Capability,
    ) -> (Vec<usize>, bool) {
        let Some(start) = self.points.input(e, input) else { return (Vec::new(), false) };
        let mut seen = HashSet::from([start]);
        let (mut found, mut complete) = (BTreeSet::new(), true);
        let mut stack = vec![start];
        while let Some(point) = stack.pop() {
            let mut next: Vec<usize> = Vec::new();
            match self.points.side(point) {
                Side::Input => {
                    next.extend(self.peers(point).map(|p| p.0));
                    complete &= !next.is_empty();
                    next.retain(|&p| {
                        let f = self.points.owner(p);
                        let take = self.nearest(f, capability) == Visit::Take;
                        if take {
                            found.insert(f);
                        }
                        !take
                    });
                }
                Side::Output => {
                    next.extend(self.inputs_behind(point));
                    complete &= !next.is_empty() || self.only_passes_on(self.points.owner(point));
                    let kind = self.kind(point);
                    next.retain(|&p| {
                        complete &= self.kind(p) == kind;
                        self.kind(p) == kind
                    });
                }
                Side::Hub => {}
            }
            for p in next {
                if seen.insert(p) {
                    stack.push(p);
                }
            }
        }
        (found.into_iter().collect(), complete)
    }

    /// Whether no packet can leave an element that none enters. Classes that take packets on any number of inputs merge, choose
    /// or pass them on; sources have none, or a fixed number.
    fn only_passes_on(&self, e: usize) -> bool {
        let ports = self.spec(e).and_then(|s| castanet_spec::codes::Ports::parse(s.ports));
        ports.is_some_and(|p| p.inputs.max.is_none())
    }

    /// The inputs whose packets may leave by an output.
    fn inputs_behind(&self, output: usize) -> Vec<usize> {
        let mut inputs = Vec::new();
        let mut stack = vec![output];
        while let Some(point) = stack.pop() {
            for &p in self.points.backward.row(point) {
                if self.points.side(p) == Side::Hub { stack.push(p) } else { inputs.push(p) }
            }
        }
        inputs
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;

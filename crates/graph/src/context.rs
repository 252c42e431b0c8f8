// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flow-based router context: the elements that packets may meet next or may have passed before (TOCS 2000,
//! section 2.4).

use crate::flow::Side;
use crate::graph::Graph;
use crate::sparse::Sparse;
use castanet_spec::Capability;
use std::collections::{BTreeSet, HashSet};

/// What a search does at an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Leave the element out of the result and continue through it.
    Pass,
    /// Add the element to the result and do not search beyond it.
    Take,
    /// Add the element to the result and continue through it.
    TakeAndPass,
    /// Leave the element out of the result and do not search beyond it.
    Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Down,
    Up,
}

impl Graph {
    /// Follows the paths of packets that leave `e` by this output, or by any output if `None`. Returns the first
    /// element with the capability on each path, in element order.
    pub fn nearest_downstream(&self, e: usize, output: Option<usize>, capability: Capability) -> Vec<usize> {
        self.downstream_filter(e, output, |f| self.nearest(f, capability))
    }

    /// Follows the paths of packets that enter `e` by this input, or by any input if `None`. Returns the last element
    /// with the capability on each path before `e`, in element order.
    pub fn nearest_upstream(&self, e: usize, input: Option<usize>, capability: Capability) -> Vec<usize> {
        self.upstream_filter(e, input, |f| self.nearest(f, capability))
    }

    fn nearest(&self, e: usize, capability: Capability) -> Visit {
        if self.spec(e).is_some_and(|s| s.has(capability)) { Visit::Take } else { Visit::Pass }
    }

    /// Searches downstream and returns the selected elements in element order. `visit` is called once for each
    /// element met.
    ///
    /// Inside elements the search follows their flow codes. It meets `e` itself only if a cycle leads back to
    /// it.
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

    /// Searches upstream; otherwise like [`Graph::downstream_filter`].
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
        // The cost must be proportional to the part searched, not to the whole configuration.
        let mut seen: Sparse<()> = Sparse::new(self.points.len());
        for &p in &stack {
            seen.set(p, ());
        }
        let mut verdicts: Sparse<Visit> = Sparse::new(self.len());
        let mut found = Vec::new();
        while let Some(point) = stack.pop() {
            if self.points.side(point) == leaves {
                for (p, _) in self.peers(point) {
                    let f = self.points.owner(p);
                    let verdict = verdicts.get(f).unwrap_or_else(|| {
                        let verdict = visit(f);
                        if matches!(verdict, Visit::Take | Visit::TakeAndPass) {
                            found.push(f);
                        }
                        verdicts.set(f, verdict);
                        verdict
                    });
                    if matches!(verdict, Visit::Pass | Visit::TakeAndPass) && seen.set(p, ()).is_none() {
                        stack.push(p);
                    }
                }
            } else {
                let inside =
                    if way == Direction::Down { &self.points.forward } else { &self.points.backward };
                stack.extend(inside.indices(point).filter(|&p| seen.set(p, ()).is_none()));
            }
        }
        found.sort_unstable();
        found
    }

    /// Like [`Graph::nearest_upstream`] for one input. Also returns whether all upstream paths are complete, that is,
    /// whether each ends in an element with the capability. If not, a puller must not wait for signals of the returned
    /// elements, because packets may come by an incomplete path.
    ///
    /// A path is incomplete if it reaches a source, or an element that turns push into pull and lacks the capability.
    /// Such elements may have packets without signalling. A path that only goes round a cycle counts as complete.
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

    /// Whether an element can only emit packets that it has received. This holds for classes that accept any
    /// number of inputs: they merge, select or forward packets. The classes of sources have no inputs, or a
    /// fixed number of inputs.
    fn only_passes_on(&self, e: usize) -> bool {
        let ports = self.spec(e).and_then(|s| castanet_spec::codes::Ports::parse(s.ports));
        ports.is_some_and(|p| p.inputs.max.is_none())
    }

    /// The inputs whose packets may leave by this output.
    fn inputs_behind(&self, output: usize) -> Vec<usize> {
        let mut inputs = Vec::new();
        let mut stack = vec![output];
        while let Some(point) = stack.pop() {
            for p in self.points.backward.indices(point) {
                if self.points.side(p) == Side::Hub { stack.push(p) } else { inputs.push(p) }
            }
        }
        inputs
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;

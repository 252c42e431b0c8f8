// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for a match: backtracking over the elements of a pattern, in an order in which each element is connected to
//! one that is already found.
//!
//! Searching for a subgraph is NP-complete in general (ASPLOS 2002, section 6.2), but patterns are small, and few elements of a
//! router are connected to a given port, so that there are few candidates for each element of a pattern. `petgraph`
//! has a search for subgraphs, but it knows neither ports nor which connections may lead out of a match, and it begins anew
//! after each replacement.

use super::config::Values;
use super::net::{ClassNumber, Net, Side};
use super::pattern::{PatternElement, Step};
use super::rule::Rule;
use castanet_lang::PortRef;
use std::collections::HashSet;

/// Elements of a router that match a pattern.
pub(super) struct Match {
    /// By element of the pattern: the element of the router.
    pub elements: Vec<usize>,
    pub values: Values,
}

/// A search for a match of one pattern.
pub(super) struct Search<'a, 'b> {
    pub net: &'a Net,
    pub rule: &'a Rule,
    /// The classes of the pattern's elements.
    pub classes: &'a [ClassNumber],
    pub plan: &'a [Step],
    /// How many elements may still be compared with elements of patterns.
    pub budget: &'b mut u64,
    /// By element of the pattern: the element of the router, if it has been found.
    found: Vec<Option<usize>>,
    taken: HashSet<usize>,
    values: Values,
}

impl<'a, 'b> Search<'a, 'b> {
    pub fn new(
        net: &'a Net,
        rule: &'a Rule,
        classes: &'a [ClassNumber],
        plan: &'a [Step],
        budget: &'b mut u64,
    ) -> Search<'a, 'b> {
        let found = vec![None; rule.pattern.elements.len()];
        let values = Values::new(rule.variables.len());
        Search { net, rule, classes, plan, budget, found, taken: HashSet::new(), values }
    }

    /// Finds a match in which `start` is the element of the first step. `accept` gets each match, and returns none if the
    /// search should go on.
    pub fn run<T>(mut self, start: usize, accept: &mut dyn FnMut(&Match) -> Option<T>) -> Option<T> {
        self.step(0, &mut std::iter::once(start), accept)
    }

    fn step<T>(
        &mut self,
        number: usize,
        candidates: &mut dyn Iterator<Item = usize>,
        accept: &mut dyn FnMut(&Match) -> Option<T>,
    ) -> Option<T> {
        let plan = self.plan;
        let Some(step) = plan.get(number) else {
            let elements: Vec<usize> = self.found.iter().copied().collect::<Option<_>>()?;
            return accept(&Match { elements, values: self.values.clone() });
        };
        for candidate in candidates {
            if *self.budget == 0 {
                return None;
            }
            *self.budget -= 1;
            let mark = self.values.mark();
            if self.fits(step, candidate) {
                self.put(step.element, Some(candidate));
                self.taken.insert(candidate);
                let mut next = plan.get(number + 1).map(|s| self.candidates(s));
                let found = match &mut next {
                    Some(candidates) => self.step(number + 1, candidates, accept),
                    None => self.step(number + 1, &mut std::iter::empty(), accept),
                };
                if found.is_some() {
                    return found;
                }
                self.put(step.element, None);
                self.taken.remove(&candidate);
            }
            self.values.undo(mark);
        }
        None
    }

    fn put(&mut self, p: usize, e: Option<usize>) {
        if let Some(found) = self.found.get_mut(p) {
            *found = e;
        }
    }
    fn place(&self, p: usize) -> Option<usize> {
        self.found.get(p).copied().flatten()
    }

    /// Returns the elements of the router that may be the element of a step: those that are connected to an element that is
    /// already found. Of several such elements, it takes the port that has the fewest connections.
    fn candidates(&self, step: &Step) -> Box<dyn Iterator<Item = usize> + 'a> {
        let net = self.net;
        let near = step.links.iter().filter_map(|link| {
            let node = net.node(self.place(link.other.element)?)?;
            Some((node.degree(link.side.other(), link.other.port), node, *link))
        });
        match near.min_by_key(|n| n.0) {
            Some((_, node, link)) => {
                let ids = node.connections(link.side.other(), link.other.port);
                let ends = ids.filter_map(move |id| net.link(id)).map(move |l| l.end(link.side));
                Box::new(ends.filter(move |end| end.port == link.port).map(|end| end.element))
            }
            None => {
                let class = self.classes.get(step.element).copied();
                Box::new(class.map_or(&[][..], |c| net.of_class(c)).iter().copied())
            }
        }
    }

    /// Whether an element of the router can be the element of a step.
    fn fits(&mut self, step: &Step, candidate: usize) -> bool {
        let rule = self.rule;
        let (Some(node), Some(pattern)) = (self.net.node(candidate), rule.pattern.element(step.element))
        else {
            return false;
        };
        let same = |p: usize| if p == step.element { Some(candidate) } else { self.place(p) };
        let linked = step.links.iter().all(|link| {
            let here = PortRef { element: candidate, port: link.port };
            let there = same(link.other.element).map(|element| PortRef { element, port: link.other.port });
            there.is_some_and(|there| match link.side {
                Side::Output => self.net.number(here, there).is_some(),
                Side::Input => self.net.number(there, here).is_some(),
            })
        });
        Some(&node.class) == self.classes.get(step.element)
            && !self.taken.contains(&candidate)
            && linked
            && [Side::Input, Side::Output].into_iter().all(|side| ports_fit(pattern, node, side))
            && pattern.config.matches(self.net.args(node), node.element.scope(), &mut self.values)
    }
}

/// Whether an element uses the same ports as an element of a pattern, and whether each port that is not a port of the
/// pattern has only as many connections as in the pattern. So no other connection leads out of a match.
fn ports_fit(pattern: &PatternElement, node: &super::net::Node, side: Side) -> bool {
    let wanted = pattern.side(side);
    let mut used = node.ports(side);
    used.len() == wanted.len()
        && wanted.iter().all(|(port, want)| match used.next() {
            Some((p, connections)) if want.border.is_some() => p == *port && connections >= want.links.len(),
            Some((p, connections)) => p == *port && connections == want.links.len(),
            None => false,
        })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces connections between elements through the `input` and `output` of compounds and groups.

use super::MAX_CONNECTIONS;
use super::body::{End, Link};
use crate::flat::{Connection, PortRef};
use crate::source::Span;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// Marks a node that is not an element, but the `input` or `output` of a compound or group.
pub(super) const TUNNEL: u32 = u32::MAX;

/// All nodes and links of the expanded configuration.
#[derive(Default)]
pub(super) struct Net {
    /// The element of each node, or [`TUNNEL`].
    pub nodes: Vec<u32>,
    pub links: Vec<Link>,
}

impl Net {
    pub fn node(&mut self, element: u32) -> u32 {
        self.nodes.push(element);
        self.nodes.len() as u32 - 1
    }
    fn element(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).copied().unwrap_or(TUNNEL)
    }
    /// The connections between elements, without duplicates. Direct connections come first, in order, then those
    /// through compounds. The flag is false if tracing took too many steps and was ended early.
    pub fn connections(&self) -> (Vec<Connection>, bool) {
        let mut all = Vec::with_capacity(self.links.len());
        let mut seen = FxHashSet::with_capacity_and_hasher(self.links.len(), FxBuildHasher);
        let mut add = |from: End, to: End, span: Span| {
            let (from, to): (End, End) = ((self.element(from.0), from.1), (self.element(to.0), to.1));
            if seen.insert((from, to)) {
                let port = |end: End| PortRef { element: end.0 as usize, port: end.1 as usize };
                all.push(Connection { from: port(from), to: port(to), span });
            }
        };
        let mut leaving: FxHashMap<End, Vec<End>> = FxHashMap::default();
        for &Link { from, to, span } in &self.links {
            match (self.element(from.0), self.element(to.0)) {
                (TUNNEL, _) => leaving.entry(from).or_default().push(to),
                (_, TUNNEL) => {}
                _ => add(from, to, span),
            }
        }
        // For each port of a tunnel (a node that is not an element), the index of the last link whose search visited
        // the port. The search from one link visits a port only once, so the search ends even if tunnels form a cycle.
        let mut visited: FxHashMap<End, usize> = FxHashMap::default();
        let (mut open, mut steps) = (Vec::new(), 0usize);
        for (i, &Link { from, to, span }) in self.links.iter().enumerate() {
            if self.element(from.0) == TUNNEL || self.element(to.0) != TUNNEL {
                continue;
            }
            open.push(to);
            while let Some(at) = open.pop() {
                steps += 1;
                if steps > MAX_CONNECTIONS {
                    return (all, false);
                }
                if self.element(at.0) != TUNNEL {
                    add(from, at, span);
                } else if visited.insert(at, i) != Some(i) {
                    // The stack is popped from the end, so reversed order visits the first link first.
                    open.extend(leaving.get(&at).into_iter().flatten().rev());
                }
            }
        }
        (all, true)
    }
}

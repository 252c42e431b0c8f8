// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes of a hot swap, and the state that moves from the old configuration to the new.

use crate::shared::Shared;
use castanet_graph::Graph;
use castanet_lang::PortRef;
use std::collections::HashSet;
use std::fmt;

/// Pairs of an element in the old configuration and one in the new that takes its state.
pub(crate) struct Moves {
    /// Pairs that hold the same open resource.
    pub over: Vec<(u32, u32)>,
    /// Counts and state, between elements of the same name and class.
    pub state: Vec<(u32, u32)>,
}

/// The pairs that hold the same. Of several elements that hold it the first gives to the first.
fn over(old: &Shared, new: &Shared) -> Vec<(u32, u32)> {
    let pairs = new.held.iter().filter_map(|(key, heirs)| Some(old.held.get(key)?.iter().zip(heirs)));
    let mut over: Vec<(u32, u32)> = pairs.flatten().map(|(&o, &e)| (o, e)).collect();
    over.sort_by_key(|m| m.1);
    over
}

impl Moves {
    pub fn new(old: &Shared, new: &Shared) -> Moves {
        let state = (0..new.graph.len() as u32).filter_map(|e| Some((new.twin(e, old)?, e)));
        Moves { over: over(old, new), state: state.collect() }
    }
    /// The elements of a new router whose resource is open in the old one.
    pub fn inherited(old: &Shared, new: &Shared) -> HashSet<u32> {
        over(old, new).into_iter().map(|m| m.1).collect()
    }
}

/// The changes of a hot swap. Prints as a list, a change a line: `+` for what comes, `-` for what goes,
/// `~` for what is configured anew, `=` for what moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Declarations of elements that come.
    pub added: Vec<String>,
    /// Declarations of elements that go; with them goes what they hold.
    pub removed: Vec<String>,
    /// Elements that stay, with their configuration before and afterwards.
    pub changed: Vec<(String, String, String)>,
    /// Connections that come.
    pub connected: Vec<String>,
    /// Connections that go.
    pub disconnected: Vec<String>,
    /// State that moves: the element, and the kind of state.
    pub moves: Vec<(String, String)>,
    /// The number of elements that stay as they are.
    pub kept: usize,
}

fn connections(graph: &Graph) -> Vec<String> {
    let end = |p: PortRef| (graph.name(p.element), p.port);
    let each = graph.flat.connections.iter().map(|c| {
        let ((a, i), (b, o)) = (end(c.from), end(c.to));
        format!("{a} [{i}] -> [{o}] {b}")
    });
    each.collect()
}

impl Plan {
    pub(crate) fn new(old: &Shared, new: &Shared) -> Plan {
        let mut plan = Plan::default();
        for e in 0..new.graph.len() {
            let name = new.graph.name(e);
            let Some(element) = new.graph.element(e) else { continue };
            let Some(before) = new.twin(e as u32, old) else {
                plan.added.push(declaration(&new.graph, e));
                continue;
            };
            let config = old.graph.element(before as usize).map_or("", |x| x.config.as_str());
            if config == element.config {
                plan.kept += 1;
            } else {
                plan.changed.push((name.to_string(), config.to_string(), element.config.clone()));
            }
            let spec = new.graph.spec(e);
            let state = spec.map_or("", |s| s.takes_state);
            let counts = spec.is_some_and(|s| !s.counts.is_empty()).then_some("its counts");
            let what: Vec<&str> = Some(state).filter(|s| !s.is_empty()).into_iter().chain(counts).collect();
            if !what.is_empty() {
                plan.moves.push((element.declaration(), what.join("; ")));
            }
        }
        let gone = (0..old.graph.len()).filter(|&e| old.twin(e as u32, new).is_none());
        plan.removed = gone.map(|e| declaration(&old.graph, e)).collect();
        for (o, e) in over(old, new) {
            let (from, to) = (old.graph.name(o as usize), new.graph.name(e as usize));
            if from != to {
                let what = format!("what '{from}' has open");
                plan.moves.push((new.graph.declaration(e as usize), what));
            }
        }
        let (before, after) = (connections(&old.graph), connections(&new.graph));
        let missing = |of: &[String], from: &[String]| {
            let known: HashSet<&String> = of.iter().collect();
            from.iter().filter(|c| !known.contains(c)).cloned().collect::<Vec<_>>()
        };
        (plan.connected, plan.disconnected) = (missing(&before, &after), missing(&after, &before));
        plan
    }
}

fn declaration(graph: &Graph, e: usize) -> String {
    let config = graph.element(e).map_or("", |x| x.config.as_str());
    match config {
        "" => graph.declaration(e),
        c => format!("{}({c})", graph.declaration(e)),
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for d in &self.added {
            writeln!(f, "+ {d}")?;
        }
        for d in &self.removed {
            writeln!(f, "- {d}")?;
        }
        for (name, before, after) in &self.changed {
            writeln!(f, "~ {name}: ({before}) becomes ({after})")?;
        }
        for c in &self.connected {
            writeln!(f, "+ {c}")?;
        }
        for c in &self.disconnected {
            writeln!(f, "- {c}")?;
        }
        for (name, what) in &self.moves {
            writeln!(f, "= {name}: {what}")?;
        }
        let (new, gone, other) = (self.added.len(), self.removed.len(), self.changed.len());
        writeln!(f, "{new} added, {gone} removed, {other} changed, {} as they are", self.kept)
    }
}

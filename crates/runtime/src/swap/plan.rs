// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of a hot swap: what changes, and which state moves from the old configuration to the new one.

use crate::pairs::Pairs;
use crate::shared::Shared;
use castanet_graph::Graph;
use castanet_lang::PortRef;
use std::collections::HashSet;
use std::fmt;

/// The elements that take over from elements of the old router, as pairs (old, new).
pub(crate) struct Moves {
    /// The pairs whose elements hold the same open resource, which the new element takes over.
    pub over: Vec<(u32, u32)>,
    /// The pairs whose counts and state move, because the new element replaces the old one.
    pub state: Vec<(u32, u32)>,
}

/// Returns the pairs of elements that hold the same resource. If several elements of a router hold it, the first old
/// element is paired with the first new one, the second with the second, and so on.
fn over(old: &Shared, new: &Shared) -> Vec<(u32, u32)> {
    let pairs = new.held.iter().filter_map(|(key, heirs)| Some(old.held.get(key)?.iter().zip(heirs)));
    let mut over: Vec<(u32, u32)> = pairs.flatten().map(|(&o, &e)| (o, e)).collect();
    over.sort_by_key(|m| m.1);
    over
}

/// Pairs the elements of the old and the new router.
pub(crate) fn pairs(old: &Shared, new: &Shared) -> Pairs {
    Pairs::new(&old.graph, &new.graph, &over(old, new))
}

impl Moves {
    pub fn new(old: &Shared, new: &Shared, pairs: &Pairs) -> Moves {
        let state = (0..new.graph.len() as u32).filter_map(|e| Some((pairs.old_of(e)?, e)));
        Moves { over: over(old, new), state: state.collect() }
    }
    /// Returns the elements of the new router that hold a resource which the old router has open.
    pub fn inherited(old: &Shared, new: &Shared) -> HashSet<u32> {
        over(old, new).into_iter().map(|m| m.1).collect()
    }
}

/// The changes that a hot swap makes. Printed, it has one change per line: `+` for additions, `-` for removals, `~` for
/// elements with another configuration, `=` for state that moves, `!` for state that may be lost unintentionally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The declarations of the added elements.
    pub added: Vec<String>,
    /// The declarations of the removed elements. Their state and their packets are lost.
    pub removed: Vec<String>,
    /// The elements that stay but get another configuration string: the name, the old string and the new string.
    pub changed: Vec<(String, String, String)>,
    /// The added connections.
    pub connected: Vec<String>,
    /// The removed connections.
    pub disconnected: Vec<String>,
    /// The unnamed elements that stay but get another generated name (`Class@N`): the new declaration and the old name.
    pub renumbered: Vec<(String, String)>,
    /// The classes that have state to move, but whose unnamed elements could not all be paired.
    pub unpaired: Vec<String>,
    /// The state that moves: the element and the kind of state.
    pub moves: Vec<(String, String)>,
    /// The number of elements that stay unchanged.
    pub kept: usize,
}

/// Returns the connections of a router. `number` returns the number that an element of this router has in the new
/// router, or none if the element is removed.
fn connections(graph: &Graph, number: impl Fn(u32) -> Option<u32>) -> Vec<[End; 2]> {
    let end = |p: PortRef| {
        let own = p.element as u32;
        (number(own).ok_or(own), p.port)
    };
    graph.flat.connections.iter().map(|c| [end(c.from), end(c.to)]).collect()
}

/// A port: its element and its number. `Ok` has the element's number in the new router. `Err` stands for a removed
/// element and has its number in the old router.
type End = (Result<u32, u32>, usize);

/// Returns the connections in `own` that are not in `other`, as text.
fn only(graph: &Graph, own: &[[End; 2]], other: &[[End; 2]]) -> Vec<String> {
    let known: HashSet<&[End; 2]> = other.iter().collect();
    let text = |p: PortRef| (graph.name(p.element), p.port);
    let mut all = Vec::new();
    for (c, _) in graph.flat.connections.iter().zip(own).filter(|(_, ends)| !known.contains(ends)) {
        let ((a, i), (b, o)) = (text(c.from), text(c.to));
        all.push(format!("{a} [{i}] -> [{o}] {b}"));
    }
    all
}

impl Plan {
    pub(crate) fn new(old: &Shared, new: &Shared, pairs: &Pairs) -> Plan {
        let mut plan = Plan::default();
        for e in 0..new.graph.len() {
            let name = new.graph.name(e);
            let Some(element) = new.graph.element(e) else { continue };
            let Some(before) = pairs.old_of(e as u32) else {
                plan.added.push(declaration(&new.graph, e));
                continue;
            };
            let former = old.graph.name(before as usize);
            if former != name {
                plan.renumbered.push((element.declaration(), former.to_string()));
            }
            let config = old.graph.config(before as usize);
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
        let gone: Vec<usize> = (0..old.graph.len()).filter(|&e| pairs.new_of(e as u32).is_none()).collect();
        plan.removed = gone.iter().map(|&e| declaration(&old.graph, e)).collect();
        plan.unpaired = unpaired(&old.graph, &new.graph, &gone, pairs);
        for (o, e) in over(old, new) {
            let (from, to) = (old.graph.name(o as usize), new.graph.name(e as usize));
            if from != to {
                let what = format!("what '{from}' has open");
                plan.moves.push((new.graph.declaration(e as usize), what));
            }
        }
        // In `before`, `Err` with the old number stands for a removed element. So the connections of a removed element
        // differ from all connections of the new router.
        let before = connections(&old.graph, |e| pairs.new_of(e));
        let after = connections(&new.graph, Some);
        plan.connected = only(&new.graph, &after, &before);
        plan.disconnected = only(&old.graph, &before, &after);
        plan
    }
}

/// Help for a class whose unnamed elements could not all be paired.
const UNCLEAR: &str = "it is not clear which elements without a name stay; name them to keep what they hold";

impl Plan {
    /// Returns a message about the classes whose unnamed elements may lose their state. None if all of them were
    /// paired.
    pub fn pairing(&self) -> Option<String> {
        let lines: Vec<String> = self.unpaired.iter().map(|class| format!("{class}: {UNCLEAR}")).collect();
        (!lines.is_empty()).then(|| format!("hot swap: {}", lines.join("\n  ")))
    }
}

/// Returns the classes whose unnamed elements may lose their state. Such a class has state to move, and the swap
/// removes some of its unnamed elements and adds others.
fn unpaired(old: &Graph, new: &Graph, gone: &[usize], pairs: &Pairs) -> Vec<String> {
    let class = |graph: &Graph, e: usize| {
        let spec = graph.spec(e).filter(|s| !s.counts.is_empty() || !s.takes_state.is_empty())?;
        Pairs::is_unnamed(graph, e).then_some(spec.name)
    };
    let added = (0..new.len()).filter(|&e| pairs.old_of(e as u32).is_none());
    let added: HashSet<&str> = added.filter_map(|e| class(new, e)).collect();
    let mut all: Vec<String> = Vec::new();
    for name in gone.iter().filter_map(|&e| class(old, e)).filter(|name| added.contains(name)) {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_string());
        }
    }
    all
}

fn declaration(graph: &Graph, e: usize) -> String {
    let config = graph.config(e);
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
        for (declaration, before) in &self.renumbered {
            writeln!(f, "= {declaration}: was {before}")?;
        }
        for (name, what) in &self.moves {
            writeln!(f, "= {name}: {what}")?;
        }
        for class in &self.unpaired {
            writeln!(f, "! {class}: {UNCLEAR}")?;
        }
        let (new, gone, other) = (self.added.len(), self.removed.len(), self.changed.len());
        write!(f, "{new} added, {gone} removed, {other} changed, {} as they are", self.kept)?;
        match self.renumbered.len() {
            0 => writeln!(f),
            n => writeln!(f, ", {n} under another number"),
        }
    }
}

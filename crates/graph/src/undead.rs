// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes dead code from a configuration: elements that no packet can reach or leave, and elements that only pass
//! packets on ("Programming language optimizations for modular router configurations", ASPLOS 2002, section 6).
//!
//! The result treats packets as before: the same packets reach each element that stays, in the same order.

use crate::Graph;
use castanet_lang::{Connection, Element, Flat, PortRef};
use castanet_spec::{ClassSpecs, Effects, LedgerRole};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Why an element was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No packet can reach the element, because no element that makes packets is upstream.
    Unreachable,
    /// Its packets go nowhere: downstream there is no element where packets end, other than an Idle.
    NoEnd,
    /// The element passes all packets on unchanged, from one input to one output.
    Redundant,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unreachable => "no packet can reach it",
            Why::NoEnd => "its packets go nowhere",
            Why::Redundant => "it only passes packets on",
        })
    }
}

/// An element that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The element: `name :: Class`.
    pub element: String,
    /// Why it was removed.
    pub why: Why,
}

/// Removes dead code from a configuration without errors, until nothing more can be removed. An element whose name
/// occurs in another element's configuration string stays, and so does an element of a class that `classes` does not
/// know.
pub fn undead(mut flat: Flat, classes: &dyn ClassSpecs) -> (Flat, Vec<Removed>) {
    let mut removed = Vec::new();
    loop {
        let before = removed.len();
        let (graph, _) = Graph::new(flat, classes);
        flat = Pass::new(&graph).run(&mut removed);
        if removed.len() == before {
            return (flat, removed);
        }
    }
}

/// One round over all elements.
struct Pass<'a> {
    graph: &'a Graph,
    /// The elements whose names occur in configuration strings.
    named: Vec<bool>,
    /// By element and input: whether a packet can arrive there.
    fed: HashSet<PortRef>,
    /// By element and output: whether a packet that leaves there can reach an element where packets end.
    wanted: HashSet<PortRef>,
}

/// Returns for each element whether its name may occur in a configuration string, as a word of it.
pub(crate) fn named(flat: &Flat) -> Vec<bool> {
    let is_name = |c: char| c.is_alphanumeric() || "_@/".contains(c);
    let words: HashSet<&str> =
        flat.elements.iter().flat_map(|e| e.config.split(move |c| !is_name(c))).collect();
    // A name in a compound may be written without the names of the compounds around it.
    let inner = |name: &str| {
        name.match_indices('/').any(|(i, _)| name.get(i + 1..).is_some_and(|n| words.contains(n)))
    };
    flat.elements.iter().map(|e| words.contains(e.name.as_str()) || inner(&e.name)).collect()
}

impl<'a> Pass<'a> {
    fn new(graph: &'a Graph) -> Pass<'a> {
        let named = named(&graph.flat);
        let mut pass = Pass { graph, named, fed: HashSet::new(), wanted: HashSet::new() };
        pass.find_fed();
        pass.find_wanted();
        pass
    }

    /// Whether packets may begin at an element.
    fn starts(&self, e: usize) -> bool {
        self.graph.spec(e).is_none_or(|s| {
            let makes = s.ledger_role.contains(LedgerRole::MAKES) && !s.copies;
            makes || s.ledger_role.contains(LedgerRole::ENTERS)
        })
    }
    /// Whether the packets that reach an element matter, because they may end there or have effects outside the router.
    fn ends(&self, e: usize) -> bool {
        let named = self.named.get(e).copied().unwrap_or(true);
        let configured = self.graph.element(e).is_some_and(|e| !e.config.trim().is_empty());
        // Without arguments, an element has nothing to call, and does not stop the router.
        let possible = if configured { Effects::all() } else { !(Effects::CALLS | Effects::STOPS) };
        let last = self.graph.outputs(e) == 0;
        named || self.graph.spec(e).is_none_or(|s| s.effects.intersects(possible) || last && s.name != "Idle")
    }

    /// Whether the packets that arrive at an input end in the element, which learns from them: an ARPQuerier, for example, from the
    /// responses at its second input.
    fn absorbs(&self, input: PortRef) -> bool {
        let g = self.graph;
        let outputs = g.outputs(input.element);
        let idle = g.spec(input.element).is_some_and(|s| s.name == "Idle");
        outputs > 0 && !idle && (0..outputs).all(|o| !g.flows(input.element, input.port, o))
    }

    /// Follows packets downstream from the elements where they begin.
    fn find_fed(&mut self) {
        let g = self.graph;
        let mut left: HashSet<PortRef> = HashSet::new();
        let mut open: Vec<PortRef> = Vec::new();
        for e in (0..g.len()).filter(|&e| self.starts(e)) {
            open.extend((0..g.outputs(e)).map(|port| PortRef { element: e, port }));
        }
        while let Some(output) = open.pop() {
            if !left.insert(output) {
                continue;
            }
            for &input in g.downstream(output) {
                if self.fed.insert(input) {
                    let outputs = 0..g.outputs(input.element);
                    let passed = outputs.filter(|&o| g.flows(input.element, input.port, o));
                    open.extend(passed.map(|port| PortRef { element: input.element, port }));
                }
            }
        }
    }

    /// Follows packets upstream from the elements where they end.
    fn find_wanted(&mut self) {
        let g = self.graph;
        let mut inputs: HashSet<PortRef> = HashSet::new();
        let mut open: Vec<PortRef> = Vec::new();
        for e in 0..g.len() {
            let inputs = (0..g.inputs(e)).map(|port| PortRef { element: e, port });
            let ends = self.ends(e);
            open.extend(inputs.filter(|&input| ends || self.absorbs(input)));
        }
        while let Some(input) = open.pop() {
            if !inputs.insert(input) {
                continue;
            }
            for &output in g.upstream(input) {
                if self.wanted.insert(output) {
                    let all = 0..g.inputs(output.element);
                    let passed = all.filter(|&i| g.flows(output.element, i, output.port));
                    open.extend(passed.map(|port| PortRef { element: output.element, port }));
                }
            }
        }
    }

    /// Why an element can be removed; none if it must stay.
    fn is_dead(&self, e: usize) -> Option<Why> {
        let g = self.graph;
        let (inputs, outputs) = (g.inputs(e), g.outputs(e));
        if inputs + outputs == 0 || self.named.get(e).copied().unwrap_or(true) || g.spec(e).is_none() {
            return None;
        }
        let fed = self.starts(e) || (0..inputs).any(|port| self.fed.contains(&PortRef { element: e, port }));
        let wanted =
            self.ends(e) || (0..outputs).any(|port| self.wanted.contains(&PortRef { element: e, port }));
        match (fed, wanted) {
            (false, _) => Some(Why::Unreachable),
            (true, false) => Some(Why::NoEnd),
            (true, true) => None,
        }
    }

    /// Whether a connection from or to an Idle can be removed, because the port at its other end has other connections.
    fn is_idle(&self, c: &Connection) -> bool {
        let g = self.graph;
        let idle = |e: usize| g.spec(e).is_some_and(|s| s.name == "Idle");
        let others = |all: &[PortRef]| all.iter().any(|p| !idle(p.element));
        let free = |e: usize| idle(e) && !self.named.get(e).copied().unwrap_or(true);
        free(c.from.element) && others(g.upstream(c.to)) || free(c.to.element) && others(g.downstream(c.from))
    }

    /// The input and the output between which an element passes all packets on unchanged. None if it does more, or if
    /// its name occurs in a configuration string.
    fn passage(&self, e: usize) -> Option<(usize, usize)> {
        let g = self.graph;
        let (inputs, outputs) = (g.inputs(e), g.outputs(e));
        let config = g.element(e)?.config.trim();
        let port = |count| config.parse().ok().filter(|&n: &usize| n < count);
        if self.named.get(e).copied().unwrap_or(true) {
            return None;
        }
        match g.spec(e)?.name {
            "Null" => Some((0, 0)),
            "Tee" | "PullTee" if outputs == 1 => Some((0, 0)),
            "StaticSwitch" => Some((0, port(outputs)?)),
            "StaticPullSwitch" => Some((port(inputs)?, 0)),
            "RoundRobinSched" | "PrioSched" | "StrideSched" => {
                let mut fed = (0..inputs).filter(|&port| self.fed.contains(&PortRef { element: e, port }));
                let only = fed.next()?;
                fed.next().is_none().then_some((only, 0))
            }
            _ => None,
        }
    }

    /// Returns the configuration without the elements that can be removed.
    fn run(&self, removed: &mut Vec<Removed>) -> Flat {
        let g = self.graph;
        let mut gone = vec![false; g.len()];
        let mut take_out = |gone: &mut Vec<bool>, e: usize, why: Why| {
            if let Some(gone) = gone.get_mut(e) {
                *gone = true;
            }
            removed.push(Removed { element: g.declaration(e), why });
        };
        // An Idle is removed only if its neighbours are removed too: `into_flat` connects each other port that lacks
        // connections to a new Idle.
        for e in 0..g.len() {
            let idle = g.spec(e).is_some_and(|s| s.name == "Idle");
            if let Some(why) = self.is_dead(e).filter(|_| !idle) {
                take_out(&mut gone, e, why);
            }
        }
        let is_gone = |gone: &[bool], e: usize| gone.get(e).copied().unwrap_or(true);
        let mut links = Links::new(&g.flat, |c| {
            is_gone(&gone, c.from.element) || is_gone(&gone, c.to.element) || self.is_idle(c)
        });
        for e in 0..g.len() {
            if is_gone(&gone, e) {
                continue;
            }
            if let Some((input, output)) = self.passage(e)
                && links.join(e, input, output)
            {
                take_out(&mut gone, e, Why::Redundant);
            }
        }
        links.into_flat(g, &gone)
    }
}

/// The connections of a configuration that is being changed.
struct Links {
    all: Vec<Option<Connection>>,
    /// By element: the connections to its inputs and from its outputs, as indices into `all`. Some of them may have
    /// been removed from `all`.
    of: HashMap<usize, Vec<usize>>,
}

impl Links {
    /// Makes the list from the connections of `flat`, without those that are gone.
    fn new(flat: &Flat, gone: impl Fn(&Connection) -> bool) -> Links {
        let mut links = Links { all: Vec::new(), of: HashMap::new() };
        for c in flat.connections.iter().filter(|c| !gone(c)) {
            links.add(*c);
        }
        links
    }
    fn add(&mut self, c: Connection) {
        let n = self.all.len();
        self.all.push(Some(c));
        self.of.entry(c.from.element).or_default().push(n);
        if c.to.element != c.from.element {
            self.of.entry(c.to.element).or_default().push(n);
        }
    }
    /// Connects everything that leads to this input of `e` to everything that this output of `e` leads to, and removes
    /// all other connections of `e`. Returns false, and changes nothing, if one of the two ports is not connected or
    /// `e` is connected to itself.
    fn join(&mut self, e: usize, input: usize, output: usize) -> bool {
        let mine = self.of.get(&e).cloned().unwrap_or_default();
        let all: Vec<Connection> = mine.iter().filter_map(|&n| self.all.get(n).copied().flatten()).collect();
        let to: Vec<_> = all.iter().filter(|c| c.to == PortRef { element: e, port: input }).collect();
        let from: Vec<_> = all.iter().filter(|c| c.from == PortRef { element: e, port: output }).collect();
        if to.is_empty() || from.is_empty() || all.iter().any(|c| c.from.element == c.to.element) {
            return false;
        }
        let joined: Vec<Connection> = to
            .iter()
            .flat_map(|a| from.iter().map(|b| Connection { from: a.from, to: b.to, span: a.span }))
            .collect();
        for n in mine {
            if let Some(c) = self.all.get_mut(n) {
                *c = None;
            }
        }
        joined.into_iter().for_each(|c| self.add(c));
        true
    }
    /// Returns the configuration without the elements that are `gone`. Each port that has lost its connections gets an
    /// Idle.
    fn into_flat(self, g: &Graph, gone: &[bool]) -> Flat {
        let mut out = Flat { elements: Vec::new(), connections: Vec::new(), ..g.flat.clone() };
        let mut number = HashMap::new();
        for (e, element) in g.flat.elements.iter().enumerate() {
            if !gone.get(e).copied().unwrap_or(true) {
                number.insert(e, out.elements.len());
                out.elements.push(element.clone());
            }
        }
        let place = |p: PortRef| number.get(&p.element).map(|&element| PortRef { element, port: p.port });
        let mut seen = HashSet::new();
        let mut used = HashSet::new();
        for c in self.all.into_iter().flatten() {
            let (Some(from), Some(to)) = (place(c.from), place(c.to)) else { continue };
            if seen.insert((from, to)) {
                used.extend([(from, true), (to, false)]);
                out.connections.push(Connection { from, to, span: c.span });
            }
        }
        let mut ports = Vec::new();
        let linked: HashSet<usize> = used.iter().map(|&(port, _): &(PortRef, bool)| port.element).collect();
        let is_idle = |e: usize| g.spec(e).is_some_and(|s| s.name == "Idle");
        for (e, &element) in &number {
            // An Idle without connections is removed too.
            if is_idle(*e) && !linked.contains(&element) {
                continue;
            }
            let inputs = (0..g.inputs(*e))
                .map(|port| (PortRef { element: *e, port }, PortRef { element, port }, false));
            let outputs = (0..g.outputs(*e))
                .map(|port| (PortRef { element: *e, port }, PortRef { element, port }, true));
            ports.extend(inputs.chain(outputs).filter(|p| !used.contains(&(p.1, p.2))));
        }
        ports.sort_by_key(|p| (p.1, p.2));
        let mut names = Names::new(&out);
        for (old, new, is_output) in ports {
            let connected = if is_output { g.downstream(old) } else { g.upstream(old) };
            if connected.is_empty() {
                continue;
            }
            let idle = PortRef { element: out.elements.len(), port: 0 };
            let span = out.elements.get(new.element).map(|e| e.span).unwrap_or_default();
            out.elements.push(Element {
                name: names.next(),
                class: "Idle".into(),
                config: String::new(),
                span,
                config_span: span,
                config_map: Vec::new(),
                origin: Vec::new(),
            });
            let (from, to) = if is_output { (new, idle) } else { (idle, new) };
            out.connections.push(Connection { from, to, span });
        }
        let old: HashMap<usize, usize> = number.iter().map(|(old, new)| (*new, *old)).collect();
        let linked: HashSet<usize> =
            out.connections.iter().flat_map(|c| [c.from.element, c.to.element]).collect();
        let stays = |e: usize| linked.contains(&e) || !old.get(&e).is_some_and(|&e| is_idle(e));
        let keep: Vec<bool> = (0..out.elements.len()).map(stays).collect();
        without(out, &keep)
    }
}

/// Returns the configuration with only the elements to keep. The others have no connections.
pub(crate) fn without(mut flat: Flat, keep: &[bool]) -> Flat {
    let mut number = Vec::with_capacity(keep.len());
    let mut n = 0;
    for &k in keep {
        number.push(n);
        n += usize::from(k);
    }
    let mut keeps = keep.iter();
    flat.elements.retain(|_| keeps.next().copied().unwrap_or(true));
    for c in &mut flat.connections {
        for port in [&mut c.from, &mut c.to] {
            port.element = number.get(port.element).copied().unwrap_or(port.element);
        }
    }
    flat
}

/// Names for new elements, which no other element has.
struct Names {
    taken: HashSet<String>,
    next: usize,
}

impl Names {
    fn new(flat: &Flat) -> Names {
        Names { taken: flat.elements.iter().map(|e| e.name.clone()).collect(), next: 0 }
    }
    fn next(&mut self) -> String {
        loop {
            self.next += 1;
            let name = format!("Idle@undead@{}", self.next);
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust source that moves a packet along the connections of a configuration by direct calls ("Programming language
//! optimizations for modular router configurations", ASPLOS 2002, section 6.1).
//!
//! Each push input of an element, and each chain of actions, has a function. The function pushes the packet to the element,
//! then calls the function of the next element. Elements share functions if the rules of the paper allow it: they have the same class, the same numbers of ports, ports of the same kinds, and the push outputs lead to
//! the same inputs of elements that share functions too.

use crate::{Graph, PortKind};
use castanet_lang::PortRef;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Elements that the run loop runs as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The elements, in the order in which packets pass them. Several only if the unit is a chain.
    pub elements: Vec<usize>,
    /// Its kind.
    pub kind: UnitKind,
}

/// The kinds of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// A chain of actions.
    Chain,
    /// An element outside chains.
    Element,
    /// An element that no function calls: it needs access to other elements, because it pulls or calls handlers.
    Reaching,
}

/// The source for a configuration.
pub struct Source {
    /// The Rust source.
    pub text: String,
    /// The number of units that have code.
    pub units: usize,
    /// The number of functions for them.
    pub functions: usize,
    /// The number of sites.
    pub sites: usize,
}

/// The crate whose classes can be called directly.
const CRATE: &str = "castanet_elements::";

/// The properties that units must have in common to share functions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Signature {
    kind: UnitKind,
    /// For each element of the unit: its class, whether it is called directly, the kinds of its inputs, and the kinds of its
    /// outputs.
    elements: Vec<(String, bool, Vec<bool>, Vec<bool>)>,
    /// The next unit's function and input, for each output that leads out of the unit.
    next: Vec<Option<(usize, usize)>>,
}

/// Computes which units share a function.
struct Functions<'a> {
    graph: &'a Graph,
    units: &'a [Unit],
    /// The unit that each element begins.
    heads: HashMap<usize, usize>,
    /// The outputs whose connection closes a cycle.
    back: HashSet<PortRef>,
    direct: &'a dyn Fn(&str) -> bool,
    /// The function of each unit, and the index of the unit among those that share it. None if it has none.
    of: Vec<Option<(usize, usize)>>,
    known: HashMap<Signature, usize>,
    all: Vec<Signature>,
    /// The units that share each function.
    shared: Vec<Vec<usize>>,
}

impl<'a> Functions<'a> {
    fn new(graph: &'a Graph, units: &'a [Unit], direct: &'a dyn Fn(&str) -> bool) -> Functions<'a> {
        let heads =
            units.iter().enumerate().filter_map(|(u, unit)| Some((*unit.elements.first()?, u))).collect();
        let closing = graph.flat.connections.iter().zip(graph.back_edges()).filter(|(_, back)| *back);
        let back = closing.map(|(c, _)| c.from).collect();
        let (of, known) = (vec![None; units.len()], HashMap::new());
        let mut out =
            Functions { graph, units, heads, back, direct, of, known, all: Vec::new(), shared: Vec::new() };
        out.assign();
        out
    }

    /// The outputs by which a single packet can leave a unit: all outputs of an element, or output 0 of the last action of a
    /// chain.
    fn outputs(&self, unit: &Unit) -> Vec<PortRef> {
        let last = unit.elements.last().copied().unwrap_or_default();
        let outputs = self.graph.outputs(last).min(if unit.kind == UnitKind::Chain { 1 } else { usize::MAX });
        (0..outputs).map(|port| PortRef { element: last, port }).collect()
    }
    /// The unit and input that an output leads to. None if packets do not cross this connection by a direct call.
    fn target(&self, output: PortRef) -> Option<(usize, usize)> {
        if self.graph.output_kind(output.element, output.port) != PortKind::Push
            || self.back.contains(&output)
        {
            return None;
        }
        let &[to] = self.graph.downstream(output) else { return None };
        let unit = *self.heads.get(&to.element)?;
        let callable = self.units.get(unit).is_some_and(|u| u.kind != UnitKind::Reaching);
        callable.then_some((unit, to.port))
    }

    /// Assigns functions to all units that packets can be pushed to. A unit comes after the units that it leads to. There
    /// are no cycles, because connections that close cycles are not followed.
    fn assign(&mut self) {
        let mut seen = vec![false; self.units.len()];
        for first in 0..self.units.len() {
            // The units whose successors are being visited, each with its remaining successors.
            let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut next = Some(first);
            loop {
                if let Some(u) = next.take()
                    && seen.get_mut(u).is_some_and(|s| !std::mem::replace(s, true))
                    && let Some(unit) = self.units.get(u)
                {
                    let after = self.outputs(unit).into_iter().filter_map(|o| Some(self.target(o)?.0));
                    open.push((u, after.collect()));
                }
                let Some((u, after)) = open.last_mut() else { break };
                match after.pop() {
                    Some(v) => next = Some(v),
                    None => {
                        let u = *u;
                        open.pop();
                        self.add(u);
                    }
                }
            }
        }
    }
    fn add(&mut self, u: usize) {
        let Some(unit) = self.units.get(u) else { return };
        let pushed = unit.elements.first().is_some_and(|&e| {
            (0..self.graph.inputs(e)).any(|i| self.graph.input_kind(e, i) == PortKind::Push)
        });
        if unit.kind == UnitKind::Reaching || !pushed {
            return;
        }
        let signature = self.signature(unit);
        let new = self.all.len();
        let f = *self.known.entry(signature.clone()).or_insert(new);
        if f == new {
            self.all.push(signature);
            self.shared.push(Vec::new());
        }
        if let (Some(of), Some(shared)) = (self.of.get_mut(u), self.shared.get_mut(f)) {
            *of = Some((f, shared.len()));
            shared.push(u);
        }
    }
    fn signature(&self, unit: &Unit) -> Signature {
        let kinds =
            |n: usize, kind: &dyn Fn(usize) -> PortKind| (0..n).map(|p| kind(p) == PortKind::Push).collect();
        let element = |&e: &usize| {
            let path = self.path(e);
            let class = path
                .clone()
                .unwrap_or_else(|| self.graph.element(e).map_or(String::new(), |x| x.class.to_string()));
            let inputs = kinds(self.graph.inputs(e), &|i| self.graph.input_kind(e, i));
            let outputs = kinds(self.graph.outputs(e), &|o| self.graph.output_kind(e, o));
            (class, path.is_some(), inputs, outputs)
        };
        let next = self.outputs(unit).into_iter().map(|o| {
            let (u, input) = self.target(o)?;
            Some((self.function(u)?.0, input))
        });
        Signature {
            kind: unit.kind,
            elements: unit.elements.iter().map(element).collect(),
            next: next.collect(),
        }
    }
    /// The path of the Rust type of an element. None if it is not called directly.
    fn path(&self, e: usize) -> Option<String> {
        let spec = self.graph.spec(e).filter(|s| s.module.starts_with(CRATE) && (self.direct)(s.name))?;
        Some(format!("{}::{}", spec.module, spec.type_name))
    }
    /// The name of a function for an input.
    fn name(&self, f: usize, input: usize) -> String {
        let first = self.shared.get(f).and_then(|s| self.units.get(*s.first()?)?.elements.first());
        let class = first.and_then(|&e| self.graph.element(e)).map_or("", |e| e.class.as_str());
        let mut name = String::new();
        for (i, c) in class.chars().enumerate() {
            match c {
                'A'..='Z' if i > 0 && name.ends_with(|b: char| b.is_ascii_lowercase()) => {
                    name.push('_');
                    name.push(c.to_ascii_lowercase());
                }
                'a'..='z' | 'A'..='Z' | '0'..='9' => name.push(c.to_ascii_lowercase()),
                _ if name.ends_with('_') => {}
                _ => name.push('_'),
            }
        }
        format!("f{f}_{name}_{input}")
    }

    /// The inputs of a function's units that packets are pushed to.
    fn inputs(&self, f: usize) -> Vec<usize> {
        let Some(signature) = self.all.get(f) else { return Vec::new() };
        let pushed = signature.elements.first().map_or(&[][..], |e| &e.2);
        pushed.iter().enumerate().filter(|(_, push)| **push).map(|(i, _)| i).collect()
    }

    /// The function of a unit, and the index of the unit among those that share it.
    fn function(&self, u: usize) -> Option<(usize, usize)> {
        self.of.get(u).copied().flatten()
    }
    fn is_shared(&self, f: usize) -> bool {
        self.shared.get(f).is_some_and(|s| s.len() > 1)
    }
    /// A call of a function, whose argument for the index of the unit is `index`.
    fn call(&self, f: usize, input: usize, index: &str) -> String {
        let name = self.name(f, input);
        if self.is_shared(f) { format!("{name}(w, {index}, p)") } else { format!("{name}(w, p)") }
    }
    /// The call with which the packet goes on from an output of a function's units.
    fn onward(&self, f: usize, output: usize) -> Option<String> {
        let shared = self.shared.get(f)?;
        let next = |&u: &usize| {
            let output = *self.outputs(self.units.get(u)?).get(output)?;
            let (to, input) = self.target(output)?;
            let (to, index) = self.function(to)?;
            Some((to, input, index))
        };
        let all: Vec<(usize, usize, usize)> = shared.iter().map(next).collect::<Option<_>>()?;
        let &(to, input, first) = all.first()?;
        let index = if all.iter().all(|n| n.2 == first) {
            first.to_string()
        } else if all.iter().enumerate().all(|(i, n)| n.2 == i) {
            "i".to_string()
        } else {
            let list: Vec<String> = all.iter().map(|n| n.2.to_string()).collect();
            format!("[{}].get(i).copied().unwrap_or(0)", list.join(", "))
        };
        Some(self.call(to, input, &index))
    }

    /// Writes a function. Its first unit is the site with number `site`.
    fn write(&self, f: usize, input: usize, site: usize, out: &mut String) {
        let Some(signature) = self.all.get(f) else { return };
        let shared = self.shared.get(f).map_or(&[][..], Vec::as_slice);
        let names = |u: &usize| {
            let names = self.units.get(*u).into_iter().flat_map(|u| &u.elements).map(|&e| self.graph.name(e));
            names.collect::<Vec<_>>().join(" -> ")
        };
        for u in shared.iter().take(8) {
            let _ = writeln!(out, "/// {}", names(u).escape_default());
        }
        if shared.len() > 8 {
            let _ = writeln!(out, "/// and {} more", shared.len() - 8);
        }
        let name = self.name(f, input);
        let (argument, site) =
            if self.is_shared(f) { ("i: usize, ", format!("{site} + i")) } else { ("", site.to_string()) };
        let _ = writeln!(out, "fn {name}(w: &mut Walk<'_, '_>, {argument}p: Packet) -> bool {{");
        let calls = (0..signature.next.len()).filter_map(|port| Some((port, self.onward(f, port)?)));
        match signature.kind {
            UnitKind::Chain => {
                let n = signature.elements.len();
                let _ = writeln!(out, "    w.chain({site}, p, |chain: &mut Chain<'_, {n}>, p, cx| {{");
                for (i, (class, direct, ..)) in signature.elements.iter().enumerate() {
                    let last = if i + 1 == n { "" } else { "?;" };
                    let _ = match direct {
                        true => writeln!(out, "        chain.run::<{class}, {i}>(p, cx){last}"),
                        false => writeln!(out, "        chain.run_any::<{i}>(p, cx){last}"),
                    };
                }
                let _ = match calls.map(|c| c.1).next() {
                    Some(call) => writeln!(out, "    }}, |w, _, p| {call})\n}}\n"),
                    None => writeln!(out, "    }}, Walk::pass)\n}}\n"),
                };
            }
            UnitKind::Element | UnitKind::Reaching => {
                let _ = match signature.elements.first() {
                    Some((class, true, ..)) => write!(out, "    w.element::<{class}>({site}, {input}, p, "),
                    _ => write!(out, "    w.any_element({site}, {input}, p, "),
                };
                let mut arms = String::new();
                for (port, call) in calls {
                    let _ = writeln!(arms, "        {port} => {call},");
                }
                let _ = match arms.is_empty() {
                    true => writeln!(out, "|w, _, edge, p| w.pass(edge, p))\n}}\n"),
                    false => writeln!(
                        out,
                        "|w, output, edge, p| match output {{\n{arms}        _ => w.pass(edge, p),\n    }})\n}}\n"
                    ),
                };
            }
        }
    }

    /// The units at which the run loop starts to move single packets, with the input: those behind tasks and behind
    /// elements that packets reach by ordinary steps. Units without a call to a next unit are left out.
    fn starts(&self) -> Vec<(usize, usize)> {
        let starts = |unit: &&Unit| {
            let e = unit.elements.first().copied().unwrap_or_default();
            unit.kind == UnitKind::Reaching
                || self.graph.inputs(e) == 0
                || self.graph.spec(e).is_none_or(|s| s.task)
        };
        let outputs = self.units.iter().filter(starts).flat_map(|u| self.outputs(u));
        let leads_on = |&(u, _): &(usize, usize)| {
            self.function(u)
                .and_then(|f| self.all.get(f.0))
                .is_some_and(|s| s.next.iter().any(Option::is_some))
        };
        let mut all: Vec<_> = outputs.filter_map(|o| self.target(o)).filter(leads_on).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Writes the source for a configuration. `units` are its elements as the run loop runs them. Elements of classes for
/// which `direct` is false are called as usual; so are elements of packages. `first_site` is the number of the first site. It
/// is above 0 if the sites of other configurations precede.
pub fn source(graph: &Graph, units: &[Unit], direct: &dyn Fn(&str) -> bool, first_site: usize) -> Source {
    let functions = Functions::new(graph, units, direct);
    let mut text = String::from(
        "#[allow(unused_imports)]\n\
         use castanet_element::package::{Guard, Wrap as _};\n\
         #[allow(unused_imports)]\n\
         use castanet_packet::Packet;\n\
         #[allow(unused_imports)]\n\
         use castanet_runtime::compiled::{Chain, Entry, Walk};\n\n",
    );
    let (mut sites, mut first) = (Vec::new(), vec![0; functions.all.len()]);
    for f in (0..functions.all.len()).rev() {
        let site = first_site + sites.len();
        if let Some(first) = first.get_mut(f) {
            *first = site;
        }
        for input in functions.inputs(f) {
            functions.write(f, input, site, &mut text);
        }
        let head = |u: &usize| units.get(*u)?.elements.first().copied();
        sites.extend(functions.shared.get(f).into_iter().flatten().filter_map(head));
    }
    text.push_str("/// The elements that packets are pushed to.\npub const SITES: &[u32] = &[");
    for e in &sites {
        let _ = write!(text, "{e}, ");
    }
    text.push_str("];\n\n/// The functions with which packets start: site, input, function.\npub const ENTRIES: &[(u32, u32, Entry)] = &[\n");
    for (u, input) in functions.starts() {
        if let Some((f, index)) = functions.function(u)
            && let Some(site) = first.get(f)
        {
            let call = functions.call(f, input, &index.to_string());
            let _ = writeln!(text, "    ({}, {input}, |w, p| Guard.call(|| {call})),", site + index);
        }
    }
    text.push_str("];\n");
    let units = functions.of.iter().flatten().count();
    Source { text, units, functions: functions.all.len(), sites: sites.len() }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration graph: elements and their classes, ports in use, connections, push and pull.

use crate::csr::Csr;
use crate::flow::{Codes, Points, Side};
use crate::{check, resolve};
use castanet_lang::{Diagnostic, Element, Flat, PortRef};
use castanet_spec::{ClassSpec, ClassSpecs};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::OnceLock;

/// The kind of a port in a router: push or pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// The upstream element initiates the transfer.
    Push,
    /// The downstream element initiates the transfer.
    Pull,
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortKind::Push => "push",
            PortKind::Pull => "pull",
        })
    }
}

/// A flat configuration, with ports and connections resolved.
///
/// INVARIANT: `flat` and `specs` are never modified; the other fields are computed from them.
///
/// Elements are identified by their index in `flat.elements`. For an index or port that does not exist, functions
/// return the same as for an element without ports.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The configuration.
    pub flat: Flat,
    /// Each class that elements are written with, once; `None` for an unknown class.
    pub specs: Vec<Option<&'static ClassSpec>>,
    /// The codes of these classes.
    codes: Vec<Codes>,
    /// For each element, its index in `specs` and `codes`.
    class_of: Vec<u32>,
    pub(crate) points: Points,
    kinds: Vec<PortKind>,
    /// For each input and output, the ports that it is connected to.
    peers: Csr<PortRef>,
    pub(crate) peer_connections: Csr<u32>,
    /// The element with each name. Made on first use, because most routers look up no name.
    names: OnceLock<FxHashMap<String, usize>>,
}

/// Input numbers of an element must be less than `FREE_PORTS` plus `GAP` times the number of connections to its inputs.
/// The same holds for outputs. The limit keeps a huge port number from allocating memory.
const GAP: usize = 16;
const FREE_PORTS: usize = 64;

impl Graph {
    /// Builds the graph and checks ports, push and pull (TOCS 2000, Figure 4).
    ///
    /// Errors come in the order of the checks: port numbers out of range, push and pull, ports used twice,
    /// unused ports. The graph is built even if there are errors; connections to nonexistent ports are left out
    /// of it.
    pub fn new(flat: Flat, classes: &dyn ClassSpecs) -> (Graph, Vec<Diagnostic>) {
        let n = flat.elements.len();
        let mut known: FxHashMap<&str, u32> = FxHashMap::default();
        let (mut specs, mut codes) = (Vec::new(), Vec::new());
        let mut class_of = Vec::with_capacity(n);
        for e in &flat.elements {
            let class = *known.entry(e.class.as_str()).or_insert_with(|| {
                let spec = classes.spec(&e.class);
                codes.push(Codes::new(spec));
                specs.push(spec);
                codes.len() as u32 - 1
            });
            class_of.push(class);
        }
        let codes_of = |e: usize| &codes[class_of[e] as usize];
        let counts = port_counts(&flat, codes_of);
        let points = Points::new(&counts, codes_of);
        // The connections between existing ports, with their indices and with both ports as points.
        let connections = flat.connections.iter().zip(0u32..).filter_map(|(c, i)| {
            let from = points.output(c.from.element, c.from.port)?;
            Some((c, i, from, points.input(c.to.element, c.to.port)?))
        });
        let ends = connections.clone().flat_map(|(c, _, from, to)| [(from, c.to), (to, c.from)]);
        let peers = Csr::new(points.hub_start(), ends);
        let numbers = connections.flat_map(|(_, i, from, to)| [(from, i), (to, i)]);
        let peer_connections = Csr::new(points.hub_start(), numbers);
        let (kinds, names) = (Vec::new(), OnceLock::new());
        let mut graph = Graph { flat, specs, codes, class_of, points, kinds, peers, peer_connections, names };
        let resolved = resolve::resolve(&graph);
        graph.kinds = resolved.kinds();
        let diagnostics = check::all(&graph, &resolved);
        (graph, diagnostics)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.flat.elements.len()
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.flat.elements.is_empty()
    }
    /// The element with this index; `None` if there is none.
    pub fn element(&self, e: usize) -> Option<&Element> {
        self.flat.elements.get(e)
    }
    /// The class of an element; `None` if it is unknown.
    pub fn spec(&self, e: usize) -> Option<&'static ClassSpec> {
        self.specs.get(self.class_number(e)?).copied().flatten()
    }
    /// The element as messages show it: `name :: Class`.
    pub fn declaration(&self, e: usize) -> String {
        self.element(e).map(Element::declaration).unwrap_or_default()
    }
    /// The full name of an element; empty if there is no element with this index.
    pub fn name(&self, e: usize) -> &str {
        self.element(e).map_or("", |e| &e.name)
    }
    /// The configuration string of an element; empty if there is no element with this index.
    pub fn config(&self, e: usize) -> &str {
        self.element(e).map_or("", |e| &e.config)
    }
    /// The number of inputs of an element: one more than the highest connected input, and at least the minimum
    /// of its class.
    pub fn inputs(&self, e: usize) -> usize {
        self.points.inputs(e).len()
    }
    /// The number of outputs of an element.
    pub fn outputs(&self, e: usize) -> usize {
        self.points.outputs(e).len()
    }
    /// The kind of an input; push if nothing constrains it.
    pub fn input_kind(&self, e: usize, port: usize) -> PortKind {
        self.points.input(e, port).map_or(PortKind::Push, |p| self.kind(p))
    }
    /// The kind of an output; push if nothing constrains it.
    pub fn output_kind(&self, e: usize, port: usize) -> PortKind {
        self.points.output(e, port).map_or(PortKind::Push, |p| self.kind(p))
    }
    /// Whether the class declares an input as agnostic.
    pub fn input_is_agnostic(&self, e: usize, port: usize) -> bool {
        self.points.input(e, port).is_some_and(|p| self.agnostic(p))
    }
    /// Whether the class declares an output as agnostic.
    pub fn output_is_agnostic(&self, e: usize, port: usize) -> bool {
        self.points.output(e, port).is_some_and(|p| self.agnostic(p))
    }
    /// The inputs that an output is connected to.
    pub fn downstream(&self, output: PortRef) -> &[PortRef] {
        self.points.output(output.element, output.port).map_or(&[], |p| self.peers.row(p))
    }
    /// The outputs that an input is connected to.
    pub fn upstream(&self, input: PortRef) -> &[PortRef] {
        self.points.input(input.element, input.port).map_or(&[], |p| self.peers.row(p))
    }
    /// Whether a packet that enters an element by `input` may leave it by `output`.
    pub fn flows(&self, e: usize, input: usize, output: usize) -> bool {
        input < self.inputs(e) && output < self.outputs(e) && self.codes(e).connects(input, output)
    }
    /// The index of the element with this full name; `None` if there is none.
    pub fn find(&self, name: &str) -> Option<usize> {
        let names = self.names.get_or_init(|| {
            let elements = self.flat.elements.iter().enumerate();
            // If two elements have the same name, the first one is found.
            elements.rev().map(|(i, e)| (e.name.clone(), i)).collect()
        });
        names.get(name).copied()
    }
    /// Looks a name up from a scope prefix outward: `a/b/` tries `a/b/NAME`, `a/NAME`, `NAME`.
    pub fn find_from(&self, scope: &str, name: &str) -> Option<usize> {
        let mut scope = scope.trim_end_matches('/');
        while !scope.is_empty() {
            if let Some(i) = self.find(&format!("{scope}/{name}")) {
                return Some(i);
            }
            scope = scope.rfind('/').and_then(|i| scope.get(..i)).unwrap_or("");
        }
        self.find(name)
    }

    /// The number of the class that an element is written with. Classes are numbered in the order of their first elements.
    pub fn class_number(&self, e: usize) -> Option<usize> {
        self.class_of.get(e).map(|&c| c as usize)
    }
    /// Calls `f` with each class that elements are written with, in the order of [`Graph::class_number`].
    pub fn each_class<'a, T>(&'a self, mut f: impl FnMut(&'a str) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.codes.len());
        for (element, &class) in self.flat.elements.iter().zip(&self.class_of) {
            if class as usize == all.len() {
                all.push(f(&element.class));
            }
        }
        all
    }

    #[inline]
    pub(crate) fn codes(&self, e: usize) -> &Codes {
        &self.codes[self.class_of[e] as usize]
    }
    /// The kind of a port; hubs count as push.
    #[inline]
    pub(crate) fn kind(&self, point: usize) -> PortKind {
        self.kinds.get(point).copied().unwrap_or(PortKind::Push)
    }
    pub(crate) fn agnostic(&self, point: usize) -> bool {
        use castanet_spec::codes::Processing::Agnostic;
        let (e, port) = (self.points.owner(point), self.points.port(point));
        match self.points.side(point) {
            Side::Input => self.codes(e).input(port) == Agnostic,
            Side::Output => self.codes(e).output(port) == Agnostic,
            Side::Hub => false,
        }
    }
    /// Whether a port has a connection.
    #[inline]
    pub(crate) fn is_connected(&self, point: usize) -> bool {
        !self.peers.row(point).is_empty()
    }
    /// The points connected to a port, each with the index of its connection.
    pub(crate) fn peers(&self, point: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let is_input = self.points.side(point) == Side::Input;
        let row = self.peers.row(point).iter().zip(self.peer_connections.indices(point));
        row.filter_map(move |(p, connection)| {
            let peer = match is_input {
                true => self.points.output(p.element, p.port),
                false => self.points.input(p.element, p.port),
            };
            Some((peer?, connection))
        })
    }
    /// One peer of a port, by index, with the index of the connection; `None` if the port has fewer peers.
    pub(crate) fn peer(&self, point: usize, index: usize) -> Option<(usize, usize)> {
        let p = self.peers.item(point, index)?;
        let connection = self.peer_connections.item(point, index)?;
        let peer = match self.points.side(point) {
            Side::Input => self.points.output(p.element, p.port),
            _ => self.points.input(p.element, p.port),
        };
        Some((peer?, *connection as usize))
    }
}

/// The number of inputs and outputs of each element. Port numbers that the class does not allow, or that exceed the
/// limit described at [`GAP`], are ignored.
fn port_counts<'a>(flat: &Flat, codes: impl Fn(usize) -> &'a Codes) -> Vec<(usize, usize)> {
    let n = flat.elements.len();
    let mut connected = vec![(0usize, 0usize); n];
    for c in &flat.connections {
        if let Some(count) = connected.get_mut(c.from.element) {
            count.1 += 1;
        }
        if let Some(count) = connected.get_mut(c.to.element) {
            count.0 += 1;
        }
    }
    let limit = |connections: usize, max: Option<usize>| {
        max.unwrap_or(usize::MAX).min(FREE_PORTS.saturating_add(connections.saturating_mul(GAP)))
    };
    let mut counts: Vec<_> = (0..n).map(|e| (codes(e).ports.inputs.min, 0)).collect();
    for c in &flat.connections {
        if let Some(count) = counts.get_mut(c.to.element) {
            let e = c.to.element;
            if c.to.port < limit(connected[e].0, codes(e).ports.inputs.max) {
                count.0 = count.0.max(c.to.port + 1);
            }
        }
    }
    for (e, count) in counts.iter_mut().enumerate() {
        count.1 = codes(e).ports.outputs_for(count.0).min;
    }
    for c in &flat.connections {
        if let Some(count) = counts.get_mut(c.from.element) {
            let e = c.from.element;
            if c.from.port < limit(connected[e].1, codes(e).ports.outputs_for(count.0).max) {
                count.1 = count.1.max(c.from.port + 1);
            }
        }
    }
    counts
}

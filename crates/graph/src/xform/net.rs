// SPDX-License-Identifier: MIT OR Apache-2.0
//! A configuration that is being changed, with indices by class and by port.

use super::config::{Argument, arguments};
use crate::Graph;
use crate::flow::Codes;
use crate::graph::PortKind;
use castanet_lang::{Connection, Element, Flat, PortRef, Span};
use castanet_spec::{ClassSpec, ClassSpecs};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// A side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Side {
    Input,
    Output,
}

impl Side {
    /// The side at the other end of a connection.
    pub fn other(self) -> Side {
        match self {
            Side::Input => Side::Output,
            Side::Output => Side::Input,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
        }
    }
}

/// A class, by its number in [`Net`].
pub(super) type ClassNumber = usize;

/// The connections at each port in use, as numbers in [`Net`].
type Ports = BTreeMap<usize, BTreeSet<usize>>;

/// An element.
pub(super) struct Node {
    pub element: Element,
    pub class: ClassNumber,
    /// The index in the original configuration of the element whose place this one takes.
    pub place: usize,
    /// The rules that this element comes from: those that have made it, those that the elements it replaced come from,
    /// and so on.
    pub rules: Rc<BTreeSet<usize>>,
    args: OnceCell<Vec<Argument>>,
    inputs: Ports,
    outputs: Ports,
}

impl Node {
    fn new(element: Element, class: ClassNumber, place: usize) -> Node {
        let (inputs, outputs) = (Ports::new(), Ports::new());
        Node { element, class, place, rules: Rc::default(), args: OnceCell::new(), inputs, outputs }
    }
    fn side(&self, side: Side) -> &Ports {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }
    fn side_mut(&mut self, side: Side) -> &mut Ports {
        match side {
            Side::Input => &mut self.inputs,
            Side::Output => &mut self.outputs,
        }
    }
    /// The ports in use, each with its number of connections.
    pub fn ports(&self, side: Side) -> impl ExactSizeIterator<Item = (usize, usize)> + '_ {
        self.side(side).iter().map(|(port, ids)| (*port, ids.len()))
    }
    /// The numbers of the connections at a port.
    pub fn connections(&self, side: Side, port: usize) -> impl Iterator<Item = usize> + '_ {
        self.side(side).get(&port).into_iter().flatten().copied()
    }
    /// How many connections a port has.
    pub fn degree(&self, side: Side, port: usize) -> usize {
        self.side(side).get(&port).map_or(0, BTreeSet::len)
    }
}

/// A connection. `kind` is none for a connection inside a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub from: PortRef,
    pub to: PortRef,
    pub kind: Option<PortKind>,
    /// The index in the original configuration of the connection whose place this one takes.
    pub place: usize,
    pub span: Span,
}

impl Link {
    /// The end at an element's input or output.
    pub fn end(&self, side: Side) -> PortRef {
        match side {
            Side::Input => self.to,
            Side::Output => self.from,
        }
    }
}

/// A configuration that is being changed.
pub(super) struct Net {
    nodes: Vec<Option<Node>>,
    links: Vec<Option<Link>>,
    /// The number of each connection, by its ends.
    numbers: HashMap<(PortRef, PortRef), usize>,
    class_numbers: HashMap<String, ClassNumber>,
    specs: Vec<Option<&'static ClassSpec>>,
    codes: Vec<Codes>,
    by_class: Vec<Vec<usize>>,
    names: HashSet<String>,
    /// The configuration without its elements and connections.
    rest: Flat,
}

impl Net {
    pub fn new(flat: Flat, classes: &dyn ClassSpecs) -> Net {
        let (graph, _) = Graph::new(flat, classes);
        let mut net = Net {
            nodes: Vec::with_capacity(graph.len()),
            links: Vec::with_capacity(graph.flat.connections.len()),
            numbers: HashMap::new(),
            class_numbers: HashMap::new(),
            specs: Vec::new(),
            codes: Vec::new(),
            by_class: Vec::new(),
            names: graph.flat.elements.iter().map(|e| e.name.clone()).collect(),
            rest: Flat::default(),
        };
        let kinds: Vec<PortKind> =
            graph.flat.connections.iter().map(|c| graph.output_kind(c.from.element, c.from.port)).collect();
        let mut flat = graph.flat;
        for (place, element) in std::mem::take(&mut flat.elements).into_iter().enumerate() {
            let class = net.class(&element.class, classes);
            net.add(Node::new(element, class, place));
        }
        for (place, (c, kind)) in std::mem::take(&mut flat.connections).into_iter().zip(kinds).enumerate() {
            net.connect(Link { from: c.from, to: c.to, kind: Some(kind), place, span: c.span });
        }
        net.rest = flat;
        net
    }

    /// Returns the number of a class. Two names of one class count as two classes, because some classes do something else under
    /// another name.
    pub fn class(&mut self, name: &str, classes: &dyn ClassSpecs) -> ClassNumber {
        if let Some(&n) = self.class_numbers.get(name) {
            return n;
        }
        let n = self.codes.len();
        let spec = classes.spec(name);
        self.specs.push(spec);
        self.codes.push(Codes::new(spec));
        self.by_class.push(Vec::new());
        self.class_numbers.insert(name.to_string(), n);
        n
    }
    pub fn codes(&self, class: ClassNumber) -> Option<&Codes> {
        self.codes.get(class)
    }
    /// The elements of a class, in order. The list may have elements that are gone.
    pub fn of_class(&self, class: ClassNumber) -> &[usize] {
        self.by_class.get(class).map_or(&[], Vec::as_slice)
    }
    /// An element; none if it is gone.
    pub fn node(&self, e: usize) -> Option<&Node> {
        self.nodes.get(e)?.as_ref()
    }
    /// The arguments of an element's configuration string.
    pub fn args<'a>(&self, node: &'a Node) -> &'a [Argument] {
        let spec = self.specs.get(node.class).copied().flatten();
        node.args.get_or_init(|| arguments(&node.element.config, spec))
    }
    pub fn link(&self, id: usize) -> Option<&Link> {
        self.links.get(id)?.as_ref()
    }
    /// The number of the connection between two ports; none if there is none.
    pub fn number(&self, from: PortRef, to: PortRef) -> Option<usize> {
        self.numbers.get(&(from, to)).copied()
    }
    /// Returns a name in `scope` that no element has: `BASE@xform@N`. The name counts as taken from then on.
    pub fn fresh_name(&mut self, scope: &str, base: &str, numbers: &mut HashMap<String, usize>) -> String {
        let stem = format!("{scope}{base}@xform@");
        let number = numbers.entry(stem.clone()).or_default();
        loop {
            *number += 1;
            let name = format!("{stem}{number}");
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    fn add(&mut self, node: Node) -> usize {
        let e = self.nodes.len();
        if let Some(list) = self.by_class.get_mut(node.class) {
            list.push(e);
        }
        self.nodes.push(Some(node));
        e
    }
    /// Adds an element that `rules` have made.
    pub fn insert(
        &mut self,
        element: Element,
        class: ClassNumber,
        place: usize,
        rules: Rc<BTreeSet<usize>>,
    ) -> usize {
        self.add(Node { rules, ..Node::new(element, class, place) })
    }
    /// Notes that an element comes from `rules`.
    pub fn set_rules(&mut self, e: usize, rules: Rc<BTreeSet<usize>>) {
        if let Some(node) = self.nodes.get_mut(e).and_then(Option::as_mut) {
            node.rules = rules;
        }
    }
    /// Removes an element. It must have no connections.
    pub fn remove(&mut self, e: usize) -> Option<Node> {
        self.nodes.get_mut(e)?.take()
    }
    /// Adds a connection, unless it exists.
    pub fn connect(&mut self, link: Link) {
        if self.number(link.from, link.to).is_some() {
            return;
        }
        let id = self.links.len();
        self.numbers.insert((link.from, link.to), id);
        for (side, port) in [(Side::Output, link.from), (Side::Input, link.to)] {
            if let Some(node) = self.nodes.get_mut(port.element).and_then(Option::as_mut) {
                node.side_mut(side).entry(port.port).or_default().insert(id);
            }
        }
        self.links.push(Some(link));
    }
    /// Removes a connection.
    pub fn disconnect(&mut self, id: usize) {
        let Some(link) = self.links.get_mut(id).and_then(Option::take) else { return };
        self.numbers.remove(&(link.from, link.to));
        for (side, port) in [(Side::Output, link.from), (Side::Input, link.to)] {
            if let Some(node) = self.nodes.get_mut(port.element).and_then(Option::as_mut) {
                let ports = node.side_mut(side);
                if let Some(ids) = ports.get_mut(&port.port) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        ports.remove(&port.port);
                    }
                }
            }
        }
    }

    /// Returns the configuration. New elements and connections stand where those stood that they replace.
    pub fn into_flat(self) -> Flat {
        let mut nodes: Vec<(usize, Node)> =
            self.nodes.into_iter().enumerate().filter_map(|(e, node)| Some((e, node?))).collect();
        nodes.sort_by_key(|(e, node)| (node.place, *e));
        let number: HashMap<usize, usize> = nodes.iter().enumerate().map(|(n, (e, _))| (*e, n)).collect();
        let mut links: Vec<Link> = self.links.into_iter().flatten().collect();
        links.sort_by_key(|l| l.place);
        let place = |p: PortRef| Some(PortRef { element: *number.get(&p.element)?, port: p.port });
        let connection = |l: Link| Some(Connection { from: place(l.from)?, to: place(l.to)?, span: l.span });
        Flat {
            connections: links.into_iter().filter_map(connection).collect(),
            elements: nodes.into_iter().map(|(_, node)| node.element).collect(),
            ..self.rest
        }
    }
}

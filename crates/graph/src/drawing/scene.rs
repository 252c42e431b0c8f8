// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a drawing: elements and compounds inside each other, and the pieces of connections in each compound.
//!
//! The flat configuration has no ports of compounds. They are reconstructed from the connections that cross
//! the boundary: outputs with the same destinations outside share a port, and so do inputs with the same
//! sources.

use crate::graph::{Graph, PortKind};
use castanet_lang::PortRef;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// Which compounds are drawn as a single box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// No compound.
    #[default]
    None,
    /// Compounds of these names or classes.
    Named(Vec<String>),
    /// Compounds that are inside this many others; at depth 0, all of them.
    Depth(usize),
    /// All compounds.
    All,
}

/// A requested name that is neither the name nor the class of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCompound {
    /// The name.
    pub name: String,
    /// The names of all compounds.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownCompound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no compound is named '{}'", self.name)?;
        match self.known.as_slice() {
            [] => write!(f, ": the configuration has none"),
            known => write!(f, ": there are {}", known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownCompound {}

/// One box of the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Item {
    /// An element, by its index in the graph.
    Element(usize),
    /// A compound, by its index in the scene.
    Compound(usize),
}

/// One end of a piece of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// A port of a box.
    Port(Item, usize),
    /// An input of the compound that contains the piece.
    Entry(usize),
    /// An output of the compound that contains this piece of the connection.
    Exit(usize),
}

/// A line inside one compound. It shows the parts of one or more connections that lie in this compound.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) from: End,
    pub(crate) to: End,
    pub(crate) kind: PortKind,
    /// The connections that this line shows, by their index in the flat configuration.
    pub(crate) connections: Vec<usize>,
}

/// A compound. The first one of a scene stands for the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compound {
    /// The full name, such as `two/filter`.
    pub(crate) path: String,
    pub(crate) class: String,
    pub(crate) folded: bool,
    /// The number of elements in this compound and in the compounds that it contains.
    pub(crate) elements: usize,
    /// The boxes in this compound.
    pub(crate) items: Vec<Item>,
    pub(crate) links: Vec<Link>,
    /// The kinds (push or pull) of the inputs (`entries`) and outputs (`exits`) of this compound.
    pub(crate) entries: Vec<PortKind>,
    pub(crate) exits: Vec<PortKind>,
}

impl Compound {
    /// The name without the names of the compounds around this one.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
    /// The compound in the form that messages use for elements: `name :: Class`.
    pub(crate) fn declaration(&self) -> String {
        format!("{} :: {}", self.path, self.class)
    }
}

/// The parts of a drawing.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// Compounds, each after the one that contains it.
    pub(crate) compounds: Vec<Compound>,
    /// Elements that have no connections and are in no folded compound.
    pub(crate) alone: Vec<usize>,
    /// The number of connections between existing ports.
    pub(crate) connections: usize,
    /// Complete lines between elements and folded compounds, not split at the boundaries of open compounds.
    pub(crate) direct: Vec<Link>,
    /// Packets per second of connections, by their index in the flat configuration; `None` in a drawing without rates.
    pub(crate) rates: Option<Vec<Option<f64>>>,
}

impl Scene {
    /// The packets per second on a line, if those of all connections that it shows are known.
    pub(crate) fn rate(&self, link: &Link) -> Option<f64> {
        let rates = self.rates.as_ref()?;
        link.connections.iter().map(|c| rates.get(*c).copied().flatten()).sum()
    }
    /// The name, the class and the configuration string of a box.
    pub(crate) fn described<'a>(&'a self, graph: &'a Graph, item: Item) -> [&'a str; 3] {
        let element =
            |e: usize| graph.element(e).map(|e| [e.name.as_str(), e.class.as_str(), e.config.as_str()]);
        let compound = |c: usize| self.compounds.get(c).map(|c| [c.path.as_str(), c.class.as_str(), ""]);
        match item {
            Item::Element(e) => element(e),
            Item::Compound(c) => compound(c),
        }
        .unwrap_or_default()
    }
}

/// The ends of a connection between existing ports: output and input.
fn ends(graph: &Graph, c: usize) -> Option<(PortRef, PortRef)> {
    let c = graph.flat.connections.get(c)?;
    let good = c.from.port < graph.outputs(c.from.element) && c.to.port < graph.inputs(c.to.element);
    good.then_some((c.from, c.to))
}

struct Builder<'a> {
    graph: &'a Graph,
    scene: Scene,
    /// For each element, the compounds that contain it, outermost first.
    around: Vec<Vec<usize>>,
    /// The number of each port of a compound. Key: the compound, whether the port is an output, and the ports
    /// outside the compound that it is connected to.
    ports: HashMap<(usize, bool, BTreeSet<PortRef>), usize>,
    /// The same port numbers as in `ports`, but with another key, to find known ports fast. Key: the compound, whether
    /// the port is an output, and a port inside the compound that the compound's port is connected to.
    known: HashMap<(usize, bool, PortRef), usize>,
    links: HashMap<(Option<usize>, End, End), usize>,
}

impl Scene {
    /// The parts of a drawing of a graph.
    ///
    /// # Errors
    /// A name in `fold` is neither the name nor the class of a compound.
    pub(crate) fn new(graph: &Graph, fold: &Fold) -> Result<Scene, UnknownCompound> {
        let (mut compounds, mut around) = (vec![Compound::default()], Vec::with_capacity(graph.len()));
        let mut index: HashMap<(usize, &str), usize> = HashMap::new();
        for element in &graph.flat.elements {
            let mut chain = vec![0];
            for origin in &element.origin {
                let parent = chain.last().copied().unwrap_or(0);
                let next = compounds.len();
                let c = *index.entry((parent, &origin.instance)).or_insert(next);
                if c == next {
                    let above = &compounds[parent].path;
                    let name = origin.instance.rsplit('/').next().unwrap_or(&origin.instance);
                    let path = if parent == 0 { name.to_string() } else { format!("{above}/{name}") };
                    compounds.push(Compound { path, class: origin.class.clone(), ..Compound::default() });
                }
                chain.push(c);
            }
            chain.iter().for_each(|&c| compounds[c].elements += 1);
            around.push(chain);
        }
        folded(&mut compounds, fold)?;
        let scene = Scene { compounds, alone: Vec::new(), connections: 0, direct: Vec::new(), rates: None };
        let (ports, known, links) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut builder = Builder { graph, scene, around, ports, known, links };
        builder.items();
        builder.lines();
        Ok(builder.scene)
    }
}

/// Marks the compounds to fold.
fn folded(compounds: &mut [Compound], fold: &Fold) -> Result<(), UnknownCompound> {
    let names = match fold {
        Fold::None => return Ok(()),
        Fold::All => {
            compounds.iter_mut().skip(1).for_each(|c| c.folded = true);
            return Ok(());
        }
        Fold::Depth(open) => {
            let inside = |c: &&mut Compound| c.path.matches('/').count() >= *open;
            compounds.iter_mut().skip(1).filter(inside).for_each(|c| c.folded = true);
            return Ok(());
        }
        Fold::Named(names) => names,
    };
    for name in names {
        let mut found = false;
        for c in compounds.iter_mut().skip(1).filter(|c| c.path == *name || c.class == *name) {
            (c.folded, found) = (true, true);
        }
        if !found {
            let known = compounds.iter().skip(1).map(|c| c.path.clone()).collect();
            return Err(UnknownCompound { name: name.clone(), known });
        }
    }
    Ok(())
}

impl Builder<'_> {
    /// The compounds around an element, from the outermost down to the first folded one. If a compound is folded, its
    /// box stands for the element in the drawing.
    fn visible(&self, e: usize) -> &[usize] {
        let chain = &self.around[e];
        let folded = chain.iter().position(|&c| self.scene.compounds[c].folded);
        folded.and_then(|f| chain.get(..=f)).unwrap_or(chain)
    }

    /// Lists the boxes of each compound.
    fn items(&mut self) {
        let mut connected = vec![false; self.graph.len()];
        for (a, b) in (0..self.graph.flat.connections.len()).filter_map(|c| ends(self.graph, c)) {
            (connected[a.element], connected[b.element]) = (true, true);
        }
        let mut drawn = vec![false; self.scene.compounds.len()];
        for e in (0..self.graph.len()).filter(|&e| connected[e]) {
            let chain = self.visible(e).to_vec();
            for pair in chain.windows(2) {
                if !std::mem::replace(&mut drawn[pair[1]], true) {
                    self.scene.compounds[pair[0]].items.push(Item::Compound(pair[1]));
                }
            }
            let last = chain.last().copied().unwrap_or(0);
            if !self.scene.compounds[last].folded {
                self.scene.compounds[last].items.push(Item::Element(e));
            }
        }
        let hidden = |e: usize| self.visible(e).iter().any(|&c| self.scene.compounds[c].folded && drawn[c]);
        self.scene.alone = (0..self.graph.len()).filter(|&e| !connected[e] && !hidden(e)).collect();
    }

    /// Adds the lines of all connections. A connection is split into pieces at the boundaries of the compounds that it
    /// crosses. It also gets a direct line, which is not split.
    fn lines(&mut self) {
        for c in 0..self.graph.flat.connections.len() {
            let Some((a, b)) = ends(self.graph, c) else { continue };
            self.scene.connections += 1;
            let (from, to) = (self.visible(a.element).to_vec(), self.visible(b.element).to_vec());
            let common = from.iter().zip(&to).take_while(|(x, y)| x == y).count();
            let Some(&meeting) = common.checked_sub(1).and_then(|i| from.get(i)) else { continue };
            if self.scene.compounds[meeting].folded {
                continue;
            }
            let (mut start, mut end) =
                (End::Port(Item::Element(a.element), a.port), End::Port(Item::Element(b.element), b.port));
            let (mut first, mut last) = (start, end);
            for &s in from.get(common..).unwrap_or(&[]).iter().rev() {
                let exit = self.port(s, true, a);
                match self.scene.compounds[s].folded {
                    true => first = End::Port(Item::Compound(s), exit),
                    false => self.link(Some(s), start, End::Exit(exit), c),
                }
                start = End::Port(Item::Compound(s), exit);
            }
            for &s in to.get(common..).unwrap_or(&[]).iter().rev() {
                let entry = self.port(s, false, b);
                match self.scene.compounds[s].folded {
                    true => last = End::Port(Item::Compound(s), entry),
                    false => self.link(Some(s), End::Entry(entry), end, c),
                }
                end = End::Port(Item::Compound(s), entry);
            }
            self.link(Some(meeting), start, end, c);
            self.link(None, first, last, c);
        }
    }

    /// Adds a connection to the line from `from` to `to`, and makes the line if it is new. The line belongs to the
    /// compound with index `compound`. If `compound` is `None`, the line is a direct line.
    fn link(&mut self, compound: Option<usize>, from: End, to: End, connection: usize) {
        let Scene { compounds, direct, .. } = &mut self.scene;
        let links = match compound {
            Some(c) => &mut compounds[c].links,
            None => direct,
        };
        let next = links.len();
        let i = *self.links.entry((compound, from, to)).or_insert(next);
        if i == next {
            let kind = match self.graph.flat.connections.get(connection) {
                Some(c) => self.graph.output_kind(c.from.element, c.from.port),
                None => PortKind::Push,
            };
            links.push(Link { from, to, kind, connections: Vec::new() });
        }
        links[i].connections.push(connection);
    }

    /// Returns the port of a compound through which a port of an inner element is connected to the outside.
    /// Adds this port if it is new.
    fn port(&mut self, compound: usize, output: bool, inside: PortRef) -> usize {
        if let Some(&port) = self.known.get(&(compound, output, inside)) {
            return port;
        }
        let peers = if output { self.graph.downstream(inside) } else { self.graph.upstream(inside) };
        let beyond = peers.iter().copied().filter(|p| !self.around[p.element].contains(&compound)).collect();
        let kind = match output {
            true => self.graph.output_kind(inside.element, inside.port),
            false => self.graph.input_kind(inside.element, inside.port),
        };
        let c = &mut self.scene.compounds[compound];
        let list = if output { &mut c.exits } else { &mut c.entries };
        let port = *self.ports.entry((compound, output, beyond)).or_insert(list.len());
        if port == list.len() {
            list.push(kind);
        }
        self.known.insert((compound, output, inside), port);
        port
    }
}

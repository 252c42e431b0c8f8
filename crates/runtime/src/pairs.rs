// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which element of the new configuration replaces which element of the old one.
//!
//! Named elements are paired by name and class. An unnamed element has a generated name `Class@N`, which changes when
//! elements before it in the text are added or removed. So unnamed elements are paired by class, configuration string
//! and neighbours, in these steps:
//!
//! 1. Elements that hold the same open resource, such as a device.
//! 2. Elements with the same class and configuration string that are connected to a paired element by the same ports.
//!    This step is repeated for the neighbours of new pairs.
//! 3. Elements that are the only one of their class and configuration string in each configuration, and unconnected
//!    elements that are the only one of their class. Elements with a named neighbour are left out, because step 2 has
//!    already compared the neighbours of named elements.
//! 4. Groups of connected elements that are equal in both configurations, in the order of the text. If the two
//!    configurations do not have the same number of equal groups, none of these groups is paired.
//! 5. As step 2, but the two elements may have different configuration strings.
//!
//! Steps 2, 3 and 5 pair two elements only if each is the only candidate for the other. Elements of the new
//! configuration without a pair start with empty state.

use castanet_graph::Graph;
use castanet_lang::PortRef;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The pairs of two configurations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// For each element of the new configuration, the element of the old configuration that it replaces. None for an
    /// added element.
    old_of: Vec<Option<u32>>,
    /// For each element of the old configuration, the element of the new configuration that replaces it. None for a
    /// removed element.
    new_of: Vec<Option<u32>>,
}

/// Identifies a neighbour of an element, to compare neighbours in the two configurations. The fields are: whether the
/// neighbour is downstream, the port of the element, the port of the neighbour, and the neighbour's kind and
/// configuration string. The configuration string is "" if it may differ.
type NeighbourKey<'a> = (bool, usize, usize, &'a ElementKind, &'a str);

impl Pairs {
    /// Pairs the elements of two configurations. `held` lists the pairs (old, new) whose elements hold the same open
    /// resource.
    pub fn new(old: &Graph, new: &Graph, held: &[(u32, u32)]) -> Pairs {
        let mut matcher = Matcher::new(old, new);
        matcher.by_name();
        for &(o, e) in held {
            let (kind, other) = (matcher.old.open(o as usize), matcher.new.open(e as usize));
            if kind.is_some() && kind == other {
                matcher.pair(o, e);
            }
        }
        loop {
            matcher.along_connections(true);
            if matcher.single() || matcher.groups() {
                continue;
            }
            if !matcher.along_connections(false) {
                break;
            }
        }
        Pairs { old_of: matcher.new.twins, new_of: matcher.old.twins }
    }
    /// Returns the element of the old configuration that an element of the new one replaces. None for an added element.
    pub fn old_of(&self, new: u32) -> Option<u32> {
        self.old_of.get(new as usize).copied().flatten()
    }
    /// Returns the element of the new configuration that replaces an element of the old one. None for a removed
    /// element.
    pub fn new_of(&self, old: u32) -> Option<u32> {
        self.new_of.get(old as usize).copied().flatten()
    }
    /// Whether the name of an element was generated. The configuration gives such an element no name.
    pub fn is_unnamed(graph: &Graph, e: usize) -> bool {
        kind(graph, e).is_some()
    }
    /// Returns the pairs with old and new exchanged.
    pub fn reversed(&self) -> Pairs {
        Pairs { old_of: self.new_of.clone(), new_of: self.old_of.clone() }
    }
}

/// Whether a part of a full name was generated, because the configuration gives no name. `part` stands for an element
/// or compound of class `class`. A compound without a class has the generated name `@N`.
fn is_unnamed(part: &str, class: &str) -> bool {
    let number = part.strip_prefix(class).unwrap_or(part).strip_prefix('@');
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The class of an unnamed element, and its full name without the generated numbers.
type ElementKind = (&'static str, String);

/// A connection of an element: whether it is at an output, the port of the element, and the connected port of the
/// neighbour.
type Edge = (bool, usize, PortRef);

/// The old or the new configuration, and the state of its elements.
struct Side<'a> {
    graph: &'a Graph,
    /// For each element, its kind. None if the configuration names the element.
    kinds: Vec<Option<ElementKind>>,
    /// For each element, the element of the other configuration that it is paired with. None if it is not paired.
    twins: Vec<Option<u32>>,
}

impl<'a> Side<'a> {
    fn new(graph: &'a Graph) -> Side<'a> {
        let kinds = (0..graph.len()).map(|e| kind(graph, e)).collect();
        Side { graph, kinds, twins: vec![None; graph.len()] }
    }
    fn config(&self, e: usize) -> &str {
        self.graph.config(e)
    }
    fn open(&self, e: usize) -> Option<&ElementKind> {
        let kind = self.kinds.get(e)?.as_ref()?;
        (self.twins.get(e) == Some(&None)).then_some(kind)
    }
    /// The unnamed elements that are not paired yet, with their kinds.
    fn all_open(&self) -> impl Iterator<Item = (usize, &ElementKind)> {
        (0..self.graph.len()).filter_map(|e| Some((e, self.open(e)?)))
    }
    fn edges(&self, e: usize) -> impl Iterator<Item = Edge> + '_ {
        let inputs = (0..self.graph.inputs(e)).flat_map(move |port| {
            self.graph.upstream(PortRef { element: e, port }).iter().map(move |&p| (false, port, p))
        });
        let outputs = (0..self.graph.outputs(e)).flat_map(move |port| {
            self.graph.downstream(PortRef { element: e, port }).iter().map(move |&p| (true, port, p))
        });
        inputs.chain(outputs)
    }
    fn beside_name(&self, e: usize) -> bool {
        self.edges(e).any(|(_, _, peer)| self.kinds.get(peer.element) == Some(&None))
    }
    /// Whether element `e` has a neighbour that is named but not paired, because it was renamed, added or removed.
    fn beside_stranger(&self, e: usize) -> bool {
        let stranger = |p: usize| self.kinds.get(p) == Some(&None) && self.twins.get(p) == Some(&None);
        self.edges(e).any(|(_, _, peer)| stranger(peer.element))
    }
}

fn kind(graph: &Graph, e: usize) -> Option<ElementKind> {
    let (element, spec) = (graph.element(e)?, graph.spec(e)?);
    let mut unnamed = false;
    let mut parts: Vec<&str> = element.name.split('/').collect();
    let classes = element.origin.iter().map(|o| o.class.as_str()).chain([element.class.as_str()]);
    // In a flat configuration, a name such as `a/b` is a plain element name, and its compounds are unknown. So only the
    // last parts of a name are compared with classes: one part for each known compound (`origin`), and one for the
    // element itself.
    let first = parts.len().saturating_sub(element.origin.len() + 1);
    for (part, class) in parts.iter_mut().skip(first).zip(classes) {
        if is_unnamed(part, class) {
            unnamed = true;
            *part = class;
        }
    }
    unnamed.then(|| (spec.name, parts.join("/")))
}

/// The old and the new configuration, and the pairs found so far.
struct Matcher<'a> {
    old: Side<'a>,
    new: Side<'a>,
    /// Pairs whose neighbours have not been compared yet. The first list is for step 2, where the configuration strings
    /// of the neighbours must be equal. The second list is for step 5, where they may differ.
    fresh: [Vec<(u32, u32)>; 2],
}

/// For each element of one configuration, the elements of the other that are possible partners.
type Candidates = BTreeMap<u32, BTreeSet<u32>>;

impl<'a> Matcher<'a> {
    fn new(old: &'a Graph, new: &'a Graph) -> Matcher<'a> {
        Matcher { old: Side::new(old), new: Side::new(new), fresh: [Vec::new(), Vec::new()] }
    }

    fn pair(&mut self, o: u32, e: u32) -> bool {
        let (Some(old), Some(new)) = (self.old.twins.get_mut(o as usize), self.new.twins.get_mut(e as usize))
        else {
            return false;
        };
        if old.is_some() || new.is_some() {
            return false;
        }
        (*old, *new) = (Some(e), Some(o));
        self.fresh.iter_mut().for_each(|f| f.push((o, e)));
        true
    }

    fn by_name(&mut self) {
        for o in 0..self.old.graph.len() {
            let same = |e: usize| Some(self.old.graph.spec(o)?.name == self.new.graph.spec(e)?.name);
            let named = self.old.kinds.get(o) == Some(&None);
            let found = self.new.graph.find(self.old.graph.name(o)).filter(|_| named);
            if let Some(e) = found.filter(|&e| same(e) == Some(true) && self.new.kinds.get(e) == Some(&None))
            {
                self.pair(o as u32, e as u32);
            }
        }
    }

    /// Pairs an old and a new element if the same ports connect them to elements that are paired already. Then does the
    /// same with the neighbours of the new pairs, and so on. If `same` is true, paired elements must have equal
    /// configuration strings. If `same` is false, stops after the first round that finds pairs. Returns whether it has
    /// found pairs.
    fn along_connections(&mut self, same: bool) -> bool {
        let mut any = false;
        loop {
            let fresh = std::mem::take(&mut self.fresh[usize::from(!same)]);
            if fresh.is_empty() {
                return any;
            }
            let (mut of_old, mut of_new) = (Candidates::new(), Candidates::new());
            for &(o, e) in &fresh {
                self.compare(o as usize, e as usize, same, &mut of_old, &mut of_new);
            }
            any |= self.pair_single(&of_old, &of_new);
            if !same && any {
                // Return after each round. The caller then first pairs elements with equal configuration strings near
                // the new pairs.
                return any;
            }
        }
    }

    /// Compares the neighbours of a pair. Neighbours with the same [`NeighbourKey`] in both configurations become
    /// candidates for each other.
    fn compare(&self, o: usize, e: usize, same: bool, of_old: &mut Candidates, of_new: &mut Candidates) {
        let mut places: HashMap<NeighbourKey<'_>, [Vec<u32>; 2]> = HashMap::new();
        for (i, (side, element)) in [(&self.old, o), (&self.new, e)].into_iter().enumerate() {
            for (output, port, peer) in side.edges(element) {
                if let Some(kind) = side.open(peer.element) {
                    let config = if same { side.config(peer.element) } else { "" };
                    let place = (output, port, peer.port, kind, config);
                    places.entry(place).or_default()[i].push(peer.element as u32);
                }
            }
        }
        for [old, new] in places.into_values() {
            for &o in &old {
                of_old.entry(o).or_default().extend(&new);
            }
            for &e in &new {
                of_new.entry(e).or_default().extend(&old);
            }
        }
    }

    /// Pairs two elements if each is the only candidate for the other. Returns whether it has found pairs.
    fn pair_single(&mut self, of_old: &Candidates, of_new: &Candidates) -> bool {
        let only =
            |set: Option<&BTreeSet<u32>>| set.filter(|s| s.len() == 1).and_then(|s| s.first().copied());
        let mut any = false;
        for &o in of_old.keys() {
            let Some(e) = only(of_old.get(&o)) else { continue };
            if only(of_new.get(&e)) == Some(o) {
                any |= self.pair(o, e);
            }
        }
        any
    }

    /// Pairs elements whose class and configuration string occur once in each configuration, and unconnected elements
    /// whose class occurs once in each. Returns whether it has found pairs.
    fn single(&mut self) -> bool {
        let mut places: HashMap<(&ElementKind, Option<&str>), [Vec<u32>; 2]> = HashMap::new();
        for (i, side) in [&self.old, &self.new].into_iter().enumerate() {
            for (e, kind) in side.kinds.iter().enumerate().filter_map(|(e, k)| Some((e, k.as_ref()?))) {
                places.entry((kind, Some(side.config(e)))).or_default()[i].push(e as u32);
                places.entry((kind, None)).or_default()[i].push(e as u32);
            }
        }
        let lonely = |side: &Side<'_>, e: u32| side.edges(e as usize).next().is_none();
        let mut found = Vec::new();
        for ((_, config), [old, new]) in places {
            let ([o], [e]) = (old.as_slice(), new.as_slice()) else { continue };
            let free = self.old.open(*o as usize).is_some() && self.new.open(*e as usize).is_some();
            let apart = !self.old.beside_name(*o as usize) && !self.new.beside_name(*e as usize);
            if free && apart && (config.is_some() || (lonely(&self.old, *o) && lonely(&self.new, *e))) {
                found.push((*o, *e));
            }
        }
        found.sort_unstable();
        found.into_iter().fold(false, |any, (o, e)| self.pair(o, e) || any)
    }

    /// Pairs groups of connected elements that are equal in both configurations. If the two configurations do not have
    /// the same number of equal groups, none of these groups is paired. Returns whether it has found pairs.
    fn groups(&mut self) -> bool {
        let mut same: BTreeMap<Vec<String>, [Vec<Vec<u32>>; 2]> = BTreeMap::new();
        for (i, side) in [&self.old, &self.new].into_iter().enumerate() {
            for group in groups_of(side) {
                if let Some(text) = self.described(side, &group) {
                    same.entry(text).or_default()[i].push(group);
                }
            }
        }
        let mut any = false;
        for [old, new] in same.into_values().filter(|[old, new]| old.len() == new.len()) {
            for (o, e) in old.iter().flatten().zip(new.iter().flatten()) {
                any |= self.pair(*o, *e);
            }
        }
        any
    }

    /// Describes each element of a group by its kind, configuration string and connections. Groups with equal
    /// descriptions can replace each other. Returns none if a named neighbour of the group is not paired.
    fn described(&self, side: &Side<'_>, group: &[u32]) -> Option<Vec<String>> {
        let index: HashMap<u32, usize> = group.iter().enumerate().map(|(i, &e)| (e, i)).collect();
        let is_old = std::ptr::eq(side, &raw const self.old);
        let each = group.iter().map(|&e| {
            if side.beside_stranger(e as usize) {
                return None;
            }
            let mut edges = Vec::new();
            for (output, port, peer) in side.edges(e as usize) {
                let p = peer.element as u32;
                let twin = if is_old { Some(p) } else { side.twins.get(peer.element).copied().flatten() };
                // A neighbour outside the group belongs to a pair. Describe it by the number of the old element of the
                // pair, which is the same for both configurations.
                let end = index.get(&p).map_or(format!("paired {twin:?}"), |i| format!("own {i}"));
                edges.push(format!("{output} {port} {} {end}", peer.port));
            }
            edges.sort_unstable();
            Some(format!("{:?} {:?} {edges:?}", side.kinds.get(e as usize), side.config(e as usize)))
        });
        each.collect()
    }
}

/// Returns the groups of connected elements that are unnamed and not paired, in the order of the configuration text.
fn groups_of(side: &Side<'_>) -> Vec<Vec<u32>> {
    let mut seen = vec![false; side.graph.len()];
    let mut groups = Vec::new();
    for (first, _) in side.all_open() {
        let (mut group, mut todo) = (Vec::new(), vec![first]);
        while let Some(e) = todo.pop() {
            if seen.get_mut(e).is_none_or(|s| std::mem::replace(s, true)) {
                continue;
            }
            group.push(e as u32);
            todo.extend(side.edges(e).map(|x| x.2.element).filter(|&p| side.open(p).is_some()));
        }
        if !group.is_empty() {
            group.sort_unstable();
            groups.push(group);
        }
    }
    groups
}

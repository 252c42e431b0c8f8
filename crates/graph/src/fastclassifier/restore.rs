// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings back the original classifiers of a configuration.

use super::CLASS;
use castanet_classify::definitions::{Definitions, PREFIX};
use castanet_lang::{ClassName, Connection, Element, Flat, PortRef};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Brings back the classifiers that [`fastclassifier`](super::fastclassifier) has replaced. `original` is the configuration from
/// before. If nothing else has changed since, the result has the same elements and connections in the same order. Other
/// changes are kept. An element that `original` does not have stays as it is.
pub fn restore(flat: &Flat, original: &Flat, definitions: &Definitions) -> Flat {
    let before = Before::new(original, definitions);
    let mut names: HashSet<&str> = flat.elements.iter().map(|e| e.name.as_str()).collect();
    let mut now = Flat { elements: Vec::new(), connections: Vec::new(), ..flat.clone() };
    // For each element, where it is now, and the outputs that its outputs have become.
    let mut places: Vec<(usize, Option<Vec<PortRef>>)> = Vec::new();
    let mut inner = Vec::new();
    for e in &flat.elements {
        let place = now.elements.len();
        let group = before.group(e).filter(|g| g.parts.iter().skip(1).all(|p| names.insert(&p.name)));
        let Some(group) = group else {
            now.elements.push(e.clone());
            places.push((place, None));
            continue;
        };
        let moved = |p: PortRef| PortRef { element: place + p.element, ..p };
        now.elements.extend(group.parts.into_iter().cloned());
        inner.extend(group.links.iter().map(|c| Connection { from: moved(c.from), to: moved(c.to), ..*c }));
        places.push((place, Some(group.outputs.into_iter().map(moved).collect())));
    }
    for c in &flat.connections {
        let (Some((a, outputs)), Some((b, _))) = (places.get(c.from.element), places.get(c.to.element))
        else {
            continue;
        };
        let same = PortRef { element: *a, ..c.from };
        let from = outputs.as_ref().and_then(|o| o.get(c.from.port)).copied().unwrap_or(same);
        now.connections.push(Connection { from, to: PortRef { element: *b, ..c.to }, span: c.span });
    }
    now.connections.extend(inner);
    if is_same(&now, original) {
        let Flat { elements, connections, .. } = original.clone();
        return Flat { elements, connections, ..now };
    }
    now
}

/// Whether two configurations have the same elements and connections, in any order.
fn is_same(a: &Flat, b: &Flat) -> bool {
    let elements = |flat: &'_ Flat| -> HashSet<(String, ClassName, String)> {
        flat.elements.iter().map(|e| (e.name.clone(), e.class.clone(), e.config.clone())).collect()
    };
    let connections = |flat: &Flat| -> HashSet<(String, usize, String, usize)> {
        let name = |p: PortRef| flat.elements.get(p.element).map(|e| e.name.clone()).unwrap_or_default();
        flat.connections.iter().map(|c| (name(c.from), c.from.port, name(c.to), c.to.port)).collect()
    };
    a.elements.len() == b.elements.len()
        && a.connections.len() == b.connections.len()
        && elements(a) == elements(b)
        && connections(a) == connections(b)
}

/// The original configuration.
struct Before<'a> {
    original: &'a Flat,
    definitions: &'a Definitions,
    names: HashMap<&'a str, usize>,
    /// The connections by output.
    links: BTreeMap<PortRef, &'a Connection>,
}

/// The original elements that one element stands for. Elements are numbered within the group.
struct Group<'a> {
    parts: Vec<&'a Element>,
    /// The connections between the parts.
    links: Vec<Connection>,
    /// The outputs to other elements, in the order of the outputs of the one element.
    outputs: Vec<PortRef>,
}

impl<'a> Before<'a> {
    fn new(original: &'a Flat, definitions: &'a Definitions) -> Before<'a> {
        Before {
            original,
            definitions,
            names: original.elements.iter().enumerate().map(|(i, e)| (e.name.as_str(), i)).collect(),
            links: original.connections.iter().map(|c| (c.from, c)).collect(),
        }
    }

    /// Whether an element has been replaced.
    fn is_replaced(e: &Element) -> bool {
        e.class == CLASS || e.class.starts_with(PREFIX)
    }

    /// Returns the original elements that `e` stands for. None if it stands for itself.
    fn group(&self, e: &Element) -> Option<Group<'a>> {
        let &head = self.names.get(e.name.as_str()).filter(|_| Self::is_replaced(e))?;
        let first = self.original.elements.get(head).filter(|o| !Self::is_replaced(o))?;
        let mut group = Group { parts: vec![first], links: Vec::new(), outputs: Vec::new() };
        let mut seen = HashSet::from([head]);
        // The parts on the way to the present output: number in the group, and the least original output that is left.
        let mut open = vec![(0, PortRef { element: head, port: 0 })];
        while let Some((part, least)) = open.last_mut() {
            let mut left = self.links.range(*least..);
            let Some((&output, link)) = left.next().filter(|(output, _)| output.element == least.element)
            else {
                open.pop();
                continue;
            };
            let from = PortRef { element: *part, port: output.port };
            *least = PortRef { port: output.port.saturating_add(1), ..output };
            let to = link.to;
            let merged = self.is_merged(to.element, &e.name) && seen.insert(to.element);
            match self.original.elements.get(to.element).filter(|_| merged) {
                Some(element) => {
                    let input = PortRef { element: group.parts.len(), port: to.port };
                    group.parts.push(element);
                    group.links.push(Connection { from, to: input, span: link.span });
                    open.push((input.element, PortRef { element: to.element, port: 0 }));
                }
                None => group.outputs.push(from),
            }
        }
        Some(group)
    }

    /// Whether an element of the original is part of the program of the element `head`.
    fn is_merged(&self, e: usize, head: &str) -> bool {
        let name = self.original.elements.get(e).map(|e| &e.name);
        name.and_then(|name| self.definitions.merged.get(name)).is_some_and(|h| h == head)
    }
}

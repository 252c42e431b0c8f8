// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes one router out of a combined configuration.

use super::router_link::{self, Port, ROUTER_LINK};
use super::{COMPONENT_MAP, ELEMENT_MAP, split_name};
use castanet_lang::{Connection, Element, Flat, PortRef};
use std::collections::{HashMap, HashSet};

/// Why a router cannot be taken out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UncombineError {
    /// No router has this name.
    #[error("there is no router {name}{}", if .routers.is_empty() {
        ": the configuration is not one of several routers".to_string()
    } else {
        format!("; the routers are {}", .routers.join(", "))
    })]
    NoRouter {
        /// The name.
        name: String,
        /// The names of all routers.
        routers: Vec<String>,
    },
    /// The configuration string of a `RouterLink` cannot be read.
    #[error("'{link} :: RouterLink': {why}")]
    BadLink {
        /// The name of the element.
        link: String,
        /// What is wrong.
        why: String,
    },
    /// An element belongs to the router, and is connected to an element of another one.
    #[error(
        "'{0}' is connected to '{1}', which belongs to another router, without a RouterLink between them"
    )]
    Joined(String, String),
}

/// Returns the names of the routers in a combined configuration: those of the archive's list, or else those that
/// elements and links have.
pub fn components(flat: &Flat) -> Vec<String> {
    let mut seen = HashSet::new();
    let map = flat.archive.iter().find(|m| m.0 == COMPONENT_MAP);
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !name.is_empty() && seen.insert(name.to_string()) {
            names.push(name.to_string());
        }
    };
    match map {
        Some((_, list)) => String::from_utf8_lossy(list).lines().map(str::trim).for_each(&mut add),
        None => {
            flat.elements.iter().filter_map(|e| split_name(&e.name)).for_each(|(router, _)| add(router));
            let links = flat.elements.iter().filter(|e| e.class == ROUTER_LINK);
            links.filter_map(|e| router_link::parse(&e.config).ok()).flatten().for_each(|p| add(&p.router));
        }
    }
    names
}

/// The ports of a `RouterLink`.
#[derive(Clone, Debug)]
pub struct LinkPorts {
    /// The element that each input replaces.
    pub inputs: Vec<Port>,
    /// The element that each output replaces.
    pub outputs: Vec<Port>,
}

/// Returns the ports of all `RouterLink` elements, by index of the element.
///
/// # Errors
/// A configuration string cannot be read, or does not agree with the connections of the element.
pub fn links(flat: &Flat) -> Result<HashMap<usize, LinkPorts>, UncombineError> {
    let mut all: HashMap<usize, (usize, usize)> = HashMap::new();
    for (i, _) in flat.elements.iter().enumerate().filter(|(_, e)| e.class == ROUTER_LINK) {
        all.insert(i, (0, 0));
    }
    for c in &flat.connections {
        if let Some(used) = all.get_mut(&c.to.element) {
            used.0 = used.0.max(c.to.port + 1);
        }
        if let Some(used) = all.get_mut(&c.from.element) {
            used.1 = used.1.max(c.from.port + 1);
        }
    }
    let mut out = HashMap::new();
    for (i, (inputs, outputs)) in all {
        let Some(e) = flat.elements.get(i) else { continue };
        let bad = |why| UncombineError::BadLink { link: e.name.clone(), why };
        let mut ports = router_link::parse(&e.config).map_err(bad)?;
        if ports.len() != inputs + outputs {
            return Err(bad(format!(
                "its configuration string describes {} ports, but {inputs} inputs and {outputs} outputs are connected",
                ports.len()
            )));
        }
        let outputs = ports.split_off(inputs);
        out.insert(i, LinkPorts { inputs: ports, outputs });
    }
    Ok(out)
}

/// The router that an element outside all routers belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It has no connections, and so belongs to all of them.
    All,
    /// A router, by number.
    One(usize),
}

/// Returns the router that each element belongs to. A tool may have added elements without a prefix. Such an element
/// belongs to the router that its connections lead to. `None` for links and for elements that lead to no router.
fn owners(flat: &Flat, routers: &HashMap<String, usize>) -> Vec<Option<Owner>> {
    let is_link = |e: &Element| e.class == ROUTER_LINK && split_name(&e.name).is_none();
    let mut owner: Vec<Option<Owner>> = flat
        .elements
        .iter()
        .map(|e| split_name(&e.name).and_then(|n| routers.get(n.0)).map(|&n| Owner::One(n)))
        .collect();
    let mut neighbours: HashMap<usize, Vec<usize>> = HashMap::new();
    for c in &flat.connections {
        neighbours.entry(c.from.element).or_default().push(c.to.element);
        neighbours.entry(c.to.element).or_default().push(c.from.element);
    }
    let link: Vec<bool> = flat.elements.iter().map(is_link).collect();
    let is_link = |e: usize| link.get(e).copied().unwrap_or(true);
    let mut open: Vec<usize> =
        (0..owner.len()).filter(|&e| owner.get(e).is_some_and(Option::is_some)).collect();
    while let Some(e) = open.pop() {
        let mine = owner.get(e).copied().flatten();
        for &n in neighbours.get(&e).map_or(&[][..], Vec::as_slice) {
            if let Some(slot) = owner.get_mut(n).filter(|o| o.is_none() && !is_link(n)) {
                *slot = mine;
                open.push(n);
            }
        }
    }
    for (e, slot) in owner.iter_mut().enumerate() {
        if slot.is_none() && !is_link(e) && !neighbours.contains_key(&e) {
            *slot = Some(Owner::All);
        }
    }
    owner
}

/// Names that no two elements share.
struct Names(HashSet<String>);

impl Names {
    fn fresh(&mut self, name: &str) -> String {
        let mut fresh = name.to_string();
        let mut n = 1;
        while !self.0.insert(fresh.clone()) {
            n += 1;
            fresh = format!("{name}@{n}");
        }
        fresh
    }
}

/// Returns the configuration of one router of a combined configuration. Elements that a tool has added outside all
/// routers stay with the router that they are connected to, or with all routers if they have no connections.
/// Requirements and members of the archive stay with all routers.
///
/// # Errors
/// There is no such router, or the configuration does not separate it from the others.
pub fn uncombine(flat: &Flat, name: &str) -> Result<Flat, UncombineError> {
    let routers = components(flat);
    let numbers: HashMap<String, usize> = routers.iter().cloned().enumerate().map(|(i, n)| (n, i)).collect();
    let Some(&wanted) = numbers.get(name) else {
        return Err(UncombineError::NoRouter { name: name.into(), routers });
    };
    let links = links(flat)?;
    let owner = owners(flat, &numbers);
    let is_ours = |e: usize| {
        owner.get(e).copied().flatten().is_some_and(|o| o == Owner::All || o == Owner::One(wanted))
    };
    let mut names = Names(HashSet::new());
    // The elements that stay, each with its old index; then the elements that links had replaced, each with its port and
    // its place.
    let mut elements: Vec<(Element, Source)> = Vec::new();
    let mut added: Vec<(Option<usize>, Element, Source)> = Vec::new();
    for (i, e) in flat.elements.iter().enumerate().filter(|(i, _)| is_ours(*i)) {
        let own = split_name(&e.name).filter(|n| n.0 == name).map_or(e.name.as_str(), |n| n.1);
        elements.push((Element { name: names.fresh(own), ..e.clone() }, Source::Element(i)));
    }
    let mut all: Vec<(&usize, &LinkPorts)> = links.iter().collect();
    all.sort_by_key(|l| l.0);
    for (&link, ports) in all {
        for (sides, is_input) in [(&ports.inputs, true), (&ports.outputs, false)] {
            for (port, p) in sides.iter().enumerate().filter(|(_, p)| p.router == name) {
                let span = flat.elements.get(link).map(|e| e.span).unwrap_or_default();
                let element = Element {
                    name: names.fresh(&p.element),
                    class: p.class.as_str().into(),
                    config: p.config.clone(),
                    span,
                    config_span: span,
                    config_map: Vec::new(),
                    origin: Vec::new(),
                };
                added.push((p.place, element, Source::Port(PortRef { element: link, port }, is_input)));
            }
        }
    }
    // In the order of their places, so that each one is put behind those that stood before it.
    added.sort_by_key(|a| a.0.unwrap_or(usize::MAX));
    let (elements, sources) = merge(elements, added);
    let number: HashMap<Source, usize> = sources.into_iter().enumerate().map(|(i, s)| (s, i)).collect();
    let end = |p: PortRef, is_input: bool| match links.contains_key(&p.element) {
        true => number.get(&Source::Port(p, is_input)).map(|&element| PortRef { element, port: 0 }),
        false => number.get(&Source::Element(p.element)).map(|&element| PortRef { element, port: p.port }),
    };
    let mut connections = Vec::new();
    for c in &flat.connections {
        match (end(c.from, false), end(c.to, true)) {
            (Some(from), Some(to)) => connections.push(Connection { from, to, span: c.span }),
            (None, None) => {}
            _ => {
                let name = |e: usize| flat.elements.get(e).map(|e| e.name.clone()).unwrap_or_default();
                return Err(UncombineError::Joined(name(c.from.element), name(c.to.element)));
            }
        }
    }
    let mut archive = flat.archive.clone();
    archive.retain(|m| m.0 != COMPONENT_MAP && m.0 != ELEMENT_MAP);
    Ok(Flat {
        elements,
        connections,
        requirements: flat.requirements.clone(),
        required_at: flat.required_at.clone(),
        file: flat.file,
        archive,
    })
}

/// The origin of an element of the router in the combined configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// An element, by index.
    Element(usize),
    /// A port of a `RouterLink`, and whether it is an input.
    Port(PortRef, bool),
}

/// Puts each element with a place at this index, and the others at the end.
fn merge(
    elements: Vec<(Element, Source)>,
    added: Vec<(Option<usize>, Element, Source)>,
) -> (Vec<Element>, Vec<Source>) {
    let mut out: (Vec<Element>, Vec<Source>) = Default::default();
    let push = |out: &mut (Vec<Element>, Vec<Source>), e: Element, s: Source| {
        out.0.push(e);
        out.1.push(s);
    };
    let mut added = added.into_iter().peekable();
    for (e, s) in elements {
        while let Some((_, e, s)) = added.next_if(|a| a.0 == Some(out.0.len())) {
            push(&mut out, e, s);
        }
        push(&mut out, e, s);
    }
    added.for_each(|(_, e, s)| push(&mut out, e, s));
    out
}

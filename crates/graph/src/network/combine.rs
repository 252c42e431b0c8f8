// SPDX-License-Identifier: MIT OR Apache-2.0
//! Combines routers to one configuration.

use super::link::{End, Link, is_router_name};
use super::router_link::{self, Port, ROUTER_LINK};
use super::{COMPONENT_MAP, ELEMENT_MAP};
use castanet_lang::{Connection, Element, Flat, PortRef};
use castanet_spec::ClassSpecs;
use std::collections::{HashMap, HashSet};

/// A router of a network.
#[derive(Clone, Debug)]
pub struct Component {
    /// The name of the router.
    pub name: String,
    /// Its configuration.
    pub flat: Flat,
}

/// Whether a `RouterLink` says where in their routers the elements stood that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It does, so that [`super::uncombine()`] restores the order of elements.
    Kept,
    /// It does not. Click's `click-combine` writes this form.
    Forgotten,
}

/// Why routers cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// The name of a router has characters that names cannot have.
    #[error("'{0}' cannot be the name of a router: use letters, digits and _, with a letter first")]
    BadName(String),
    /// Two routers have the same name.
    #[error("two routers are named {0}; give one of them another name, as in OTHER=FILE")]
    SameName(String),
    /// A link names a router that is not there.
    #[error("link {link}: there is no router {router}; the routers are {}", .routers.join(", "))]
    NoRouter {
        /// The link.
        link: String,
        /// The missing router.
        router: String,
        /// The names of all routers.
        routers: Vec<String>,
    },
    /// A link names neither an element nor a device of its router.
    #[error("link {link}: router {} has no element and no {class} named {}{}", end.router, end.device, others(class, .devices))]
    NoDevice {
        /// The link.
        link: String,
        /// The end of the link.
        end: End,
        /// The class of elements that was searched.
        class: &'static str,
        /// The names of the devices that elements of this class use.
        devices: Vec<String>,
    },
    /// Several elements use the device.
    #[error("link {link}: several elements use {end}: {}; name one of them instead of the device", .elements.join(", "))]
    Ambiguous {
        /// The link.
        link: String,
        /// The end of the link.
        end: End,
        /// The names of the elements.
        elements: Vec<String>,
    },
    /// The element cannot be the end of a link.
    #[error("link {link}: '{element}' cannot {role}: a link replaces an element that has {wanted}")]
    WrongPorts {
        /// The link.
        link: String,
        /// The declaration of the element.
        element: String,
        /// The task of the element in the link: send or receive.
        role: &'static str,
        /// The ports that the element should have.
        wanted: &'static str,
    },
    /// The archives of two routers have different members with the same name.
    #[error("the archives of two routers have different members named {0}")]
    Member(String),
}

fn others(class: &str, devices: &[String]) -> String {
    if devices.is_empty() { String::new() } else { format!("; it has {class} for {}", devices.join(", ")) }
}

/// The direction of frames at one end of a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Send,
    Receive,
}

impl Role {
    fn class(self) -> &'static str {
        if self == Role::Send { "ToDevice" } else { "FromDevice" }
    }
    /// Whether an element whose connections use these many inputs and outputs can be replaced by a link.
    fn fits(self, inputs: usize, outputs: usize) -> bool {
        if self == Role::Send { (inputs, outputs) == (1, 0) } else { (inputs, outputs) == (0, 1) }
    }
}

/// An element of a component: the indices of both.
type Place = (usize, usize);

/// Searches the elements of one component.
struct Index<'a> {
    component: &'a Component,
    names: HashMap<&'a str, usize>,
    /// The devices: the class of the element in the registry of classes, and the name of the device.
    devices: HashMap<(&'static str, String), Vec<usize>>,
    /// By element: one more than the highest input and output in use.
    ports: Vec<(usize, usize)>,
}

impl<'a> Index<'a> {
    fn new(component: &'a Component, classes: &dyn ClassSpecs) -> Index<'a> {
        let flat = &component.flat;
        let names = flat.elements.iter().enumerate().map(|(i, e)| (e.name.as_str(), i)).collect();
        let mut ports = vec![(0, 0); flat.elements.len()];
        for c in &flat.connections {
            if let Some(p) = ports.get_mut(c.from.element) {
                p.1 = p.1.max(c.from.port + 1);
            }
            if let Some(p) = ports.get_mut(c.to.element) {
                p.0 = p.0.max(c.to.port + 1);
            }
        }
        let mut devices: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, e) in flat.elements.iter().enumerate() {
            let class = classes.spec(&e.class).map_or(e.class.as_str(), |s| s.name);
            let known = [Role::Send.class(), Role::Receive.class()].into_iter().find(|c| *c == class);
            if let (Some(class), Some(device)) = (known, router_link::device(&e.config)) {
                devices.entry((class, device)).or_default().push(i);
            }
        }
        Index { component, names, devices, ports }
    }

    /// Returns the element that a link replaces.
    fn find(&self, link: &Link, end: &End, role: Role) -> Result<usize, CombineError> {
        let found = match self.names.get(end.device.as_str()) {
            Some(&e) => e,
            None => match self.devices.get(&(role.class(), end.device.clone())).map(Vec::as_slice) {
                Some([e]) => *e,
                Some(several) => {
                    let name = |e: &usize| self.component.flat.elements.get(*e).map(|e| e.name.clone());
                    return Err(CombineError::Ambiguous {
                        link: link.to_string(),
                        end: end.clone(),
                        elements: several.iter().filter_map(name).collect(),
                    });
                }
                None => {
                    let other = self.devices.keys().filter(|d| d.0 == role.class());
                    let mut devices: Vec<String> = other.map(|d| d.1.clone()).collect();
                    devices.sort();
                    let (link, end) = (link.to_string(), end.clone());
                    return Err(CombineError::NoDevice { link, end, class: role.class(), devices });
                }
            },
        };
        let (inputs, outputs) = self.ports.get(found).copied().unwrap_or_default();
        if role.fits(inputs, outputs) {
            return Ok(found);
        }
        let element = self.component.flat.elements.get(found).map(Element::declaration).unwrap_or_default();
        let (role, wanted) = match role {
            Role::Send => ("send", "one connected input and no connected output"),
            Role::Receive => ("receive", "one connected output and no connected input"),
        };
        Err(CombineError::WrongPorts { link: link.to_string(), element, role, wanted })
    }
}

/// The elements that one `RouterLink` replaces, in the order of the links that name them.
#[derive(Default)]
struct Group {
    senders: Vec<Place>,
    receivers: Vec<Place>,
}

/// Groups links: those that share a sender or a receiver become one `RouterLink`.
#[derive(Default)]
struct Groups {
    number: HashMap<(Place, bool), usize>,
    parent: Vec<usize>,
    ends: Vec<(Place, bool)>,
}

impl Groups {
    fn end(&mut self, place: Place, sends: bool) -> usize {
        *self.number.entry((place, sends)).or_insert_with(|| {
            self.parent.push(self.parent.len());
            self.ends.push((place, sends));
            self.parent.len() - 1
        })
    }
    fn root(&mut self, mut n: usize) -> usize {
        while let Some(&up) = self.parent.get(n).filter(|&&up| up != n) {
            let above = self.parent.get(up).copied().unwrap_or(up);
            if let Some(p) = self.parent.get_mut(n) {
                *p = above;
            }
            n = above;
        }
        n
    }
    fn join(&mut self, from: Place, to: Place) {
        let (a, b) = (self.end(from, true), self.end(to, false));
        let (a, b) = (self.root(a), self.root(b));
        // The smaller number stays, so that groups come in the order of the links.
        if let Some(p) = self.parent.get_mut(a.max(b)) {
            *p = a.min(b);
        }
    }
    fn into_groups(mut self) -> Vec<Group> {
        let mut groups: std::collections::BTreeMap<usize, Group> = Default::default();
        for n in 0..self.ends.len() {
            let root = self.root(n);
            let group = groups.entry(root).or_default();
            match self.ends.get(n) {
                Some((place, true)) => group.senders.push(*place),
                Some((place, false)) => group.receivers.push(*place),
                None => {}
            }
        }
        groups.into_values().collect()
    }
}

/// Combines routers to one configuration. The elements of router `A` get the prefix `A/`, and each link becomes an
/// element of class `RouterLink`, named `link1`, `link2` and so on. Links that share a device become one `RouterLink`.
///
/// # Errors
/// All links and names that are wrong.
pub fn combine(
    components: Vec<Component>,
    links: &[Link],
    classes: &dyn ClassSpecs,
    order: Order,
) -> Result<Flat, Vec<CombineError>> {
    let mut errors = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (i, c) in components.iter().enumerate() {
        if !is_router_name(&c.name) {
            errors.push(CombineError::BadName(c.name.clone()));
        }
        if numbers.insert(&c.name, i).is_some() {
            errors.push(CombineError::SameName(c.name.clone()));
        }
    }
    let index: Vec<Index<'_>> = components.iter().map(|c| Index::new(c, classes)).collect();
    let mut groups = Groups::default();
    let place = |link: &Link, end: &End, role| -> Result<Place, CombineError> {
        let found = numbers.get(end.router.as_str()).and_then(|&n| Some((n, index.get(n)?)));
        let (n, index) = found.ok_or_else(|| CombineError::NoRouter {
            link: link.to_string(),
            router: end.router.clone(),
            routers: components.iter().map(|c| c.name.clone()).collect(),
        })?;
        Ok((n, index.find(link, end, role)?))
    };
    for link in links {
        let ways = [(&link.from, &link.to), (&link.to, &link.from)];
        for (from, to) in ways.into_iter().take(if link.both { 2 } else { 1 }) {
            match (place(link, from, Role::Send), place(link, to, Role::Receive)) {
                (Ok(from), Ok(to)) => groups.join(from, to),
                (a, b) => errors.extend([a.err(), b.err()].into_iter().flatten()),
            }
        }
    }
    let archive = archive(&components).unwrap_or_else(|e| {
        errors.push(e);
        Vec::new()
    });
    if errors.is_empty() {
        Ok(build(&components, &groups.into_groups(), archive, order))
    } else {
        Err(errors)
    }
}

/// Returns the members of all archives, and the list of components.
fn archive(components: &[Component]) -> Result<Vec<(String, Vec<u8>)>, CombineError> {
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let all = components.iter().flat_map(|c| &c.flat.archive);
    for (name, data) in all.filter(|m| m.0 != COMPONENT_MAP && m.0 != ELEMENT_MAP) {
        match members.iter().find(|m| m.0 == *name) {
            None => members.push((name.clone(), data.clone())),
            Some(other) if other.1 == *data => {}
            Some(_) => return Err(CombineError::Member(name.clone())),
        }
    }
    let map = components.iter().fold(String::new(), |map, c| map + &c.name + "\n");
    members.push((COMPONENT_MAP.into(), map.into_bytes()));
    Ok(members)
}

fn build(components: &[Component], groups: &[Group], archive: Vec<(String, Vec<u8>)>, order: Order) -> Flat {
    let element = |(c, e): Place| components.get(c).and_then(|c| Some((c, c.flat.elements.get(e)?)));
    // The port of a RouterLink that stands for each replaced element: the number of the link, and the port.
    let mut replaced: HashMap<Place, PortRef> = HashMap::new();
    for (n, group) in groups.iter().enumerate() {
        for all in [&group.senders, &group.receivers] {
            replaced.extend(all.iter().enumerate().map(|(port, &e)| (e, PortRef { element: n, port })));
        }
    }
    let mut out = Flat {
        file: components.first().map(|c| c.flat.file).unwrap_or_default(),
        archive,
        ..Flat::default()
    };
    let mut number: HashMap<Place, usize> = HashMap::new();
    for (c, component) in components.iter().enumerate() {
        for (e, element) in component.flat.elements.iter().enumerate() {
            if !replaced.contains_key(&(c, e)) {
                number.insert((c, e), out.elements.len());
                let name = format!("{}/{}", component.name, element.name);
                out.elements.push(Element { name, ..element.clone() });
            }
        }
    }
    let first_link = out.elements.len();
    for (n, group) in groups.iter().enumerate() {
        let ends = group.senders.iter().chain(&group.receivers);
        let ports: Vec<Port> = ends
            .clone()
            .filter_map(|&place| {
                let (component, e) = element(place)?;
                Some(Port {
                    router: component.name.clone(),
                    element: e.name.clone(),
                    class: e.class.to_string(),
                    config: e.config.clone(),
                    place: (order == Order::Kept).then_some(place.1),
                })
            })
            .collect();
        let span = ends.clone().find_map(|&e| element(e)).map(|(_, e)| e.span).unwrap_or_default();
        out.elements.push(Element {
            name: format!("link{}", n + 1),
            class: ROUTER_LINK.into(),
            config: router_link::print(&ports),
            span,
            config_span: span,
            config_map: Vec::new(),
            origin: Vec::new(),
        });
    }
    let mut seen = HashSet::new();
    for (c, component) in components.iter().enumerate() {
        let flat = &component.flat;
        for (requirement, at) in
            flat.requirements.iter().zip(flat.required_at.iter().map(Some).chain(std::iter::repeat(None)))
        {
            if seen.insert(requirement) {
                out.requirements.push(requirement.clone());
                out.required_at.push(at.copied().unwrap_or_default());
            }
        }
        let port = |p: PortRef| match replaced.get(&(c, p.element)) {
            Some(link) => Some(PortRef { element: first_link + link.element, port: link.port }),
            None => number.get(&(c, p.element)).map(|&element| PortRef { element, port: p.port }),
        };
        for connection in &flat.connections {
            if let (Some(from), Some(to)) = (port(connection.from), port(connection.to)) {
                out.connections.push(Connection { from, to, span: connection.span });
            }
        }
    }
    out
}

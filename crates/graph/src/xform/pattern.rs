// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patterns: the elements that a match must have, their connections, and the order in which to search for them.

use super::config::{ConfigPattern, Variables};
use super::net::Side;
use castanet_lang::elaborate::Fragment;
use castanet_lang::{ClassName, Diagnostic, PortRef};
use std::collections::BTreeMap;

/// How a pattern uses a port of one of its elements.
#[derive(Clone, Debug, Default)]
pub(super) struct PortUse {
    /// The ports of elements of the pattern that the port is connected to.
    pub links: Vec<PortRef>,
    /// The input or output of the pattern that the port is connected to.
    pub border: Option<usize>,
}

/// The ports of one side of an element that a pattern uses.
pub(super) type PortUses = BTreeMap<usize, PortUse>;

/// An element of a pattern.
#[derive(Clone, Debug)]
pub(super) struct PatternElement {
    pub class: ClassName,
    pub config: ConfigPattern,
    pub inputs: PortUses,
    pub outputs: PortUses,
}

impl PatternElement {
    pub fn side(&self, side: Side) -> &PortUses {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }
}

/// A pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub elements: Vec<PatternElement>,
    /// By number of an input of the pattern: the ports that it is connected to.
    pub inputs: Vec<Vec<PortRef>>,
    /// By number of an output of the pattern: the ports that it is connected to.
    pub outputs: Vec<Vec<PortRef>>,
}

/// A connection of an element of a pattern, seen from that element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternLink {
    /// The side of the element.
    pub side: Side,
    /// The port of the element.
    pub port: usize,
    /// The port at the other end.
    pub other: PortRef,
}

/// A step of a search: finds one element of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The element of the pattern.
    pub element: usize,
    /// Its connections with elements of earlier steps, and with itself.
    pub links: Vec<PatternLink>,
}

/// The maximum number of elements of a pattern. It bounds the recursion of the search.
pub(super) const MAX_PATTERN: usize = 500;

impl Pattern {
    /// Makes a pattern of a fragment, and adds its variables to `variables`.
    pub fn new(fragment: &Fragment, variables: &mut Variables) -> Result<Pattern, Box<Diagnostic>> {
        let name = &fragment.name;
        let wrong = |text: String, help: &str| {
            Box::new(Diagnostic::error(format!("pattern '{name}': {text}"), fragment.span).help(help))
        };
        if fragment.elements.is_empty() {
            return Err(wrong(
                "it has no elements".into(),
                "a pattern needs at least one element to look for",
            ));
        }
        if fragment.elements.len() > MAX_PATTERN {
            let text = format!("it has {} elements", fragment.elements.len());
            return Err(wrong(text, &format!("at most {MAX_PATTERN} are possible")));
        }
        if let Some((input, output)) = fragment.passages.first() {
            return Err(wrong(
                format!("input {input} is connected directly to output {output}"),
                "a connection without an element cannot be looked for; only a replacement may have one",
            ));
        }
        let mut elements = Vec::with_capacity(fragment.elements.len());
        for e in &fragment.elements {
            let config = ConfigPattern::parse(&e.config, variables).map_err(|text| {
                Box::new(Diagnostic::error(format!("pattern '{name}': {text}"), e.config_span))
            })?;
            let (inputs, outputs) = (PortUses::new(), PortUses::new());
            elements.push(PatternElement { class: e.class.clone(), config, inputs, outputs });
        }
        let (inputs, outputs) = (fragment.inputs.clone(), fragment.outputs.clone());
        let mut pattern = Pattern { elements, inputs, outputs };
        for c in &fragment.connections {
            pattern.port_mut(Side::Output, c.from).into_iter().for_each(|u| u.links.push(c.to));
            pattern.port_mut(Side::Input, c.to).into_iter().for_each(|u| u.links.push(c.from));
        }
        for (side, ties) in [(Side::Input, &fragment.inputs), (Side::Output, &fragment.outputs)] {
            for (border, ports) in ties.iter().enumerate() {
                for &port in ports {
                    let Some(first) = pattern.port_mut(side, port).and_then(|u| u.border.replace(border))
                    else {
                        continue;
                    };
                    let side = side.name();
                    let element = fragment.elements.get(port.element).map_or("", |e| e.name.as_str());
                    return Err(wrong(
                        format!(
                            "{side} {} of '{element}' is {side} {first} and {side} {border} of the pattern",
                            port.port
                        ),
                        "a port may be connected to one port of the pattern only, or it is unclear which connections of a router belong to which",
                    ));
                }
            }
        }
        Ok(pattern)
    }

    fn port_mut(&mut self, side: Side, port: PortRef) -> Option<&mut PortUse> {
        let element = self.elements.get_mut(port.element)?;
        let ports = match side {
            Side::Input => &mut element.inputs,
            Side::Output => &mut element.outputs,
        };
        Some(ports.entry(port.port).or_default())
    }

    pub fn element(&self, p: usize) -> Option<&PatternElement> {
        self.elements.get(p)
    }
    /// How a port of an element is used; none if it is not.
    pub fn port_use(&self, side: Side, port: PortRef) -> Option<&PortUse> {
        self.elements.get(port.element)?.side(side).get(&port.port)
    }
    /// Whether the pattern has a connection.
    pub fn has_link(&self, from: PortRef, to: PortRef) -> bool {
        self.port_use(Side::Output, from).is_some_and(|u| u.links.contains(&to))
    }
    /// The connections of an element inside the pattern.
    fn links(&self, p: usize) -> impl Iterator<Item = PatternLink> + '_ {
        let of = move |side: Side| {
            let ports = self.elements.get(p).map(|e| e.side(side)).into_iter().flatten();
            ports.flat_map(move |(&port, u)| {
                u.links.iter().map(move |&other| PatternLink { side, port, other })
            })
        };
        of(Side::Input).chain(of(Side::Output))
    }

    /// Returns the order in which to search, starting with one element. Each further element is connected to an earlier
    /// one if that is possible, so that few elements of the router come into question for it.
    pub fn plan(&self, start: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::with_capacity(self.elements.len());
        let mut found = vec![false; self.elements.len()];
        let starts = std::iter::once(start).chain(0..self.elements.len());
        for start in starts {
            let mut open = std::collections::VecDeque::from([start]);
            while let Some(element) = open.pop_front() {
                match found.get_mut(element) {
                    Some(done) if !*done => *done = true,
                    _ => continue,
                }
                let known = |p: usize| found.get(p) == Some(&true);
                let links = self.links(element).filter(|l| known(l.other.element)).collect();
                open.extend(self.links(element).map(|l| l.other.element));
                steps.push(Step { element, links });
            }
        }
        steps
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connections that lead out of a match, and what becomes of them.

use super::net::{ClassNumber, Net, Side};
use super::replace::Planner;
use super::rule::Rule;
use super::search::Match;
use crate::graph::PortKind;
use castanet_lang::PortRef;
use castanet_spec::codes::Processing;
use std::collections::{BTreeSet, HashMap};

/// An end of a new connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// A port of an element of the router.
    Old(PortRef),
    /// A port of an element of the replacement.
    New(PortRef),
}

/// A connection to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewLink {
    pub from: End,
    pub to: End,
    /// Whether packets are pushed or pulled; none for a connection inside the replacement.
    pub kind: Option<PortKind>,
    /// The place of the connection in the configuration: see [`super::net::Link`].
    pub place: usize,
}

impl NewLink {
    /// Makes a connection between an end on one side of elements and an end on the other side.
    fn new(side: Side, near: End, far: End, kind: Option<PortKind>, place: usize) -> NewLink {
        match side {
            Side::Input => NewLink { from: far, to: near, kind, place },
            Side::Output => NewLink { from: near, to: far, kind, place },
        }
    }
}

/// How the connections change.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// The numbers of the connections to remove.
    pub disconnect: Vec<usize>,
    /// The connections to make.
    pub connect: Vec<NewLink>,
}

/// A connection of a match with an element outside, or of the match with itself, at one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Crossing {
    /// The number of the connection.
    link: usize,
    /// Where it leads.
    far: Far,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Far {
    Outside(PortRef),
    /// The match itself: the port of the pattern with this number, on the other side.
    Border(usize),
}

/// A match together with what its rule says about it.
pub(super) struct Site<'a> {
    net: &'a Net,
    rule: &'a Rule,
    classes: &'a [ClassNumber],
    elements: &'a [usize],
    /// By element of the router: its element of the pattern.
    pattern: HashMap<usize, usize>,
    /// By element of the pattern that stays: its element of the replacement.
    pub stays: HashMap<usize, usize>,
}

impl<'a> Site<'a> {
    pub fn new(planner: &Planner<'a>, m: &'a Match) -> Site<'a> {
        let elements = planner.rule.replacement.elements.iter().enumerate();
        Site {
            net: planner.net,
            rule: planner.rule,
            classes: planner.classes,
            elements: &m.elements,
            pattern: m.elements.iter().enumerate().map(|(p, e)| (*e, p)).collect(),
            stays: elements.filter(|(_, e)| e.stays).filter_map(|(r, e)| Some((e.namesake?, r))).collect(),
        }
    }
    /// The port of the router for a port of the pattern.
    fn router_port(&self, p: PortRef) -> Option<PortRef> {
        Some(PortRef { element: *self.elements.get(p.element)?, port: p.port })
    }
    /// The port of the pattern for a port of the router; none if it is outside the match.
    fn pattern_port(&self, e: PortRef) -> Option<PortRef> {
        Some(PortRef { element: *self.pattern.get(&e.element)?, port: e.port })
    }
    /// The port of the replacement for a port of the pattern, if the element stays.
    fn staying(&self, p: PortRef) -> Option<PortRef> {
        Some(PortRef { element: *self.stays.get(&p.element)?, port: p.port })
    }
    /// The end of a new connection at a port of the replacement.
    fn end(&self, r: PortRef) -> Option<End> {
        let new = self.rule.replacement.element(r.element)?;
        match new.namesake.filter(|_| new.stays) {
            Some(p) => self.router_port(PortRef { element: p, port: r.port }).map(End::Old),
            None => Some(End::New(r)),
        }
    }
    /// The connections that lead out of the match at a port of the pattern.
    fn crossings(&self, side: Side, port: PortRef) -> impl Iterator<Item = Crossing> + '_ {
        let node = self.elements.get(port.element).and_then(|&e| self.net.node(e));
        let ids = node.into_iter().flat_map(move |n| n.connections(side, port.port));
        ids.filter_map(move |id| {
            let link = self.net.link(id)?;
            let far = link.end(side.other());
            match self.pattern_port(far) {
                None => Some(Crossing { link: id, far: Far::Outside(far) }),
                Some(p) => {
                    let (from, to) = if side == Side::Output { (port, p) } else { (p, port) };
                    if self.rule.pattern.has_link(from, to) {
                        return None;
                    }
                    let border = self.rule.pattern.port_use(side.other(), p)?.border?;
                    Some(Crossing { link: id, far: Far::Border(border) })
                }
            }
        })
    }
    /// Whether connections lead out of the match at a port of the pattern. This takes constant time.
    fn crosses(&self, side: Side, port: PortRef) -> bool {
        let node = self.elements.get(port.element).and_then(|&e| self.net.node(e));
        let inside = self.rule.pattern.port_use(side, port).map_or(0, |u| u.links.len());
        node.is_some_and(|n| n.degree(side, port.port) > inside)
    }
    /// The ports that belong to an input or output, in the pattern and in the replacement.
    fn ties(&self, side: Side) -> impl ExactSizeIterator<Item = (&'a [PortRef], &'a [PortRef])> {
        let (pattern, replacement) = (&self.rule.pattern, &self.rule.replacement);
        let (old, new) = match side {
            Side::Input => (&pattern.inputs, &replacement.inputs),
            Side::Output => (&pattern.outputs, &replacement.outputs),
        };
        old.iter().map(Vec::as_slice).zip(new.iter().map(Vec::as_slice))
    }
}

/// One input or output of the pattern, in a match.
struct Border<'a> {
    old: &'a [PortRef],
    new: &'a [PortRef],
    /// Whether connections lead out of the match here.
    used: bool,
    /// These connections, in order. Only listed if they change.
    crossings: Vec<Crossing>,
}

/// The inputs and outputs of the pattern, in a match.
pub(super) struct Borders<'a> {
    inputs: Vec<Border<'a>>,
    outputs: Vec<Border<'a>>,
}

impl<'a> Borders<'a> {
    /// Lists the connections that lead out of a match. Returns none if ports of the router that belong to the same port of the
    /// pattern are not connected to the same ports.
    pub fn new(at: &Site<'a>) -> Option<Borders<'a>> {
        Some(Borders { inputs: Borders::side(at, Side::Input)?, outputs: Borders::side(at, Side::Output)? })
    }
    fn side(at: &Site<'a>, side: Side) -> Option<Vec<Border<'a>>> {
        let passages = &at.rule.replacement.passages;
        let border = |(k, (old, new)): (usize, (&'a [PortRef], &'a [PortRef]))| {
            let used = old.iter().any(|&port| at.crosses(side, port));
            let passes = passages.iter().any(|&(i, o)| k == if side == Side::Input { i } else { o });
            let unchanged =
                old.len() == 1 && new.len() == 1 && !passes && old.iter().all(|&p| stays(at, p, new));
            let mut crossings = Vec::new();
            if used && !unchanged {
                let (first, others) = old.split_first()?;
                crossings.extend(at.crossings(side, *first));
                let far = |all: &[Crossing]| all.iter().map(|c| c.far).collect::<BTreeSet<_>>();
                let all = far(&crossings);
                for &other in others {
                    let here: Vec<Crossing> = at.crossings(side, other).collect();
                    if far(&here) != all {
                        return None;
                    }
                }
            }
            Some(Border { old, new, used, crossings })
        };
        at.ties(side).enumerate().map(border).collect()
    }
    fn of(&self, side: Side) -> &[Border<'a>] {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }
    fn is_used(&self, side: Side, k: usize) -> bool {
        self.of(side).get(k).is_some_and(|b| b.used)
    }

    /// Returns none if a port of the replacement or of a neighbour would be left without a connection.
    pub fn replacement_is_connected(&self, at: &Site<'_>) -> Option<()> {
        let replacement = &at.rule.replacement;
        for side in [Side::Input, Side::Output] {
            let inside = |port: PortRef| {
                replacement
                    .links
                    .iter()
                    .any(|(from, to)| port == if side == Side::Input { *to } else { *from })
            };
            let elsewhere = |port: PortRef| self.of(side).iter().any(|b| b.used && b.new.contains(&port));
            for (k, border) in self.of(side).iter().enumerate() {
                let leads = |&(i, o): &(usize, usize)| match side {
                    Side::Input => i == k && self.is_used(Side::Output, o),
                    Side::Output => o == k && self.is_used(Side::Input, i),
                };
                let fine = match border.used {
                    true => !border.new.is_empty() || replacement.passages.iter().any(leads),
                    false => border.new.iter().all(|&port| inside(port) || elsewhere(port)),
                };
                fine.then_some(())?;
            }
        }
        Some(())
    }

    /// Returns the connections to remove and to make. Returns none if a push port would be connected to a pull port.
    pub fn changes(&self, at: &Site<'_>) -> Option<Changes> {
        let replacement = &at.rule.replacement;
        let mut changes = Changes { disconnect: self.inner_links(at)?, connect: Vec::new() };
        let links = changes.disconnect.iter().filter_map(|&id| at.net.link(id));
        let place = links.map(|l| l.place).min();
        for side in [Side::Input, Side::Output] {
            for border in self.of(side) {
                let ports = border.old.iter().filter(|&&p| !stays(at, p, border.new));
                changes.disconnect.extend(ports.flat_map(|&p| at.crossings(side, p)).map(|c| c.link));
                for &port in border.new.iter().filter(|&&r| !is_old(at, r, border.old)) {
                    self.reconnect(at, side, border, port, &mut changes.connect)?;
                }
            }
        }
        for &(input, output) in &replacement.passages {
            self.pass(at, input, output, &mut changes.connect)?;
        }
        let place = place.or(changes.connect.iter().map(|c| c.place).min()).unwrap_or(0);
        for &(from, to) in &replacement.links {
            let (from, to) = (at.end(from)?, at.end(to)?);
            changes.connect.push(NewLink { from, to, kind: None, place });
        }
        Some(changes)
    }

    /// Returns the connections inside the match that the replacement does not have.
    fn inner_links(&self, at: &Site<'_>) -> Option<Vec<usize>> {
        let stay = |from: PortRef, to: PortRef| match (at.staying(from), at.staying(to)) {
            (Some(from), Some(to)) => at.rule.replacement.links.contains(&(from, to)),
            _ => false,
        };
        let mut links = Vec::new();
        for (p, element) in at.rule.pattern.elements.iter().enumerate() {
            for (&port, port_use) in &element.outputs {
                let from = PortRef { element: p, port };
                for &to in port_use.links.iter().filter(|to| !stay(from, **to)) {
                    links.push(at.net.number(at.router_port(from)?, at.router_port(to)?)?);
                }
            }
        }
        Some(links)
    }

    /// Connects a port of the replacement with what the match was connected with at one of its inputs or outputs.
    fn reconnect(
        &self,
        at: &Site<'_>,
        side: Side,
        border: &Border<'_>,
        port: PortRef,
        connect: &mut Vec<NewLink>,
    ) -> Option<()> {
        let near = at.end(port)?;
        for c in &border.crossings {
            let link = at.net.link(c.link)?;
            self.kinds_fit(at, side, port, link.kind)?;
            match c.far {
                Far::Outside(far) => {
                    connect.push(NewLink::new(side, near, End::Old(far), link.kind, link.place));
                }
                Far::Border(k) => {
                    for &other in self.of(side.other()).get(k).map_or(&[][..], |b| b.new) {
                        connect.push(NewLink::new(side, near, at.end(other)?, link.kind, link.place));
                    }
                }
            }
        }
        Some(())
    }

    /// Connects what is connected to an input directly with what is connected to an output.
    fn pass(&self, at: &Site<'_>, input: usize, output: usize, connect: &mut Vec<NewLink>) -> Option<()> {
        for a in &self.inputs.get(input)?.crossings {
            for b in &self.outputs.get(output)?.crossings {
                let (Far::Outside(up), Far::Outside(down)) = (a.far, b.far) else { return None };
                let (a, b) = (at.net.link(a.link)?, at.net.link(b.link)?);
                if a.kind.is_some() && b.kind.is_some() && a.kind != b.kind {
                    return None;
                }
                let (from, to) = (End::Old(up), End::Old(down));
                connect.push(NewLink { from, to, kind: a.kind.or(b.kind), place: a.place });
            }
        }
        Some(())
    }

    /// Returns none if the class of a new element does not allow connections of this kind at a port.
    fn kinds_fit(&self, at: &Site<'_>, side: Side, port: PortRef, kind: Option<PortKind>) -> Option<()> {
        let codes = at.net.codes(*at.classes.get(port.element)?)?;
        let code = match side {
            Side::Input => codes.input(port.port),
            Side::Output => codes.output(port.port),
        };
        let fits = match (code, kind) {
            (Processing::Push, Some(kind)) => kind == PortKind::Push,
            (Processing::Pull, Some(kind)) => kind == PortKind::Pull,
            _ => true,
        };
        fits.then_some(())
    }
}

/// Whether a replacement keeps the connections that cross the border of the match at `port`, a port of the pattern. It
/// keeps them if the element with this port stays, and if the port is among `new`: the ports of the replacement at the
/// same input or output of the pattern.
fn stays(at: &Site<'_>, port: PortRef, new: &[PortRef]) -> bool {
    at.staying(port).is_some_and(|port| new.contains(&port))
}

/// Whether the element of a port of the replacement stays, and the port was already at the same input or output of the
/// pattern. `old` are the ports of the pattern there.
fn is_old(at: &Site<'_>, port: PortRef, old: &[PortRef]) -> bool {
    old.iter().any(|&p| at.staying(p) == Some(port))
}

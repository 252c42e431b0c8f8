// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a symbolic packet through one router: from the device where it arrives to the devices where it leaves, and to
//! the elements where it ends.

use super::packet::{ETHERNET, Symbolic};
use super::tables::Known;
use castanet_graph::Graph;
use castanet_graph::network::ROUTER_LINK;
use castanet_lang::PortRef;
use std::collections::HashSet;

/// The largest number of states that are followed from one device. Beyond it, nothing is said about the packet.
const MOST: usize = 5000;

/// A route that a packet took: the element, and the index of the route in its table.
pub type Used = Option<(usize, usize)>;

/// What becomes of a packet in a router.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// What happens.
    pub end: End,
    /// The last route that was used.
    pub route: Used,
}

/// How the way of a packet through a router ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It leaves through a device: an input of a `RouterLink`, or an element that sends.
    Leaves(PortRef, Symbolic),
    /// It ends at an element.
    At(usize),
    /// A route table has no route.
    NoRoute(usize),
    /// An element expects an IP header, or a header to strip, where the packet has none.
    Mismatch(usize, i32),
    /// It cannot be followed further: its addresses change, or there are too many ways.
    Unknown,
}

/// The elements of a network, and what is known about them.
pub struct Walker<'a> {
    graph: &'a Graph,
    known: &'a [Known],
}

/// What an element does with a packet.
enum Step {
    /// The packet leaves on these outputs.
    Out(Vec<(usize, Symbolic)>),
    /// Some packets may end here, and others leave.
    MayEnd(Vec<(usize, Symbolic)>),
    /// The way ends.
    End(End),
}

impl<'a> Walker<'a> {
    /// Makes a walker. `known` has an entry for each element of the graph.
    pub fn new(graph: &'a Graph, known: &'a [Known]) -> Walker<'a> {
        Walker { graph, known }
    }

    /// Follows a packet that leaves an output: that of a `RouterLink` or of an element that receives.
    pub fn follow(&self, from: PortRef, packet: Symbolic) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![(from, packet, None)];
        while let Some((output, packet, route)) = open.pop() {
            if seen.len() > MOST {
                return vec![Outcome { end: End::Unknown, route: None }];
            }
            let inputs = self.graph.downstream(output);
            if inputs.is_empty() {
                outcomes.push(Outcome { end: End::At(output.element), route });
            }
            for &input in inputs {
                if !seen.insert((input, packet.clone(), route)) {
                    continue;
                }
                let mut used = route;
                let step = self.step(input, packet.clone(), &mut used);
                let (outputs, ends) = match step {
                    Step::Out(outputs) => (outputs, None),
                    Step::MayEnd(outputs) => (outputs, Some(End::At(input.element))),
                    Step::End(end) => (Vec::new(), Some(end)),
                };
                outcomes.extend(ends.map(|end| Outcome { end, route: used }));
                let outputs = outputs.into_iter().rev();
                open.extend(outputs.map(|(port, p)| (PortRef { element: input.element, port }, p, used)));
            }
        }
        outcomes
    }

    /// Returns what an element does with a packet on one of its inputs.
    fn step(&self, input: PortRef, mut p: Symbolic, used: &mut Used) -> Step {
        let e = input.element;
        let outputs = self.graph.outputs(e);
        let class = self.graph.spec(e).map_or("", |s| s.name);
        if class.is_empty() && self.graph.element(e).is_some_and(|x| x.class == ROUTER_LINK) {
            return Step::End(End::Leaves(input, p));
        }
        let (number, ether) = match self.known.get(e) {
            Some(Known::Table(table)) => {
                let Some(address) = p.annotation else { return self.all(e, input.port, &p) };
                let Some(n) = table.find(address) else { return Step::End(End::NoRoute(e)) };
                let Some(route) = table.routes.get(n) else { return Step::End(End::NoRoute(e)) };
                *used = Some((e, n));
                p.annotation = Some(route.gateway.unwrap_or(address));
                return Step::Out(vec![(route.port, p)]);
            }
            Some(Known::Classifier(program)) => {
                let (ports, dropped) = p.classify(program);
                let out = ports.into_iter().map(|port| (port, p.clone())).collect();
                return if dropped { Step::MayEnd(out) } else { Step::Out(out) };
            }
            Some(Known::Other(number, ether)) => (*number, *ether),
            None => (None, None),
        };
        let n = number.and_then(|n| i32::try_from(n).ok());
        let starts_at = |p: &Symbolic, at: i32| p.ip_at == at;
        let out = |p: Symbolic| Step::Out(vec![(0, p)]);
        match class {
            "ToDevice" => Step::End(End::Leaves(input, p)),
            "Strip" => {
                let before = p.ip_at;
                p.ip_at = before.saturating_sub(n.unwrap_or(0));
                if p.ip_at < 0 { Step::End(End::Mismatch(e, before)) } else { out(p) }
            }
            "Unstrip" => {
                p.ip_at = p.ip_at.saturating_add(n.unwrap_or(0));
                out(p)
            }
            "StripToNetworkHeader" | "StripEtherVLANHeader" => {
                p.ip_at = 0;
                out(p)
            }
            "CheckIPHeader" | "MarkIPHeader" => {
                if !starts_at(&p, n.unwrap_or(0)) {
                    return Step::End(End::Mismatch(e, p.ip_at));
                }
                p.annotation = Some(p.dst);
                out(p)
            }
            "IPInputCombo" => {
                if !starts_at(&p, ETHERNET) {
                    return Step::End(End::Mismatch(e, p.ip_at));
                }
                p.ip_at = 0;
                p.paint = n.and_then(|n| u8::try_from(n).ok());
                p.annotation = Some(p.dst);
                out(p)
            }
            "ARPQuerier" => match input.port {
                0 if !starts_at(&p, 0) => Step::End(End::Mismatch(e, p.ip_at)),
                0 => {
                    p.next_hop = p.annotation;
                    p.ip_at = ETHERNET;
                    out(p)
                }
                _ => Step::End(End::At(e)),
            },
            "EtherEncap" => {
                p.ip_at = p.ip_at.saturating_add(ETHERNET);
                p.ether = ether;
                out(p)
            }
            "GetIPAddress" => {
                p.annotation = n.filter(|&n| n == p.ip_at.saturating_add(16)).map(|_| p.dst);
                out(p)
            }
            "SetIPAddress" => {
                p.annotation = None;
                out(p)
            }
            "Paint" => {
                p.paint = n.and_then(|n| u8::try_from(n).ok());
                out(p)
            }
            "CheckPaint" => match p.paint {
                Some(paint) if Some(i32::from(paint)) == n => out(p),
                Some(_) if outputs > 1 => Step::Out(vec![(1, p)]),
                Some(_) => Step::End(End::At(e)),
                None => Step::MayEnd(vec![(0, p)]),
            },
            "PaintSwitch" => match p.paint {
                Some(paint) => Step::Out(vec![(usize::from(paint), p)]),
                None => self.all(e, input.port, &p),
            },
            "StaticSwitch" | "Switch" => match n.and_then(|n| usize::try_from(n).ok()) {
                Some(port) if port < outputs => Step::Out(vec![(port, p)]),
                _ => Step::End(End::At(e)),
            },
            "Discard" | "Idle" | "ToHost" | "ToHostSniffers" | "ICMPError" | "ICMPPingResponder"
            | "TimedSink" => Step::End(End::At(e)),
            // It answers ARP requests only.
            "ARPResponder" if outputs > 1 => Step::Out(vec![(1, p)]),
            "ARPResponder" => Step::End(End::At(e)),
            // What leaves elsewhere are copies for ICMP errors.
            "PaintTee" | "IPOutputCombo" => out(p),
            // Addresses or headers change.
            "IPEncap" | "UDPIPEncap" | "IPMirror" | "EtherMirror" | "StripIPHeader" | "UnstripIPHeader" => {
                Step::End(End::Unknown)
            }
            _ if self.graph.spec(e).is_some_and(|s| s.module.contains("::nat::")) => Step::End(End::Unknown),
            _ if outputs == 0 => Step::End(End::At(e)),
            _ => self.all(e, input.port, &p),
        }
    }

    /// Returns the outputs of an element about which only its declaration is known. Where packets are pushed aside, as in
    /// the code `1/1-2`, output 0 is the one for ordinary packets.
    fn all(&self, e: usize, input: usize, p: &Symbolic) -> Step {
        let flows = (0..self.graph.outputs(e)).filter(|&o| self.graph.flows(e, input, o));
        let ports = self.graph.spec(e).map_or("", |s| s.ports);
        let aside = ports.split_once('/').is_some_and(|(_, o)| o.starts_with("1-") && o != "1-");
        let outputs: Vec<usize> = if aside { flows.take(1).collect() } else { flows.collect() };
        match outputs.is_empty() {
            true => Step::End(End::At(e)),
            false => Step::Out(outputs.into_iter().map(|o| (o, p.clone())).collect()),
        }
    }
}

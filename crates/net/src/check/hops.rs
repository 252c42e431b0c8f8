// SPDX-License-Identifier: MIT OR Apache-2.0
//! From device to device: where packets go next after one router.

use super::packet::{ETHERNET, Symbolic};
use super::tables::Known;
use super::walk::{End, Outcome, Used, Walker};
use crate::topology::{Device, Topology, name_of};
use castanet_graph::Graph;
use castanet_graph::network::split_name;
use castanet_lang::PortRef;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::rc::Rc;

/// A packet that arrives at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arrival {
    /// The device: an output of a `RouterLink`, or the output of an element that receives.
    pub at: PortRef,
    /// The destination.
    pub dst: u32,
    /// Where the IP header starts.
    pub ip_at: i32,
    /// The next hop that the frame is for, if the device belongs to a bridge.
    pub next_hop: Option<u32>,
}

/// What becomes of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// It arrives at the next device. The route led there.
    Next(Arrival, Used),
    /// It leaves the network at a device, by index in the topology, towards an address.
    Out(usize, u32, Used),
    /// It reached the router that has its destination address.
    Local,
    /// It is lost.
    Lost(Lost, Used),
    /// An element cannot read it, because its headers are not those that the element expects.
    Mismatch(usize, i32),
    /// Nothing is known.
    Unknown,
}

/// How a packet is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// It ends at this element.
    At(usize),
    /// This table has no route.
    NoRoute(usize),
    /// No device on this link has the address of the next hop.
    NoNextHop(usize, u32),
}

/// Finds out where packets go.
pub struct Hops<'a> {
    graph: &'a Graph,
    topology: &'a Topology,
    walker: Walker<'a>,
    known: HashMap<Arrival, Rc<Vec<Hop>>>,
    /// The addresses of each router.
    own: HashSet<(&'a str, u32)>,
    /// The device of each element that sends.
    sender: HashMap<usize, usize>,
    /// For each `RouterLink`, where the IP header starts in the frames on it.
    pub formats: HashMap<usize, HashSet<i32>>,
}

impl<'a> Hops<'a> {
    /// Prepares to follow packets.
    pub fn new(graph: &'a Graph, topology: &'a Topology, known: &'a [Known]) -> Hops<'a> {
        let own = |d: &'a Device| d.prefix.map(|p| (d.router.as_str(), p.addr.to_bits()));
        let senders = topology.devices.iter().enumerate();
        Hops {
            graph,
            topology,
            walker: Walker::new(graph, known),
            known: HashMap::new(),
            own: topology.devices.iter().filter_map(own).collect(),
            sender: senders.flat_map(|(n, d)| d.senders.iter().map(move |&e| (e, n))).collect(),
            formats: HashMap::new(),
        }
    }

    /// Returns where a packet enters the network at a device that no link leads to, as Ethernet frames or, if the router
    /// cannot read these, as IP packets.
    pub fn entry(&mut self, device: usize, dst: u32) -> Option<Arrival> {
        let &element = self.topology.devices.get(device)?.receivers.first()?;
        let arrival = |ip_at| Arrival { at: PortRef { element, port: 0 }, dst, ip_at, next_hop: None };
        let cannot = |hops: &[Hop]| hops.iter().any(|h| matches!(h, Hop::Mismatch(..)));
        let ip = cannot(&self.next(arrival(ETHERNET))) && !cannot(&self.next(arrival(0)));
        Some(arrival(if ip { 0 } else { ETHERNET }))
    }

    /// Returns the router that an arrival enters, and the name of the device.
    pub fn place(&self, arrival: &Arrival) -> (String, String) {
        let PortRef { element, port } = arrival.at;
        if let Some(p) = self.topology.links.get(&element).and_then(|l| l.outputs.get(port)) {
            return (p.router.clone(), name_of(p));
        }
        let d = self.topology.devices.iter().find(|d| d.receivers.contains(&element));
        d.map(|d| (d.router.clone(), d.name.clone())).unwrap_or_default()
    }

    /// Returns what may become of an arrival.
    pub fn next(&mut self, arrival: Arrival) -> Rc<Vec<Hop>> {
        if let Some(hops) = self.known.get(&arrival) {
            return hops.clone();
        }
        let mut packet = Symbolic::arriving(arrival.dst, arrival.ip_at);
        packet.next_hop = arrival.next_hop;
        let mut hops = Vec::new();
        for outcome in self.walker.follow(arrival.at, packet) {
            for hop in self.hops(&outcome, arrival.dst) {
                if !hops.contains(&hop) {
                    hops.push(hop);
                }
            }
        }
        let hops = Rc::new(hops);
        self.known.insert(arrival, hops.clone());
        hops
    }

    fn hops(&mut self, outcome: &Outcome, dst: u32) -> Vec<Hop> {
        let route = outcome.route;
        match &outcome.end {
            End::Unknown => vec![Hop::Unknown],
            End::Mismatch(e, ip_at) => vec![Hop::Mismatch(*e, *ip_at)],
            End::At(e) | End::NoRoute(e) => {
                let router = split_name(self.graph.name(*e)).map_or("", |n| n.0);
                vec![match &outcome.end {
                    _ if self.own.contains(&(router, dst)) => Hop::Local,
                    End::NoRoute(_) => Hop::Lost(Lost::NoRoute(*e), route),
                    _ => Hop::Lost(Lost::At(*e), route),
                }]
            }
            End::Leaves(input, p) => match self.sender.get(&input.element) {
                Some(&device) => vec![Hop::Out(device, p.next_hop.unwrap_or(dst), route)],
                None => self.over_link(*input, p, route),
            },
        }
    }

    /// Returns where a frame arrives that is sent over a link.
    fn over_link(&mut self, input: PortRef, p: &Symbolic, route: Used) -> Vec<Hop> {
        let Some(link) = self.topology.links.get(&input.element) else { return vec![Hop::Unknown] };
        self.formats.entry(input.element).or_default().insert(p.ip_at);
        let sender = link.inputs.get(input.port).and_then(|s| self.topology.device_of(s));
        let is_sender = |d: &Device| sender.is_some_and(|s| s.router == d.router && s.name == d.name);
        let devices = link.outputs.iter().enumerate();
        let devices = devices.filter_map(|(port, o)| Some((port, self.topology.device_of(o)?)));
        let all: Vec<(usize, &Device)> = devices.filter(|(_, d)| !is_sender(d)).collect();
        let select = |which: &dyn Fn(&Device) -> bool| -> Vec<(usize, &Device)> {
            all.iter().copied().filter(|(_, d)| which(d)).collect()
        };
        let has_address = |d: &Device, ip: u32| d.prefix.is_some_and(|p| p.addr.to_bits() == ip);
        let mut to = match (p.next_hop.filter(|_| p.ip_at == ETHERNET), p.ether) {
            (Some(ip), _) => select(&|d| has_address(d, ip)),
            (None, Some(ether)) => select(&|d| d.ether == ether),
            (None, None) => all.clone(),
        };
        if to.is_empty() && p.next_hop.is_some() {
            // Devices without an address belong to bridges, or their addresses are not known.
            to = select(&|d| d.prefix.is_none());
        }
        if to.is_empty() {
            let ip = p.next_hop.unwrap_or(p.dst);
            return vec![Hop::Lost(Lost::NoNextHop(input.element, ip), route)];
        }
        let arrival = |(port, d): (usize, &Device)| Arrival {
            at: PortRef { element: input.element, port },
            dst: p.dst,
            ip_at: p.ip_at,
            next_hop: p.next_hop.filter(|_| d.prefix.is_none()),
        };
        to.into_iter().map(|to| Hop::Next(arrival(to), route)).collect()
    }
}

/// Returns an address as text.
pub fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}

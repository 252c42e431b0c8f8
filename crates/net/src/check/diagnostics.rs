// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages about loops, black holes and mismatches: where they are, the path of packets, and how to mend them.

use super::hops::{Hops, Lost, ip};
use super::packet::ETHERNET;
use super::search::{Found, Hole, Loop, Mismatch, PathStep};
use super::tables::{Known, Route};
use super::walk::Used;
use crate::host::Host;
use crate::topology::{Device, Topology, name_of};
use castanet_graph::Graph;
use castanet_graph::network::split_name;
use castanet_lang::{Diagnostic, Span};
use castanet_spec::Prefix;
use std::collections::{HashMap, VecDeque};

/// Everything that messages need.
struct Writer<'a> {
    graph: &'a Graph,
    topology: &'a Topology,
    known: &'a [Known],
    hosts: &'a [Host],
    hops: &'a Hops<'a>,
}

/// Returns the messages: mismatches, then loops, then black holes.
pub fn all(
    graph: &Graph,
    topology: &Topology,
    known: &[Known],
    hosts: &[Host],
    hops: &Hops<'_>,
    found: &Found,
) -> Vec<Diagnostic> {
    let w = Writer { graph, topology, known, hosts, hops };
    let mismatches = found.mismatches.iter().map(|m| w.mismatch(m));
    let loops = found.loops.iter().map(|l| w.circle(l));
    let holes = found.holes.iter().zip(&found.hosts).map(|(h, n)| w.hole(h, *n));
    mismatches.chain(loops).chain(holes).collect()
}

fn router_of(name: &str) -> &str {
    split_name(name).map_or(name, |n| n.0)
}

fn text(p: Prefix) -> String {
    format!("{}/{}", p.addr, p.len)
}

impl Writer<'_> {
    fn route(&self, used: Used) -> Option<(usize, &Route)> {
        let (e, n) = used?;
        match self.known.get(e)? {
            Known::Table(table) => Some((e, table.routes.get(n)?)),
            _ => None,
        }
    }

    /// Returns the place of a route in the text.
    fn place(&self, e: usize, route: &Route) -> Option<Span> {
        self.graph.element(e).map(|x| x.config_place(route.range.clone()))
    }

    /// Returns a path as text: `A.eth0 -> B.eth1 -> A.eth0`.
    fn path(&self, steps: &[PathStep]) -> Vec<String> {
        steps
            .iter()
            .map(|(arrival, _)| {
                let (router, device) = self.hops.place(arrival);
                format!("{router}.{device}")
            })
            .collect()
    }

    /// Returns the route in words: `route '10.0.0.0/8 10.0.0.1 2' of 'A/routes'`.
    fn words(&self, e: usize, route: &Route) -> String {
        let config = self.graph.config(e);
        let written = config.get(route.range.clone()).unwrap_or("");
        let written: Vec<&str> = written.split_whitespace().collect();
        format!("route '{}' of '{}'", written.join(" "), self.graph.name(e))
    }

    /// Returns the device whose network has an address: the smallest network of a device that no link leads to, or else of
    /// any device.
    fn owner(&self, address: u32) -> Option<&Device> {
        let contains = |p: Prefix| p.network().to_bits() == address & p.mask().to_bits();
        let all = self.topology.devices.iter().filter(|d| d.prefix.is_some_and(contains));
        all.max_by_key(|d| (!d.linked, d.prefix.map(|p| p.len)))
    }

    fn circle(&self, found: &Loop) -> Diagnostic {
        // The path begins at the router with the most specific route, which describes the destinations best.
        let key = |s: &PathStep| {
            let name = std::cmp::Reverse(self.hops.place(&s.0));
            (self.route(s.1).map_or(0, |r| r.1.prefix.len), name)
        };
        let first = (0..found.steps.len()).max_by_key(|&i| found.steps.get(i).map(key)).unwrap_or(0);
        let mut steps = found.steps.clone();
        steps.rotate_left(first);
        let routes: Vec<_> = steps.iter().filter_map(|s| self.route(s.1)).collect();
        let net = routes.first().map(|r| r.1.prefix);
        let what = net.map_or_else(|| format!("{}", ip(found.dst)), text);
        let mut path = self.path(&steps);
        let around = path.iter().map(|p| router_of_device(p)).collect::<Vec<_>>();
        let again = path.first().cloned().unwrap_or_default();
        path.push(again);
        let count = around.len();
        let message = match around.as_slice() {
            [only] => format!("packets to {what} return to router {only} for ever"),
            some if count <= 4 => {
                format!("packets to {what} go round in a loop: {} and back", some.join(", "))
            }
            _ => format!("packets to {what} go round in a loop of {count} routers"),
        };
        let span = routes.first().and_then(|r| self.place(r.0, r.1));
        let mut d = Diagnostic::error(message, span);
        if let Some((e, route)) = routes.first() {
            d = d.at(format!("{} sends them on by this route", router_of(self.graph.name(*e))));
            let mut seen = vec![(*e, route.range.clone())];
            for (e, route) in routes.iter().skip(1).take(8) {
                if let Some(at) = self.place(*e, route).filter(|_| !seen.contains(&(*e, route.range.clone())))
                {
                    d = d
                        .label(format!("{} sends them on by this route", router_of(self.graph.name(*e))), at);
                    seen.push((*e, route.range.clone()));
                }
            }
        }
        d = d.note(format!("path of a packet to {}: {}", ip(found.dst), shortened(&path)), None);
        d.help(match self.owner(found.dst) {
            Some(owner) => {
                let net = owner.prefix.map_or_else(String::new, |p| text(Prefix { addr: p.network(), ..p }));
                format!(
                    "router {} has the network {net} at {}; change the route of one router so that it leads there",
                    owner.router, owner.name
                )
            }
            None => "no router has these addresses; let one of the routers drop them, or answer with an ICMP error, by a \
                     route of its own"
                .into(),
        })
    }

    fn hole(&self, hole: &Hole, senders: usize) -> Diagnostic {
        let (Some(from), Some(to)) = (self.hosts.get(hole.from), self.hosts.get(hole.to)) else {
            return Diagnostic::error("packets are lost", None);
        };
        let address = to.prefix.map(|p| p.addr.to_string()).unwrap_or_default();
        let net = to.prefix.map(|p| text(Prefix { addr: p.network(), ..p })).unwrap_or_default();
        let others = match senders {
            1 => format!("from {}", from.name),
            2 => format!("from {} and another host", from.name),
            n => format!("from {} and {} other hosts", from.name, n - 1),
        };
        let last = hole.path.last().map(|s| self.hops.place(&s.0).0).unwrap_or_default();
        let route = self.route(hole.route);
        let (how, element) = match &hole.lost {
            Ok(Lost::NoRoute(e)) => {
                (format!("'{}' has no route for them", self.graph.declaration(*e)), Some(*e))
            }
            Ok(Lost::NoNextHop(link, ip4)) => {
                (format!("no device on {} has the address {}", self.graph.name(*link), ip(*ip4)), None)
            }
            Ok(Lost::At(e)) => {
                let class = self.graph.element(*e).map_or("", |x| x.class.as_str());
                let how = match class {
                    "ICMPError" => format!("'{}' answers them with an error", self.graph.declaration(*e)),
                    _ => format!("they end at '{}'", self.graph.declaration(*e)),
                };
                (how, Some(*e))
            }
            Err(device) => {
                let name = self.topology.devices.get(*device).map(Device::full_name).unwrap_or_default();
                (format!("they leave the network at {name}"), None)
            }
        };
        let span = route
            .and_then(|(e, r)| self.place(e, r))
            .or_else(|| element.and_then(|e| self.graph.element(e)).map(|x| x.span));
        let mut d = Diagnostic::error(
            format!("router {last} loses packets to {net}, the network of {}: {how}", to.name),
            span,
        );
        if route.is_some() {
            d = d.at("the route that they take");
        }
        let mut path = vec![format!("host at {}", from.name)];
        path.extend(self.path(&hole.path));
        d = d.note(format!("path of a packet {others} to {address}: {}", shortened(&path)), None);
        d.help(self.way(&last, to, &net, route))
    }

    /// Returns what to write in a router so that packets for a host take the shortest way.
    fn way(&self, router: &str, to: &Host, net: &str, route: Option<(usize, &Route)>) -> String {
        let Some(target) = self.topology.devices.get(to.device) else { return String::new() };
        let len = to.prefix.map_or(0, |p| p.len);
        let table = match route {
            Some((_, r)) if r.prefix.len < len => "add a more specific route: ".to_string(),
            Some((e, r)) => format!("replace {}: ", self.words(e, r)),
            None => "add a route: ".to_string(),
        };
        if target.router == router {
            return format!("{table}{net} to the output that leads to {}", target.name);
        }
        match self.neighbour(router, &target.router) {
            Some((device, next)) => {
                let gateway =
                    next.prefix.map_or_else(String::new, |p| format!(" with the gateway {}", p.addr));
                format!(
                    "{table}{net}{gateway}, to the output that leads to {} (towards {})",
                    device.name,
                    next.full_name()
                )
            }
            None => format!(
                "no links lead from {router} to {}; add one, or a route to a router that has one",
                target.router
            ),
        }
    }

    /// Returns the first link of a shortest way between two routers: the device that sends, and the one that receives.
    fn neighbour(&self, from: &str, to: &str) -> Option<(&Device, &Device)> {
        let mut links: HashMap<&str, Vec<(&Device, &Device)>> = HashMap::new();
        for ports in self.topology.links.values() {
            for a in ports.inputs.iter().filter_map(|p| self.topology.device_of(p)) {
                let ends = ports.outputs.iter().filter_map(|p| self.topology.device_of(p));
                links
                    .entry(a.router.as_str())
                    .or_default()
                    .extend(ends.filter(|b| b.router != a.router).map(|b| (a, b)));
            }
        }
        let mut first: HashMap<&str, (&Device, &Device)> = HashMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(router) = open.pop_front() {
            for &(a, b) in links.get(router).map_or(&[][..], Vec::as_slice) {
                let next = b.router.as_str();
                if next != from && !first.contains_key(next) {
                    let step = first.get(router).copied().unwrap_or((a, b));
                    first.insert(next, step);
                    open.push_back(next);
                }
            }
        }
        first.get(to).copied()
    }

    fn mismatch(&self, m: &Mismatch) -> Diagnostic {
        let (router, device) = self.hops.place(&m.arrival);
        let element = self.graph.element(m.element);
        let declaration = self.graph.declaration(m.element);
        let format = |at: i32| match at {
            0 => "an IP header".to_string(),
            ETHERNET => "an Ethernet header".into(),
            n => format!("{n} bytes before the IP header"),
        };
        let sender = self.topology.links.get(&m.arrival.at.element).map(|l| {
            let all = l.inputs.iter().map(|p| format!("{}.{}", p.router, name_of(p)));
            all.collect::<Vec<_>>().join(" or ")
        });
        let arrives = format(m.arrival.ip_at);
        let class = element.map_or("", |x| x.class.as_str());
        let wants = match class {
            "Strip" => "strips more than stands before the IP header",
            "IPInputCombo" => "expects an Ethernet header",
            "ARPQuerier" => "expects an IP header, and puts an Ethernet header before it",
            _ => "expects an IP header at another place",
        };
        let source = sender.as_ref().map_or_else(String::new, |s| format!(" from {s}"));
        let d = Diagnostic::error(
            format!("router {router} cannot read the frames{source} at {device}: '{declaration}' {wants}"),
            element.map(|x| x.span),
        );
        let d = d.at(format!("here packets start with {}", format(m.ip_at)));
        let d = d.note(format!("frames{source} start with {arrives}"), None);
        d.help(match (m.arrival.ip_at, sender.is_some()) {
            (0, true) => format!("put an Ethernet header before the packets (ARPQuerier or EtherEncap) in the router that sends them, or remove the Ethernet part of {router}.{device}"),
            (_, true) => format!("remove the Ethernet header in {router} (Strip(14)), or send IP packets without one"),
            _ => "let the element expect the header where it is".into(),
        })
    }
}

fn router_of_device(name: &str) -> String {
    name.split_once('.').map_or(name, |n| n.0).to_string()
}

/// Returns a path as text. The middle of a long one is left out.
fn shortened(path: &[String]) -> String {
    const ENDS: usize = 6;
    match path.len().checked_sub(2 * ENDS) {
        Some(left_out) if left_out > 1 => {
            let (head, tail) =
                (path.get(..ENDS).unwrap_or_default(), path.get(path.len() - ENDS..).unwrap_or_default());
            format!("{} -> ... ({left_out} more) -> {}", head.join(" -> "), tail.join(" -> "))
        }
        _ => path.join(" -> "),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches a network for forwarding loops and black holes, one class of destinations after the other.

use super::hops::{Arrival, Hop, Hops, Lost};
use super::tables::{Known, addresses_in};
use super::walk::Used;
use crate::host::Host;
use crate::topology::Topology;
use castanet_graph::Graph;
use castanet_spec::{ArgCx, Origin, Prefix};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// One step of a path: the arrival at a device, and the route by which the router sends the packet on.
pub type PathStep = (Arrival, Used);

/// A forwarding loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The steps of the loop.
    pub steps: Vec<PathStep>,
    /// A destination whose packets go round.
    pub dst: u32,
}

/// A black hole: packets from a host to another one that are lost.
#[derive(Clone, Debug)]
pub struct Hole {
    /// The host that sends, by index.
    pub from: usize,
    /// The host that should receive, by index.
    pub to: usize,
    /// The devices at which the packet arrives on the way.
    pub path: Vec<PathStep>,
    /// How it is lost. `None` if it leaves the network at another device, by index in the topology.
    pub lost: Result<Lost, usize>,
    /// The route that led there.
    pub route: Used,
}

/// An element that gets packets whose headers it does not expect.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The arrival at the router.
    pub arrival: Arrival,
    /// The element.
    pub element: usize,
    /// Where the IP header starts in the packet that reaches it.
    pub ip_at: i32,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The loops, one for each set of devices and routes.
    pub loops: Vec<Loop>,
    /// The black holes, one for each way to be lost and each destination.
    pub holes: Vec<Hole>,
    /// For each black hole, how many hosts it concerns.
    pub hosts: Vec<usize>,
    /// The mismatches, one for each element.
    pub mismatches: Vec<Mismatch>,
    /// How many classes of destinations there are.
    pub classes: usize,
}

/// Returns one destination of each class. Two destinations are in the same class if no route, no filter and no address
/// of a device distinguishes them (header space analysis, NSDI 2012, restricted to destinations). Only addresses that
/// hosts may have are returned.
pub fn classes(graph: &Graph, topology: &Topology, known: &[Known], hosts: &[Host]) -> Vec<u32> {
    let mut bounds: BTreeSet<u64> = BTreeSet::from([0]);
    let mut add = |p: Prefix| {
        let start = u64::from(p.network().to_bits());
        bounds.extend([start, start + (1u64 << (32 - u32::from(p.len.min(32))))]);
    };
    for (e, known) in known.iter().enumerate() {
        match (known, graph.element(e)) {
            (Known::Table(t), _) => t.routes.iter().for_each(|r| add(r.prefix)),
            (Known::Classifier(_), Some(x)) => {
                let cx = ArgCx { scope: x.scope(), names: &topology.names, origin: Origin::Operator };
                addresses_in(&x.config, &cx).into_iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    for p in topology.devices.iter().filter_map(|d| d.prefix).chain(hosts.iter().filter_map(|h| h.prefix)) {
        add(Prefix { addr: p.addr, len: 32 });
        add(Prefix { addr: p.network(), len: p.len });
        // The network address itself is no host.
        add(Prefix { addr: p.network(), len: 32 });
    }
    let networks: HashSet<u32> = topology
        .devices
        .iter()
        .filter_map(|d| d.prefix)
        .filter(|p| p.len < 31)
        .map(|p| p.network().to_bits())
        .collect();
    let is_host = |a: &u32| !matches!(a >> 24, 0 | 127 | 224..) && !networks.contains(a);
    bounds.into_iter().filter_map(|a| u32::try_from(a).ok()).filter(is_host).collect()
}

/// Searches the network.
pub fn search(
    graph: &Graph,
    topology: &Topology,
    known: &[Known],
    hosts: &[Host],
    hops: &mut Hops<'_>,
) -> Found {
    let mut found = Found::default();
    let mut seen_loops = HashSet::new();
    let mut mismatches: BTreeMap<usize, Mismatch> = BTreeMap::new();
    let destinations = classes(graph, topology, known, hosts);
    found.classes = destinations.len();
    let entries: Vec<usize> = (0..topology.devices.len())
        .filter(|&n| topology.devices.get(n).is_some_and(|d| !d.receivers.is_empty()))
        .collect();
    for dst in destinations {
        let mut done = HashSet::new();
        for &device in &entries {
            let Some(start) = hops.entry(device, dst) else { continue };
            for steps in cycles(start, hops, &mut done, &mut mismatches) {
                let mut key: Vec<_> = steps.iter().map(|(a, route)| (a.at, *route)).collect();
                key.sort();
                if seen_loops.insert(key) {
                    found.loops.push(Loop { steps, dst });
                }
            }
        }
    }
    let mut groups: HashMap<(usize, Result<Lost, usize>, Used), usize> = HashMap::new();
    for (to, host) in hosts.iter().enumerate() {
        let Some(dst) = host.prefix.map(|p| p.addr.to_bits()) else { continue };
        for (from, sender) in hosts.iter().enumerate().filter(|&(from, h)| from != to && h.prefix.is_some()) {
            let Some(start) = hops.entry(sender.device, dst) else { continue };
            let Some(mut hole) = hole(start, host.device, hops) else { continue };
            (hole.from, hole.to) = (from, to);
            match groups.get(&(to, hole.lost.clone(), hole.route)) {
                Some(&n) => {
                    if let Some(hosts) = found.hosts.get_mut(n) {
                        *hosts += 1;
                    }
                }
                None => {
                    groups.insert((to, hole.lost.clone(), hole.route), found.holes.len());
                    found.holes.push(hole);
                    found.hosts.push(1);
                }
            }
        }
    }
    found.mismatches = mismatches.into_values().collect();
    found
}

/// Returns the cycles that packets from a device can enter. `done` has the arrivals from which all has been searched.
fn cycles(
    start: Arrival,
    hops: &mut Hops<'_>,
    done: &mut HashSet<Arrival>,
    mismatches: &mut BTreeMap<usize, Mismatch>,
) -> Vec<Vec<PathStep>> {
    let mut found = Vec::new();
    // The path: each arrival, the route it leaves by, and the hops that remain to be searched.
    let mut path: Vec<(Arrival, Used, usize)> = Vec::new();
    let mut on_path: HashMap<Arrival, usize> = HashMap::new();
    let enter = |a: Arrival, path: &mut Vec<_>, on_path: &mut HashMap<_, _>, done: &HashSet<_>| {
        if !done.contains(&a) {
            on_path.insert(a, path.len());
            path.push((a, None, 0));
        }
    };
    enter(start, &mut path, &mut on_path, done);
    while let Some(top) = path.last_mut() {
        let (arrival, n) = (top.0, top.2);
        top.2 += 1;
        match hops.next(arrival).get(n) {
            Some(Hop::Next(next, route)) => {
                top.1 = *route;
                match on_path.get(next) {
                    Some(&from) => {
                        let steps = path.get(from..).unwrap_or_default();
                        found.push(steps.iter().map(|s| (s.0, s.1)).collect());
                    }
                    None => enter(*next, &mut path, &mut on_path, done),
                }
            }
            Some(Hop::Mismatch(element, ip_at)) => {
                mismatches.entry(*element).or_insert(Mismatch { arrival, element: *element, ip_at: *ip_at });
            }
            Some(_) => {}
            None => {
                done.insert(arrival);
                on_path.remove(&arrival);
                path.pop();
            }
        }
    }
    found
}

/// Returns how packets are lost, if none of them reaches the device. None also if something is not known.
fn hole(start: Arrival, device: usize, hops: &mut Hops<'_>) -> Option<Hole> {
    let mut first: Option<Hole> = None;
    let mut seen = HashSet::from([start]);
    let mut open = vec![vec![(start, None)]];
    while let Some(path) = open.pop() {
        let &(arrival, _) = path.last()?;
        for hop in hops.next(arrival).iter() {
            let (lost, route) = match hop {
                Hop::Out(at, ..) if *at == device => return None,
                // Mismatches and loops are reported as such.
                Hop::Local | Hop::Unknown | Hop::Mismatch(..) => return None,
                Hop::Next(next, route) => {
                    if path.iter().any(|s| s.0 == *next) {
                        return None;
                    }
                    if seen.insert(*next) {
                        let mut path = path.clone();
                        if let Some(last) = path.last_mut() {
                            last.1 = *route;
                        }
                        path.push((*next, None));
                        open.push(path);
                    }
                    continue;
                }
                Hop::Out(at, _, route) => (Err(*at), *route),
                Hop::Lost(lost, route) => (Ok(lost.clone()), *route),
            };
            // The loss after the longest path tells most: on others, filters drop packets that nobody sends.
            let longest = first.as_ref().map_or(0, |h| h.path.len() + usize::from(h.route.is_some()));
            if path.len() + usize::from(route.is_some()) > longest {
                first = Some(Hole { from: 0, to: 0, path: path.clone(), lost, route });
            }
        }
    }
    first
}

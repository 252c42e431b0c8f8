// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a network, their addresses, and the links between them.

use crate::NetError;
use castanet_element::Classes;
use castanet_graph::Graph;
use castanet_graph::network::router_link::device;
use castanet_graph::network::uncombine::{LinkPorts, links};
use castanet_graph::network::{Port, ROUTER_LINK, split_name};
use castanet_lang::args::{cleaned, split, unquote, words};
use castanet_lang::{Element, PortRef};
use castanet_spec::{ArgCx, ArgValue, Names, Origin, Prefix};
use castanet_wire::ether::EtherAddr;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The largest number of elements that are searched for the ARPQuerier of a device.
const SEARCHED: usize = 200;

/// A device of a router.
#[derive(Clone, Debug)]
pub struct Device {
    /// The router.
    pub router: String,
    /// The name of the device in its router.
    pub name: String,
    /// The scope in which the configuration defines addresses for the device, such as `A/`.
    pub scope: String,
    /// Its Ethernet address.
    pub ether: EtherAddr,
    /// Whether the configuration defines the Ethernet address for the name of the device.
    pub has_ether: bool,
    /// Its IPv4 address and network, if known.
    pub prefix: Option<Prefix>,
    /// The elements that receive from the device, unless links have replaced them.
    pub receivers: Vec<usize>,
    /// The elements that send through the device, unless links have replaced them.
    pub senders: Vec<usize>,
    /// Whether a link leads to or from the device.
    pub linked: bool,
    /// Whether it is a device. Links may also begin and end at other elements, whose names then stand for a device.
    pub is_device: bool,
}

impl Device {
    /// The device as users write it: `A.eth0`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.router, self.name)
    }
}

/// Returns the name of the device that a port of a `RouterLink` stands for, or that of the element if it uses no device.
pub fn name_of(port: &Port) -> String {
    if is_device(port) { port.device() } else { port.element.clone() }
}

fn is_device(port: &Port) -> bool {
    matches!(port.class.as_str(), "ToDevice" | "FromDevice" | "PollDevice") && !port.device().is_empty()
}

/// The devices and links of a combined configuration.
pub struct Topology {
    /// All devices, in the order of the configuration.
    pub devices: Vec<Device>,
    /// The ports of each `RouterLink`, by element.
    pub links: BTreeMap<usize, LinkPorts>,
    /// The names that the configuration defines.
    pub names: Names,
    index: HashMap<(String, String), usize>,
}

impl Topology {
    /// Finds the devices and links of a combined configuration.
    ///
    /// # Errors
    /// A `RouterLink` cannot be read.
    pub fn new(graph: &Graph, classes: &dyn Classes) -> Result<Topology, NetError> {
        let links = links(&graph.flat).map_err(|e| NetError(e.to_string()))?;
        let mut t = Topology {
            devices: Vec::new(),
            links: links.into_iter().collect(),
            names: names(graph, classes),
            index: HashMap::new(),
        };
        let defined = defined_names(graph);
        for (e, element) in graph.flat.elements.iter().enumerate() {
            let Some((router, own)) = split_name(&element.name) else { continue };
            let class = graph.spec(e).map_or("", |s| s.name);
            let sends = class == "ToDevice";
            if let Some(name) = device(&element.config).filter(|_| sends || class == "FromDevice") {
                let d = t.add(&defined, router, own, &name);
                let Some(d) = t.devices.get_mut(d) else { continue };
                d.is_device = true;
                if sends { &mut d.senders } else { &mut d.receivers }.push(e);
            }
        }
        let ports: Vec<Port> =
            t.links.values().flat_map(|l| l.inputs.iter().chain(&l.outputs)).cloned().collect();
        for p in ports {
            let d = t.add(&defined, &p.router, &p.element, &name_of(&p));
            if let Some(d) = t.devices.get_mut(d) {
                d.linked = true;
                d.is_device |= is_device(&p);
            }
        }
        t.find_addresses(graph);
        Ok(t)
    }

    /// Returns the device of a router, by name.
    pub fn find(&self, router: &str, name: &str) -> Option<usize> {
        self.index.get(&(router.to_string(), name.to_string())).copied()
    }
    /// Returns the device that a port of a `RouterLink` stands for.
    pub fn device_of(&self, port: &Port) -> Option<&Device> {
        self.find(&port.router, &name_of(port)).and_then(|d| self.devices.get(d))
    }

    /// Adds a device that an element of a router uses, unless it is known.
    fn add(&mut self, defined: &HashSet<(String, String)>, router: &str, element: &str, name: &str) -> usize {
        let key = (router.to_string(), name.to_string());
        if let Some(&d) = self.index.get(&key) {
            return d;
        }
        // Addresses are defined in the innermost scope around the element that defines the name, or in the router.
        let own = format!("{router}/{element}");
        let scopes = own.match_indices('/').rev().filter_map(|(i, _)| own.get(..=i));
        let scope = scopes
            .into_iter()
            .find(|s| defined.contains(&((*s).to_string(), name.to_string())))
            .map(String::from);
        self.devices.push(Device {
            router: key.0.clone(),
            name: key.1.clone(),
            scope: scope.unwrap_or_else(|| format!("{router}/")),
            ether: EtherAddr([0; 6]),
            has_ether: false,
            prefix: None,
            receivers: Vec::new(),
            senders: Vec::new(),
            linked: false,
            is_device: false,
        });
        self.index.insert(key, self.devices.len() - 1);
        self.devices.len() - 1
    }

    /// Finds the addresses of all devices: those of their names, or those of the ARPQuerier in front of them. Devices
    /// without an Ethernet address get one.
    fn find_addresses(&mut self, graph: &Graph) {
        let mut inputs: HashMap<usize, PortRef> = HashMap::new();
        for (n, d) in self.devices.iter().enumerate() {
            if let Some(&element) = d.senders.first() {
                inputs.insert(n, PortRef { element, port: 0 });
            }
        }
        for (&element, ports) in &self.links {
            for (port, p) in ports.inputs.iter().enumerate() {
                inputs.extend(self.find(&p.router, &name_of(p)).map(|d| (d, PortRef { element, port })));
            }
        }
        for n in 0..self.devices.len() {
            let Some(d) = self.devices.get(n) else { continue };
            let named = self.names.addresses(&d.scope, &d.name).unwrap_or_default();
            let querier = inputs.get(&n).and_then(|&input| querier(graph, input, &self.names));
            let net = named.net.and_then(|(ip, mask)| prefix(named.ip.unwrap_or(ip), mask));
            let prefix = net.or(querier.and_then(|q| q.0));
            let made = EtherAddr([2, 0, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8]);
            let known = named.ether.map(EtherAddr);
            if let Some(d) = self.devices.get_mut(n) {
                d.prefix = prefix;
                d.has_ether = known.is_some();
                d.ether = known.or(querier.and_then(|q| q.1)).unwrap_or(made);
            }
        }
    }
}

fn prefix(ip: [u8; 4], mask: [u8; 4]) -> Option<Prefix> {
    let len = u8::try_from(u32::from_be_bytes(mask).leading_ones()).ok()?;
    Some(Prefix { addr: ip.into(), len })
}

/// Returns the names that information elements define.
fn names(graph: &Graph, classes: &dyn Classes) -> Names {
    let mut names = Names::new();
    for (e, element) in graph.flat.elements.iter().enumerate() {
        names.define_element(&element.name, e, graph.spec(e).map_or("", |s| s.name));
    }
    for element in &graph.flat.elements {
        // Errors in these elements are reported when the network is built.
        if let Some(inform) = classes.get(&element.class).and_then(|d| d.inform) {
            let _ = inform(&element.config, element.scope(), &mut names);
        }
    }
    names
}

/// Returns the scope and the name of each definition of addresses.
fn defined_names(graph: &Graph) -> HashSet<(String, String)> {
    let infos = graph.flat.elements.iter().filter(|e| e.class == "AddressInfo");
    infos
        .flat_map(|e| {
            arguments(&e.config).into_iter().filter_map(|a| {
                let first = words(&a).into_iter().next()?;
                Some((e.scope().to_string(), unquote(a.get(first)?)))
            })
        })
        .collect()
}

/// Returns the arguments of a configuration string.
pub fn arguments(config: &str) -> Vec<String> {
    split(config).into_iter().map(|r| cleaned(config, r).into_owned()).collect()
}

/// Searches upstream of an input for the nearest ARPQuerier. Returns its IP address and network, and its Ethernet
/// address.
fn querier(graph: &Graph, input: PortRef, names: &Names) -> Option<(Option<Prefix>, Option<EtherAddr>)> {
    let mut seen = HashSet::new();
    let mut open: std::collections::VecDeque<PortRef> = graph.upstream(input).iter().copied().collect();
    while let Some(output) = open.pop_front().filter(|_| seen.len() < SEARCHED) {
        let e = output.element;
        // Behind a link begins another router.
        if !seen.insert(e) || graph.element(e).is_none_or(|x| x.class == ROUTER_LINK) {
            continue;
        }
        if graph.spec(e).is_some_and(|s| s.name == "ARPQuerier")
            && let Some(element) = graph.element(e)
        {
            return Some(addresses_of_querier(element, names));
        }
        let through = (0..graph.inputs(e)).filter(|&i| graph.flows(e, i, output.port));
        open.extend(through.flat_map(|port| graph.upstream(PortRef { element: e, port })).copied());
    }
    None
}

fn addresses_of_querier(e: &Element, names: &Names) -> (Option<Prefix>, Option<EtherAddr>) {
    let cx = ArgCx { scope: e.scope(), names, origin: Origin::Operator };
    let all = arguments(&e.config);
    let prefix = all.first().and_then(|a| Prefix::read(a, &cx, true).ok());
    let ether = all.get(1).or(all.first()).and_then(|a| EtherAddr::parse(a, &cx).ok());
    (prefix.filter(|p| p.len < 32), ether)
}

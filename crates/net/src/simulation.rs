// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a whole network in simulated time: links carry frames, and hosts stand at free devices.

use crate::host::{Host, Ping, host_named, hosts};
use crate::options::Options;
use crate::topology::{Device, Topology};
use crate::traffic::{PingPlan, pings};
use crate::{NetClasses, NetError};
use castanet_graph::network::split_name;
use castanet_graph::{Graph, PortKind};
use castanet_lang::{Connection, Element, Flat, NoLibrary, PortRef, Sources, Span, Unknown, load_bytes};
use castanet_wire::ether::EtherAddr;
use std::collections::{HashMap, HashSet};

/// What becomes of elements that work with the machine outside of the router.
const OUTSIDE: &[(&str, Outside)] = &[
    ("ToHost", Outside::Becomes("Discard")),
    ("ToHostSniffers", Outside::Becomes("Discard")),
    ("FromHost", Outside::Becomes("Idle")),
    ("ControlSocket", Outside::Removed),
    ("ChatterSocket", Outside::Removed),
    ("DriverManager", Outside::Removed),
    ("KernelFilter", Outside::Removed),
    ("ProgressBar", Outside::Removed),
    ("KernelTap", Outside::Refused),
    ("KernelTun", Outside::Refused),
    ("Socket", Outside::Refused),
    ("RawSocket", Outside::Refused),
    ("McastSocket", Outside::Refused),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Becomes(&'static str),
    Removed,
    Refused,
}

/// A link of the simulated network.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The name of its NetLink.
    pub element: String,
    /// The devices that send.
    pub from: Vec<String>,
    /// The devices that receive.
    pub to: Vec<String>,
}

/// A network that is ready to run.
pub struct Simulation {
    /// The configuration, with the classes of [`NetClasses`].
    pub flat: Flat,
    /// The links between routers.
    pub wires: Vec<Wire>,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The pings.
    pub pings: Vec<PingPlan>,
    /// Warnings about what the simulation leaves out.
    pub notes: Vec<String>,
}

/// A configuration to which elements are added.
struct Growing(Flat);

impl Growing {
    fn add(&mut self, name: String, class: &str, config: String) -> usize {
        self.0.elements.push(Element {
            name,
            class: class.into(),
            config,
            span: Span::default(),
            config_span: Span::default(),
            config_map: Vec::new(),
            origin: Vec::new(),
        });
        self.0.elements.len() - 1
    }
    fn connect(&mut self, from: (usize, usize), to: (usize, usize)) {
        let port = |(element, port)| PortRef { element, port };
        self.0.connections.push(Connection { from: port(from), to: port(to), span: Span::default() });
    }
    /// Adds the elements of a text, with a prefix. Returns the index of each by its name in the text.
    fn add_text(&mut self, scope: &str, text: &str, classes: &NetClasses) -> HashMap<String, usize> {
        let options =
            castanet_lang::Options { classes, defines: &[], library: &NoLibrary, unknown: Unknown::Error };
        let (flat, _) = load_bytes(&mut Sources::new(), "host", text.as_bytes(), &options);
        let first = self.0.elements.len();
        let mut names = HashMap::new();
        for e in flat.elements {
            let index = self.add(format!("{scope}{}", e.name), &e.class, e.config);
            names.insert(e.name, index);
        }
        for c in flat.connections {
            self.connect((first + c.from.element, c.from.port), (first + c.to.element, c.to.port));
        }
        names
    }
    fn set(&mut self, e: usize, class: &str, config: String) {
        if let Some(element) = self.0.elements.get_mut(e) {
            element.class = class.into();
            element.config = config;
        }
    }
}

/// Returns the arguments of a NetLink between these devices. Without Ethernet headers, it gets no addresses.
fn net_link(devices: &[EtherAddr], ethernet: bool, latency: &str, bandwidth: &str) -> String {
    let mut out: String = devices.iter().filter(|_| ethernet).map(|d| format!("{d}, ")).collect();
    out.push_str(&format!("LATENCY {latency}, BANDWIDTH {bandwidth}"));
    out
}

impl Simulation {
    /// Makes the configuration of a network that is to run in simulated time. `has_ethernet` tells whether the frames on
    /// the link of this `RouterLink` have Ethernet headers.
    ///
    /// # Errors
    /// The options name hosts, links or devices that are not there, or an element works with the machine outside.
    pub fn new(
        graph: &Graph,
        topology: &Topology,
        classes: &NetClasses,
        options: &Options,
        has_ethernet: impl Fn(usize) -> bool,
    ) -> Result<Simulation, NetError> {
        let mut hosts = hosts(topology, options)?;
        let pings = pings(&hosts, options)?;
        for (name, file) in &options.captures {
            let host = host_named(name, &hosts).map_err(|e| NetError(format!("--pcap: {e}")))?;
            hosts.get_mut(host).into_iter().for_each(|h| h.captures.push(file.clone()));
        }
        let mut all = Growing(graph.flat.clone());
        all.0.archive.clear();
        let notes = replace_outside(graph, &mut all)?;
        let settings = Settings::new(graph, topology, options)?;
        let mut wires = Vec::new();
        for (&e, ports) in &topology.links {
            let name = graph.name(e).to_string();
            let ends = |ports: &[_]| -> Vec<&Device> {
                ports.iter().filter_map(|p| topology.device_of(p)).collect()
            };
            let (from, to) = (ends(&ports.inputs), ends(&ports.outputs));
            let ethers: Vec<EtherAddr> = from.iter().chain(&to).map(|d| d.ether).collect();
            let names = |all: &[&Device]| all.iter().map(|d| d.full_name()).collect::<Vec<_>>();
            let mut called = vec![name.clone()];
            called.extend(names(&from));
            let (latency, bandwidth) = settings.of(&called);
            all.set(e, "NetLink", net_link(&ethers, has_ethernet(e), latency, bandwidth));
            wires.push(Wire { element: name, from: names(&from), to: names(&to) });
        }
        insert_queues(graph, topology, &mut all);
        let at: HashMap<usize, &Host> = hosts.iter().map(|h| (h.device, h)).collect();
        let mut sent: HashMap<usize, Vec<Ping>> = HashMap::new();
        for p in &pings {
            let device = hosts.get(p.host).map_or(usize::MAX, |h| h.device);
            sent.entry(device).or_default().push((p.number, p.address));
        }
        for (n, d) in topology.devices.iter().enumerate() {
            let Some(host) = at.get(&n) else {
                // Frames from or to a device in one direction only: nobody is there.
                d.receivers.iter().for_each(|&e| all.set(e, "Idle", String::new()));
                d.senders.iter().for_each(|&e| all.set(e, "NetLink", "LATENCY 0".into()));
                continue;
            };
            let own = sent.get(&n).map_or(&[][..], Vec::as_slice);
            let text = host.configuration(own, options.count, options.interval);
            let elements = all.add_text(&host.scope, &text, classes);
            let (Some(&input), Some(&output)) = (elements.get("in"), elements.get("sent")) else { continue };
            let (latency, bandwidth) = settings.of(&[d.full_name()]);
            for &sender in &d.senders {
                all.set(sender, "NetLink", net_link(&[d.ether, host.ether], true, latency, bandwidth));
                all.connect((sender, 0), (input, 0));
            }
            for (n, &receiver) in d.receivers.iter().enumerate() {
                if n == 0 {
                    all.set(receiver, "NetLink", net_link(&[host.ether, d.ether], true, latency, bandwidth));
                    all.connect((output, 0), (receiver, 0));
                } else {
                    all.set(receiver, "Idle", String::new());
                }
            }
        }
        for d in topology.devices.iter().filter(|d| d.is_device && !d.has_ether) {
            all.add(
                format!(
                    "{}AddressInfo@net@{}",
                    d.scope,
                    d.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
                ),
                "AddressInfo",
                format!("{} {}", d.name, d.ether),
            );
        }
        let seconds = options.duration() as f64 / 1e9;
        all.add("net@stop".into(), "Script", format!("wait {seconds}s, stop"));
        Ok(Simulation { flat: all.0, wires, hosts, pings, notes })
    }
}

/// Replaces or removes the elements that work with the machine outside of the router. Returns what was left out.
fn replace_outside(graph: &Graph, all: &mut Growing) -> Result<Vec<String>, NetError> {
    let mut notes = Vec::new();
    let mut wrong = Vec::new();
    for e in 0..graph.len() {
        let class = graph.spec(e).map_or("", |s| s.name);
        let Some((_, what)) = OUTSIDE.iter().find(|o| o.0 == class) else { continue };
        let declaration = graph.declaration(e);
        match what {
            Outside::Becomes(class) => all.set(e, class, String::new()),
            // An element without ports that does nothing.
            Outside::Removed => {
                all.set(e, "ClickyInfo", String::new());
                notes.push(format!("'{declaration}' is left out of the simulation"));
            }
            Outside::Refused => wrong.push(format!(
                "'{declaration}' exchanges packets with the machine, which cannot be simulated"
            )),
        }
    }
    let ports = |e: usize| (graph.inputs(e), graph.outputs(e));
    for e in 0..graph.len() {
        let class = graph.spec(e).map_or("", |s| s.name);
        if split_name(graph.name(e)).is_some()
            && (class == "ToDevice" && ports(e).1 > 0 || class == "FromDevice" && ports(e).1 > 1)
        {
            wrong.push(format!(
                "'{}' has more than one connected port, which cannot be simulated",
                graph.declaration(e)
            ));
        }
    }
    if wrong.is_empty() { Ok(notes) } else { Err(NetError(wrong.join("\n"))) }
}

/// Puts a queue before each input of a link to which packets are pushed.
fn insert_queues(graph: &Graph, topology: &Topology, all: &mut Growing) {
    let pushed = |c: &Connection| {
        topology.links.contains_key(&c.to.element)
            && graph.output_kind(c.from.element, c.from.port) == PortKind::Push
    };
    let inputs: Vec<(usize, PortRef)> =
        all.0.connections.iter().enumerate().filter(|(_, c)| pushed(c)).map(|(i, c)| (i, c.to)).collect();
    let mut queues: HashMap<PortRef, usize> = HashMap::new();
    for (i, input) in inputs {
        let queue = *queues.entry(input).or_insert_with(|| {
            let name = format!("{}@queue{}", graph.name(input.element), input.port);
            let queue = all.add(name, "Queue", "1000".into());
            all.connect((queue, 0), (input.element, input.port));
            queue
        });
        if let Some(c) = all.0.connections.get_mut(i) {
            c.to = PortRef { element: queue, port: 0 };
        }
    }
}

/// The latency and bandwidth of links.
struct Settings<'a>(&'a Options);

impl<'a> Settings<'a> {
    fn new(graph: &Graph, topology: &Topology, options: &'a Options) -> Result<Settings<'a>, NetError> {
        let devices = topology.devices.iter().map(Device::full_name);
        let names: HashSet<String> =
            devices.chain(topology.links.keys().map(|&e| graph.name(e).to_string())).collect();
        for name in options.latency.iter().chain(&options.bandwidth).filter_map(|s| s.0.as_deref()) {
            if !names.contains(name) {
                return Err(NetError(format!(
                    "there is no link or device {name}; a device is written as in A.eth0"
                )));
            }
        }
        Ok(Settings(options))
    }
    /// Returns the latency and the bandwidth of a link that has these names.
    fn of(&self, names: &[String]) -> (&'a str, &'a str) {
        let get = |all: &'a [(Option<String>, String)], default: &'static str| {
            let own = |name: &Option<String>| name.as_ref().is_some_and(|n| names.contains(n));
            let last =
                all.iter().rev().find(|s| own(&s.0)).or_else(|| all.iter().rev().find(|s| s.0.is_none()));
            last.map_or(default, |s| s.1.as_str())
        };
        (get(&self.0.latency, "1ms"), get(&self.0.bandwidth, "1Gbps"))
    }
}

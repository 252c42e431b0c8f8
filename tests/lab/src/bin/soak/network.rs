// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network: hosts, links, and the routers between them.
//!
//! ```text
//! client - NAT gateway - firewall - IP router - switch = switch - server
//!                                       |                   |
//!                                    attacker             storm
//! ```
//!
//! The two switches are connected by two links, of which the spanning tree blocks one.

use crate::configurations;
use crate::control::Client;
use castanet_lab::{Host, Lab, Process};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout, longer than a router needs to start even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kind of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    /// The NAT gateway.
    Nat,
    /// The transparent firewall.
    Firewall,
    /// The IP router.
    Router,
    /// The switch that is the root of the spanning tree.
    RootSwitch,
    /// The switch that is not the root of the spanning tree.
    Switch,
}

impl RouterKind {
    /// All routers, from the client to the server.
    pub const ALL: [RouterKind; 5] = [
        RouterKind::Nat,
        RouterKind::Firewall,
        RouterKind::Router,
        RouterKind::RootSwitch,
        RouterKind::Switch,
    ];

    /// The name of the router in configurations and reports.
    pub fn name(self) -> &'static str {
        match self {
            RouterKind::Nat => "nat",
            RouterKind::Firewall => "firewall",
            RouterKind::Router => "router",
            RouterKind::RootSwitch => "switch1",
            RouterKind::Switch => "switch2",
        }
    }

    fn devices(self) -> &'static [&'static str] {
        match self {
            RouterKind::Nat => &["lan", "wan"],
            RouterKind::Firewall => &["inside", "outside"],
            RouterKind::Router => &["eth0", "eth1", "eth2"],
            RouterKind::RootSwitch => &["p0", "p1", "p2"],
            RouterKind::Switch => &["q0", "q1", "q2", "q3"],
        }
    }
}

/// Numbers of frames, from the kernel's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frames {
    /// The number of frames received from the link.
    pub received: u64,
    /// The number of frames sent to the link.
    pub sent: u64,
    /// The number of frames not sent, because the other end of the link did not accept them.
    pub refused: u64,
}

impl Frames {
    /// Adds other counters.
    pub fn add(&mut self, other: Frames) {
        self.received += other.received;
        self.sent += other.sent;
        self.refused += other.refused;
    }
}

/// A router, and the host that it runs on.
pub struct Node {
    /// The kind of the router.
    pub kind: RouterKind,
    /// The host that the router runs on.
    pub host: Host,
    /// The process of the router.
    pub process: Process,
    /// The file of the router's control socket.
    pub socket: PathBuf,
    /// The first configuration of the router.
    pub text: String,
    /// The counters of the router's devices that have been deleted.
    pub gone: Frames,
    /// The counters of the router's devices when it started.
    pub before: Frames,
    /// How often an end of one of the router's links was brought up.
    pub ups: Cell<u64>,
}

/// An end of a link: the index of a host, and the name of a device.
type End = (usize, &'static str);

/// The network.
pub struct Network {
    /// The clients' host.
    pub client: Host,
    /// The server's host.
    pub server: Host,
    /// A hostile host at the IP router.
    pub attacker: Host,
    /// A hostile host at a switch.
    pub storm: Host,
    /// The routers, in the order of [`RouterKind::ALL`].
    pub nodes: Vec<Node>,
    lab: Lab,
}

/// The links; their numbers count from 1. Hosts 0 to 4 are the routers in the order of [`RouterKind::ALL`], 5 to 8 are
/// client, server, attacker and storm.
const LINKS: [[End; 2]; 9] = [
    [(5, "eth0"), (0, "lan")],
    [(0, "wan"), (1, "inside")],
    [(1, "outside"), (2, "eth0")],
    [(2, "eth1"), (3, "p0")],
    [(3, "p1"), (4, "q1")],
    [(3, "p2"), (4, "q2")],
    [(4, "q0"), (6, "eth0")],
    [(7, "eth0"), (2, "eth2")],
    [(8, "eth0"), (4, "q3")],
];

/// The number of the link between NAT gateway and firewall.
pub const WAN: usize = 2;
/// The number of the link between firewall and router.
pub const OUTER: usize = 3;
/// The number of the preferred link between the switches.
pub const TRUNK: usize = 5;
/// The number of the attacker's link.
pub const ATTACK: usize = 8;

impl Network {
    /// Creates the hosts and links, and starts the routers with two workers each.
    ///
    /// # Errors
    /// This machine cannot run the network.
    ///
    /// # Panics
    /// A command failed.
    pub fn new(
        castanet: &'static Path,
        folder: &Path,
        preload: Option<(&Path, &Path)>,
    ) -> Result<Network, String> {
        let lab = Lab::alone()?;
        let host = |name: &str| lab.host(name);
        let routers: Vec<Host> = RouterKind::ALL.iter().map(|k| host(k.name())).collect();
        let [client, server, attacker, storm] = ["client", "server", "attacker", "storm"].map(host);
        let all: Vec<&Host> = routers.iter().chain([&client, &server, &attacker, &storm]).collect();
        for [a, b] in LINKS {
            lab.link((all[a.0], a.1), (all[b.0], b.1));
        }
        for host in [&client, &server, &attacker, &storm] {
            host.sysctl("net.ipv4.conf.all.accept_redirects", 0);
            host.sysctl("net.ipv4.conf.eth0.accept_redirects", 0);
            host.sysctl("net.ipv4.icmp_ratelimit", 0);
        }
        client.sysctl("net.ipv4.ip_local_port_range", "'10000 60999'");
        server.sysctl("net.core.somaxconn", 4096);
        server.sysctl("net.ipv4.tcp_max_syn_backlog", 8192);
        for last in 1..=crate::bytes::ADDRESSES {
            server.ip(&format!("addr add 198.51.100.{last}/32 dev lo"));
        }
        // The links between the switches stay down until both switches run, because a frame that arrives earlier would
        // not be read.
        for number in [TRUNK, TRUNK + 1] {
            for (host, device) in LINKS[number - 1] {
                all[host].ip(&format!("link set {device} down"));
            }
        }
        let nodes = RouterKind::ALL.iter().zip(&routers);
        let nodes = nodes.map(|(&kind, host)| Node::start(kind, host, castanet, folder, preload)).collect();
        let network = Network { client, server, attacker, storm, nodes, lab };
        for number in [TRUNK, TRUNK + 1] {
            network.set(number, "up");
        }
        network.address_hosts();
        Ok(network)
    }

    fn host(&self, index: usize) -> &Host {
        match index {
            5 => &self.client,
            6 => &self.server,
            7 => &self.attacker,
            8 => &self.storm,
            router => &self.nodes[router].host,
        }
    }

    /// Gives the hosts addresses, routes and permanent neighbours.
    fn address_hosts(&self) {
        for (host, address, gateway, ether) in [
            (&self.client, "10.0.0.2/24", "10.0.0.1", "02:00:00:00:01:02"),
            (&self.server, "203.0.113.2/24", "203.0.113.1", "02:00:00:00:04:01"),
            (&self.storm, "203.0.113.66/24", "203.0.113.1", "02:00:00:00:04:01"),
        ] {
            address_host(host, address, gateway, ether);
        }
        self.address_attacker();
    }

    /// Gives the attacker its address. Called again when the attacker's device is created again.
    pub fn address_attacker(&self) {
        address_host(&self.attacker, "10.66.0.2/24", "10.66.0.1", "02:00:00:00:08:02");
    }

    /// Sets both ends of a link up or down.
    pub fn set(&self, link: usize, state: &str) {
        self.set_end(link, 0, state);
        self.set_end(link, 1, state);
    }

    /// Sets one end of a link up or down.
    pub fn set_end(&self, link: usize, end: usize, state: &str) {
        let routers = LINKS[link - 1].iter().filter_map(|(host, _)| self.nodes.get(*host));
        routers.filter(|_| state == "up").for_each(|node| node.ups.set(node.ups.get() + 1));
        let (host, device) = LINKS[link - 1][end % 2];
        self.host(host).ip(&format!("link set {device} {state}"));
    }

    /// Deletes the devices of a link, and keeps their counters.
    pub fn delete(&mut self, link: usize) {
        self.set(link, "down");
        std::thread::sleep(Duration::from_millis(50));
        for (host, device) in LINKS[link - 1] {
            if let Some(node) = self.nodes.get_mut(host) {
                node.gone.add(node.counters(device));
            }
        }
        let (host, device) = LINKS[link - 1][0];
        self.host(host).ip(&format!("link delete {device}"));
    }

    /// Creates the devices of a link again. They are down.
    pub fn make_again(&self, link: usize) {
        let [a, b] = LINKS[link - 1].map(|(host, device)| (self.host(host), device));
        self.lab.link_down(link as u8, a, b);
    }

    /// Whether the routers at a link have opened the devices of the link since these were created again. The kernel
    /// would count frames that arrive earlier, but no router would read them.
    pub fn is_open(&self, link: usize) -> bool {
        LINKS[link - 1]
            .iter()
            .all(|(host, device)| self.nodes.get(*host).is_none_or(|node| node.has_open(device)))
    }

    /// The routers at a link.
    pub fn routers_at(&self, link: usize) -> impl Iterator<Item = RouterKind> {
        LINKS[link - 1].iter().filter_map(|(host, _)| self.nodes.get(*host)).map(|node| node.kind)
    }

    /// Sets all links down, so that no more frames arrive.
    pub fn quiesce(&self) {
        for link in 1..=LINKS.len() {
            self.set(link, "down");
        }
    }
}

fn address_host(host: &Host, address: &str, gateway: &str, ether: &str) {
    host.address("eth0", address);
    host.route("default", gateway);
    host.ip(&format!("neigh replace {gateway} lladdr {ether} nud permanent dev eth0"));
}

impl Node {
    fn start(
        kind: RouterKind,
        host: &Host,
        castanet: &'static Path,
        folder: &Path,
        preload: Option<(&Path, &Path)>,
    ) -> Node {
        let text = configurations::first(kind, host, castanet);
        let file = folder.join(format!("{}.click", kind.name()));
        std::fs::write(&file, &text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let socket = folder.join(format!("{}.sock", kind.name()));
        // Each router has its own small disk. The trace soon fills the disk of the router that writes it.
        let mut command = host.command("unshare");
        command.args(["-m", "sh", "-c"]);
        command.arg("mount -t tmpfs -o size=2m none /mnt && exec \"$0\" \"$@\"").arg(castanet);
        command.args(["run", "--json", "-R", "-j", "2", "-u"]).arg(&socket).arg(&file);
        command.args(["-h", "FromDevice.kernel_drops"]);
        if let Some((library, offset)) = preload {
            command.env("LD_PRELOAD", library).env("SOAK_CLOCK", offset);
        }
        let before = total(host, kind);
        let process = Process::start(command);
        let mut node = Node {
            kind,
            host: host.clone(),
            process,
            socket,
            text,
            gone: Frames::default(),
            ups: Cell::new(0),
            before,
        };
        node.wait();
        node
    }

    /// Waits until the router answers on its control socket.
    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while Client::once(&self.socket).and_then(|mut c| c.read("list")).is_err() {
            assert!(
                Instant::now() < deadline,
                "{} does not run:\n{}",
                self.kind.name(),
                self.process.stderr()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the router has a packet socket that receives from a device.
    fn has_open(&self, device: &str) -> bool {
        let text = self.host.ip(&format!("-j link show dev {device}"));
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let index = parsed.pointer("/0/ifindex").map(serde_json::Value::to_string).unwrap_or_default();
        let table = std::fs::read_to_string(format!("/proc/{}/net/packet", self.process.id()));
        // Columns: sk, RefCnt, Type, Proto, Iface; sockets that only send have protocol 0 (packet(7)).
        table.unwrap_or_default().lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(3) == Some(&"0003") && words.get(4) == Some(&index.as_str())
        })
    }

    /// The counters of a device.
    pub fn counters(&self, device: &str) -> Frames {
        counters(&self.host, device)
    }

    /// The numbers of frames of all the router's devices since the router started.
    pub fn frames(&self) -> Frames {
        let mut all = total(&self.host, self.kind);
        all.add(self.gone);
        Frames {
            received: all.received - self.before.received,
            sent: all.sent - self.before.sent,
            refused: all.refused - self.before.refused,
        }
    }

    /// The resident memory of the process, in KiB.
    pub fn memory(&self) -> Option<u64> {
        memory(self.process.id())
    }
}

/// How many descriptors a process has open.
pub fn descriptors(process: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count) as u64
}

/// The resident memory of a process, in KiB.
pub fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn counters(host: &Host, device: &str) -> Frames {
    Frames {
        received: host.statistic(device, "rx/packets"),
        sent: host.statistic(device, "tx/packets"),
        refused: host.statistic(device, "tx/dropped"),
    }
}

fn total(host: &Host, kind: RouterKind) -> Frames {
    let mut all = Frames::default();
    kind.devices().iter().for_each(|device| all.add(counters(host, device)));
    all
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks of IP routers for tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use castanet_classes::Registry;
use castanet_element::Clock;
use castanet_graph::Graph;
use castanet_graph::network::{Component, Order, combine};
use castanet_lang::{Flat, NoLibrary, Sources, Unknown, load_bytes, render};
use castanet_net::{NetClasses, NetError, Options, Report, Simulation, Topology, check};
use castanet_runtime::{Options as RunOptions, Router};
use std::sync::Arc;

/// A combined network.
pub struct Net {
    pub flat: Flat,
    pub sources: Sources,
    pub classes: Arc<NetClasses>,
}

/// A router: its name, its devices with addresses (`eth0 10.0.0.1/24`), and its further routes, in which output N leads
/// to the Nth device and output 0 to the router itself.
pub type Spec<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

/// Returns the configuration of an IP router.
pub fn ip_router(devices: &[&str], routes: &[&str]) -> String {
    let names: Vec<&str> = devices.iter().map(|d| d.split(' ').next().unwrap()).collect();
    let mut text = format!("AddressInfo({});\n", devices.join(", "));
    let mut table: Vec<String> = names.iter().map(|d| format!("{d}:ip 0")).collect();
    table.extend(names.iter().enumerate().map(|(i, d)| format!("{d}:net {}", i + 1)));
    table.extend(routes.iter().map(ToString::to_string));
    text += &format!(
        "ip :: Strip(14) -> CheckIPHeader -> routes :: StaticIPLookup(\n    {});\n\
         routes[0] -> ICMPPingResponder -> routes;\n",
        table.join(",\n    ")
    );
    for (i, dev) in names.iter().enumerate() {
        text += &format!(
            "FromDevice({dev}) -> HostEtherFilter({dev}:eth) -> kind{i} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);\n\
             kind{i}[0] -> ARPResponder({dev}:ip {dev}:eth) -> queue{i} :: Queue -> ToDevice({dev});\n\
             kind{i}[1] -> [1] arp{i} :: ARPQuerier({dev}:net, {dev}:eth) -> queue{i};\n\
             kind{i}[2] -> ip;\n\
             routes[{}] -> DropBroadcasts -> FixIPSrc({dev}:ip) -> ttl{i} :: DecIPTTL -> IPFragmenter(1500) -> [0] arp{i};\n\
             ttl{i}[1] -> ICMPError({dev}:ip, timeexceeded, transit) -> routes;\n",
            i + 1
        );
    }
    text
}

impl Net {
    pub fn new(routers: &[Spec<'_>], links: &[&str]) -> Net {
        let texts: Vec<(String, String)> =
            routers.iter().map(|(n, d, r)| (n.to_string(), ip_router(d, r))).collect();
        Net::of(&texts, links)
    }
    pub fn of(texts: &[(String, String)], links: &[&str]) -> Net {
        let registry = Registry::new();
        let mut sources = Sources::new();
        let mut components = Vec::new();
        for (name, text) in texts {
            let options = castanet_lang::Options {
                classes: &registry,
                defines: &[],
                library: &NoLibrary,
                unknown: Unknown::Error,
            };
            let (flat, diagnostics) = load_bytes(&mut sources, name, text.as_bytes(), &options);
            assert!(diagnostics.is_empty(), "{}", render::render_pretty(&sources, &diagnostics, false));
            components.push(Component { name: name.clone(), flat });
        }
        let links: Vec<_> = links.iter().map(|l| l.parse().unwrap()).collect();
        let flat = combine(components, &links, &registry, Order::Kept).unwrap();
        Net { flat, sources, classes: Arc::new(NetClasses::new(Arc::new(registry))) }
    }
    pub fn graph(&self) -> Graph {
        let (graph, wrong) = Graph::new(self.flat.clone(), self.classes.as_ref());
        assert!(wrong.is_empty(), "{}", render::render_pretty(&self.sources, &wrong, false));
        graph
    }
    pub fn try_simulation(&self, options: &Options) -> Result<Simulation, NetError> {
        let graph = self.graph();
        let topology = Topology::new(&graph, self.classes.as_ref()).unwrap();
        let raw = check(&graph, &topology, options)?.raw_links;
        Simulation::new(&graph, &topology, &self.classes, options, |e| !raw.contains(&e))
    }
    pub fn run(&self, options: &Options) -> Report {
        let simulation = self.try_simulation(options).unwrap();
        let (graph, wrong) = Graph::new(simulation.flat.clone(), self.classes.as_ref());
        assert!(wrong.is_empty(), "{}", render::render_pretty(&self.sources, &wrong, false));
        let run = RunOptions {
            clock: Clock::simulated(1_000_000_000_000_000_000),
            printer: Box::new(|_| {}),
            ..RunOptions::default()
        };
        let built = castanet_runtime::build(graph, self.classes.clone(), &self.sources, run);
        let (mut router, _): (Router, _) =
            built.unwrap_or_else(|d| panic!("{}", render::render_pretty(&self.sources, &d, false)));
        router.run().unwrap();
        Report::new(&simulation, &mut router, 0.0)
    }
}

/// Returns a ring of routers. Router N has the network 10.1.N.0/24 at eth0, and the others by the shorter way.
pub fn ring(n: usize) -> Net {
    let mut texts = Vec::new();
    let mut links = Vec::new();
    for r in 0..n {
        let left = (r + n - 1) % n;
        let own = format!("eth0 10.1.{r}.1/24");
        let right = format!("eth1 10.2.{r}.1/30");
        let back = format!("eth2 10.2.{left}.2/30");
        let others = (0..n).filter(|&o| o != r);
        let routes: Vec<String> = others
            .map(|o| {
                let ahead = (o + n - r) % n;
                if ahead <= n / 2 {
                    format!("10.1.{o}.0/24 10.2.{r}.2 2")
                } else {
                    format!("10.1.{o}.0/24 10.2.{left}.1 3")
                }
            })
            .collect();
        let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
        texts.push((format!("r{r}"), ip_router(&[&own, &right, &back], &routes)));
        links.push(format!("r{r}.eth1==r{}.eth2", (r + 1) % n));
    }
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    Net::of(&texts, &links)
}

/// Returns three routers on one wire. `gateway` gives the gateway to router 1, 2 or 3.
pub fn shared_wire(gateway: impl Fn(u8) -> String) -> Net {
    let routers = ["A", "B", "C"].map(|r| {
        let n = r.as_bytes()[0] - b'A' + 1;
        let devices = [format!("eth0 10.1.{n}.1/24"), format!("eth1 10.0.0.{n}/24")];
        let others = (1..4).filter(|&o| o != n);
        let routes: Vec<String> = others.map(|o| format!("10.1.{o}.0/24 {} 2", gateway(o))).collect();
        let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
        let routes: Vec<&str> = routes.iter().map(String::as_str).collect();
        (r.to_string(), ip_router(&devices, &routes))
    });
    Net::of(&routers, &["A.eth1==B.eth1", "B.eth1==C.eth1", "A.eth1==C.eth1"])
}

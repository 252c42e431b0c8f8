// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts at devices that no link reaches, as configurations.

use crate::NetError;
use crate::options::Options;
use crate::topology::{Device, Topology};
use castanet_spec::Prefix;
use castanet_wire::ether::EtherAddr;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// A host that is connected to a device of a router.
#[derive(Clone, Debug)]
pub struct Host {
    /// The device, by index in the topology.
    pub device: usize,
    /// The name of the host: that of the device, `A.eth0`.
    pub name: String,
    /// The prefix of the names of its elements, such as `A@eth0/`.
    pub scope: String,
    /// Its address and network. A host without an address only counts frames.
    pub prefix: Option<Prefix>,
    /// The router that it sends packets for other networks to.
    pub gateway: Option<Ipv4Addr>,
    /// Its Ethernet address.
    pub ether: EtherAddr,
    /// Captures that it sends.
    pub captures: Vec<String>,
}

/// A ping of a host: its number among all pings, from 1, and the address that is to answer.
pub type Ping = (u16, Ipv4Addr);

impl Host {
    /// Returns the configuration of the host. Frames from the link arrive at the element `in`, and are sent from the
    /// counter `sent`. Ping N is the element `pingN`; `expiredN` and `unreachableN` count the ICMP errors about its requests.
    pub fn configuration(&self, pings: &[Ping], count: u32, interval: u64) -> String {
        let mut out = String::from("out :: Queue(1000) -> sent :: Counter;\n");
        for (n, file) in self.captures.iter().enumerate() {
            let _ =
                writeln!(out, "capture{n} :: FromDump({}, true) -> out;", castanet_lang::args::quote(file));
        }
        let Some(prefix) = self.prefix else {
            return out + "in :: Counter -> Discard;\nIdle -> out;\n";
        };
        let (ip, ether) = (prefix.addr, self.ether);
        let network = format!("{}/{}", prefix.network(), prefix.len);
        let gateway = self.gateway.map_or(String::new(), |gw| format!(", 0.0.0.0/0 {gw} 0"));
        let numbers = || pings.iter().map(|p| p.0);
        // The identifier of an echo reply is at byte 24 of the packet, and that of the request in an ICMP error at byte 52.
        let answers: String = numbers().map(|n| format!("24/{n:04x}, ")).collect();
        let errors: String = numbers().map(|n| format!("20/0b 52/{n:04x}, 20/03 52/{n:04x}, ")).collect();
        let _ = write!(
            out,
            "in :: Counter -> HostEtherFilter({ether}) -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
kind[0] -> requests :: Tee -> ARPResponder({ip} {ether}) -> out;
arp :: ARPQuerier({ip}/{len}, {ether}) -> out; kind[1] -> [1] arp; requests[1] -> [1] arp;
route :: StaticIPLookup({network} 0{gateway}) -> [0] arp;
kind[2] -> Strip(14) -> CheckIPHeader -> mine :: IPClassifier(dst host {ip}, -) -> whole :: IPReassembler
    -> what :: IPClassifier(icmp type echo, icmp type echo-reply, icmp type unreachable or icmp type timeexceeded, -);
mine[1] -> strays :: Counter -> Discard;
what[0] -> ICMPPingResponder -> route;
what[1] -> answers :: Classifier({answers}-);
what[2] -> errors :: Classifier({errors}-);
what[3] -> delivered :: Counter -> Discard;
answers[{last}] -> Discard; errors[{twice}] -> Discard;
",
            len = prefix.len,
            last = pings.len(),
            twice = 2 * pings.len(),
        );
        for (i, (n, dst)) in pings.iter().enumerate() {
            let seconds = interval as f64 / 1e9;
            let _ = writeln!(
                out,
                "ping{n} :: ICMPPingSource({ip}, {dst}, LIMIT {count}, INTERVAL {seconds}, IDENTIFIER {n}, VERBOSE false) \
                 -> GetIPAddress(16) -> route; answers[{i}] -> ping{n};\n\
                 errors[{}] -> expired{n} :: Counter -> Discard; errors[{}] -> unreachable{n} :: Counter -> Discard;",
                2 * i,
                2 * i + 1
            );
        }
        out
    }
}

/// Makes the hosts at the free devices of a network. A device is free if no link leads to it. A host gets the lowest
/// address of the network that no router has.
///
/// # Errors
/// A given host is at no free device.
pub fn hosts(topology: &Topology, options: &Options) -> Result<Vec<Host>, NetError> {
    let taken: HashSet<Ipv4Addr> = topology.devices.iter().filter_map(|d| d.prefix).map(|p| p.addr).collect();
    let mut scopes: HashSet<String> = topology.devices.iter().map(|d| d.router.clone()).collect();
    let is_free = |d: &&Device| !d.linked && !d.senders.is_empty() && !d.receivers.is_empty();
    let mut hosts = Vec::new();
    let mut given: HashMap<&str, _> = options.hosts.iter().map(|h| (h.at.as_str(), h)).collect();
    for (n, d) in topology.devices.iter().enumerate().filter(|(_, d)| is_free(d)) {
        let name = d.full_name();
        let mut scope: String =
            d.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        scope = format!("{}@{scope}", d.router);
        while !scopes.insert(scope.clone()) {
            scope.push('_');
        }
        let option = given.remove(name.as_str());
        let prefix = match option {
            Some(h) => Some(h.prefix),
            None => d.prefix.and_then(|p| free_address(p, &taken)),
        };
        hosts.push(Host {
            device: n,
            name,
            scope: scope + "/",
            prefix,
            gateway: option.and_then(|h| h.gateway).or(d.prefix.map(|p| p.addr)),
            ether: EtherAddr([6, 0, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8]),
            captures: Vec::new(),
        });
    }
    if let Some(at) = given.keys().min() {
        return Err(NetError(format!("--host {at}: {}", no_host(at, &hosts))));
    }
    Ok(hosts)
}

fn no_host(name: &str, hosts: &[Host]) -> String {
    let all: Vec<&str> = hosts.iter().map(|h| h.name.as_str()).collect();
    if all.is_empty() {
        return format!("there is no host at {name}, because links lead to all devices");
    }
    format!("there is no host at {name}; hosts are at {}", all.join(", "))
}

/// Returns the lowest host address of a network that is not taken, with the length of the network's prefix.
fn free_address(p: Prefix, taken: &HashSet<Ipv4Addr>) -> Option<Prefix> {
    let network = p.network().to_bits();
    let size = 1u64 << (32 - u32::from(p.len.min(32)));
    // RFC 3021: both addresses of a /31 network are hosts.
    let range = if size <= 2 { 0..size } else { 1..size - 1 };
    let mut all =
        range.filter_map(|n| Some(Ipv4Addr::from_bits(network.checked_add(u32::try_from(n).ok()?)?)));
    all.find(|a| !taken.contains(a)).map(|addr| Prefix { addr, len: p.len })
}

/// Returns the host that a user means by `A.eth0`, or by `A` or `A.host` if router A has one host.
pub(crate) fn host_named(name: &str, hosts: &[Host]) -> Result<usize, String> {
    if let Some(i) = hosts.iter().position(|h| h.name == name) {
        return Ok(i);
    }
    let router = name.strip_suffix(".host").unwrap_or(name);
    let of = |h: &Host| h.name.split_once('.').is_some_and(|n| n.0 == router);
    let all: Vec<usize> = hosts.iter().enumerate().filter(|(_, h)| of(h)).map(|(i, _)| i).collect();
    match all.as_slice() {
        [one] => Ok(*one),
        [] => Err(no_host(name, hosts)),
        _ => {
            let names: Vec<&str> =
                all.iter().filter_map(|&i| hosts.get(i)).map(|h| h.name.as_str()).collect();
            Err(format!("router {router} has several hosts: {}; name one of them", names.join(", ")))
        }
    }
}

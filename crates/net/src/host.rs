// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts at devices that no link reaches, as configurations.

use castanet_spec::Prefix;
use castanet_wire::ether::EtherAddr;
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

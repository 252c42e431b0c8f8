// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new ip-router`: a router for given devices, addresses and routes.

use super::parts::{Interface, MTUS, Prefix, device};
use clap::Args;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Writes the configuration of an IP router between any number of devices.

It forwards IPv4 as RFC 1812 requires: it sends and answers ARP requests, checks headers, drops martians, fills in options, sends ICMP \
errors at a limited rate, fragments, and answers pings. The router is that of conf/ip-router.click, after Figure 8 of \"The Click \
Modular Router\".

The router owns the devices. The kernel must have no address on them and must not forward; otherwise it answers and forwards the same \
packets a second time. Alternatively, --shield hides the received frames from the kernel.

  ip addr flush dev eth0; ip link set eth0 up; sysctl net.ipv4.ip_forward=0";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet new ip-router eth0=10.0.0.1/24 eth1=10.0.1.1/24 > router.click && castanet run router.click
  castanet new ip-router lan=10.1.0.1/16 wan=192.0.2.2/30 --route 0.0.0.0/0=192.0.2.1
  castanet new ip-router eth0=10.0.0.1/24 eth1=10.0.1.1/24 --route 10.9.0.0/16=10.0.1.2 \
--route 10.9.7.0/24=unreachable --mtu 9000 --mtu eth1=1400
  castanet new ip-router lan=10.1.0.1/16 wan=192.0.2.2/30 --route 0.0.0.0/0=192.0.2.1 --check-sources --advertise
  castanet new ip-router eth0=10.0.0.1/24 eth1=10.0.1.1/24 -j 4 > router.click && castanet run -j 4 router.click";

/// The definition of an interface, as in conf/ip-router.click.
const INTERFACE: &str = include_str!("interface.click");
/// The replacements that --advertise makes in [`INTERFACE`]: the third string replaces the first, and the fourth
/// replaces the second. In the new text, the classifier has further outputs for IP packets to all routers (224.0.0.2)
/// and to all hosts (255.255.255.255). Behind these outputs, router solicitations (RFC 1256) are answered, and all
/// other packets are dropped.
const ARRIVALS: [&str; 4] = [
    "12/0800);",
    "    kind [2] -> Paint($color) -> output;\n",
    "12/0800 30/e0000002, 12/0800 30/ffffffff,\n                             12/0800);",
    "    kind [2] -> asked :: Strip(14) -> CheckIPHeader -> IPClassifier(icmp type routersolicit)\n        \
     -> ICMPRouterAdvertiser($dev:net) -> [0] arp;                        // RFC 1256\n    \
     kind [3] -> asked;\n    kind [4] -> Paint($color) -> output;\n",
];
/// Largest number of interfaces. Packets carry the number of their interface as paint. Paint is a byte, and 0 means
/// an unpainted packet.
const MOST: usize = 255;
/// The start of the first line in [`INTERFACE`] that does not belong to the receiving device. Further receiving devices
/// are inserted before this line.
const BEHIND_FIRST: &str = "    kind [0] -> ";
/// Default number of ICMP errors per second.
const ICMP_ERRORS: u32 = 1000;

/// Arguments of `castanet new ip-router`.
#[derive(Args)]
pub struct IpRouter {
    /// A device, and the router's address on it with the prefix length.
    #[arg(value_name = "DEVICE=ADDRESS/LENGTH", required = true)]
    interfaces: Vec<Interface>,
    /// A route to a network; GATEWAY is an address or the word `unreachable`. 0.0.0.0/0 is the default route.
    #[arg(short, long = "route", value_name = "NETWORK/LENGTH=GATEWAY")]
    routes: Vec<Route>,
    /// MTU in bytes, of DEVICE or, if no DEVICE is given, of all other devices; default: 1500.
    #[arg(short, long = "mtu", value_name = "[DEVICE=]BYTES")]
    mtus: Vec<Mtu>,
    /// Largest number of ICMP errors per second (RFC 1812, section 4.3.2.8).
    #[arg(long, value_name = "RATE", default_value_t = ICMP_ERRORS, value_parser = clap::value_parser!(u32).range(1..))]
    icmp_errors: u32,
    /// Drop packets whose source address is routed to another interface than the one they arrive on (RFC 1812,
    /// section 5.3.8).
    #[arg(long)]
    check_sources: bool,
    /// Packets with a source route: drop them, the default of RFC 7126 (section 4.3.5), or follow the route
    /// (RFC 1812, section 5.3.13.4).
    #[arg(long, value_name = "drop|follow", default_value = "drop", value_parser = ["drop", "follow"])]
    source_routes: String,
    /// Send router advertisements (RFC 1256) on all networks.
    #[arg(long)]
    advertise: bool,
    /// Hide the received frames from the kernel's own network stack. With this option, the kernel may have addresses on
    /// the devices, and may forward packets. The router also forwards more packets, because the kernel does not look up
    /// a route for each.
    #[arg(long)]
    shield: bool,
    /// Receive with N workers on each interface. The packets of a flow stay on one worker, and in order.
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
}

/// A network and its gateway; the gateway is `None` if the network is unreachable.
#[derive(Clone, Debug)]
struct Route {
    network: Prefix,
    gateway: Option<Ipv4Addr>,
}

impl FromStr for Route {
    type Err = String;
    fn from_str(text: &str) -> Result<Route, String> {
        let (network, gateway) =
            text.split_once('=').ok_or("expected NETWORK/LENGTH=GATEWAY, as in 10.9.0.0/16=10.0.1.2")?;
        let network: Prefix = network.parse()?;
        if network.address != network.network() {
            let right = Prefix { address: network.network(), ..network };
            return Err(format!("{network} has bits set beyond its prefix; did you mean {right}?"));
        }
        let gateway = match gateway {
            "unreachable" => None,
            address => Some(
                address
                    .parse()
                    .map_err(|_| format!("'{address}' is not an IPv4 address or 'unreachable'"))?,
            ),
        };
        Ok(Route { network, gateway })
    }
}

/// The MTU of one device, or of all devices without an MTU of their own.
#[derive(Clone, Debug)]
struct Mtu {
    device: Option<String>,
    bytes: u32,
}

impl FromStr for Mtu {
    type Err = String;
    fn from_str(text: &str) -> Result<Mtu, String> {
        let (name, bytes) = text.split_once('=').map_or((None, text), |(name, bytes)| (Some(name), bytes));
        let bytes = bytes.parse().ok().filter(|n| MTUS.contains(n));
        let bytes = bytes.ok_or_else(|| format!("expected {} to {} bytes", MTUS.start(), MTUS.end()))?;
        Ok(Mtu { device: name.map(device).transpose()?, bytes })
    }
}

impl IpRouter {
    /// Makes a router between devices with addresses as in `10.0.0.1/24`. With `shield` the kernel does not
    /// see the frames of these devices. All other settings have their defaults.
    pub fn between(interfaces: &[(&str, &str)], shield: bool) -> Result<IpRouter, String> {
        let one = |(device, address): &(&str, &str)| {
            Ok::<_, String>(Interface { device: (*device).to_string(), prefix: address.parse()? })
        };
        let interfaces = interfaces.iter().map(one).collect::<Result<_, _>>()?;
        Ok(IpRouter {
            interfaces,
            routes: Vec::new(),
            mtus: Vec::new(),
            icmp_errors: ICMP_ERRORS,
            check_sources: false,
            source_routes: "drop".into(),
            advertise: false,
            shield,
            workers: 1,
        })
    }

    /// Returns messages about contradictory arguments.
    fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.interfaces.len() > MOST {
            errors.push(format!("{} interfaces are more than {MOST}", self.interfaces.len()));
        }
        for (i, a) in self.interfaces.iter().enumerate() {
            for b in self.interfaces.iter().take(i) {
                if a.device == b.device {
                    errors.push(format!("the device {} is given twice", a.device));
                } else if a.prefix.overlaps(b.prefix) {
                    errors.push(format!(
                        "the networks of {}={} and {}={} overlap, so routes cannot distinguish them",
                        b.device, b.prefix, a.device, a.prefix
                    ));
                }
            }
        }
        for (i, route) in self.routes.iter().enumerate() {
            let network = route.network;
            if self.routes.iter().take(i).any(|r| r.network == network) {
                errors.push(format!("there are two routes to {network}"));
            }
            let own =
                |i: &&Interface| (i.prefix.network(), i.prefix.length) == (network.address, network.length);
            if let Some(own) = self.interfaces.iter().find(own) {
                errors.push(format!(
                    "the route to {network} is not needed: it is the network of {}",
                    own.device
                ));
            }
            let Some(gateway) = route.gateway else { continue };
            match self.interfaces.iter().find(|own| own.prefix.contains(gateway)) {
                None => errors.push(format!(
                    "the gateway {gateway} to {network} is not in a network of the router; a gateway must be a neighbour"
                )),
                Some(own) if own.prefix.address == gateway => {
                    errors.push(format!("the gateway {gateway} to {network} is the router itself"));
                }
                Some(own) if own.prefix.broadcast() == Some(gateway) => {
                    errors.push(format!("the gateway {gateway} to {network} is the broadcast address of {}", own.device));
                }
                Some(_) => {}
            }
        }
        for mtu in &self.mtus {
            if let Some(name) =
                mtu.device.as_ref().filter(|d| self.interfaces.iter().all(|i| i.device != **d))
            {
                errors.push(format!("--mtu {name}={}: there is no interface {name}", mtu.bytes));
            }
        }
        errors
    }

    fn mtu(&self, device: &str) -> u32 {
        let last = |name: Option<&str>| self.mtus.iter().rev().find(|m| m.device.as_deref() == name);
        last(Some(device)).or_else(|| last(None)).map_or(1500, |m| m.bytes)
    }

    /// Returns the elements that route packets. With --check-sources, packets pass two tables. The first table looks up
    /// the source: its route must lead to the interface on which the packet arrived. The paint of the packet is the
    /// number of this interface. The second table looks up the destination.
    fn routing(&self) -> String {
        let table = self.table().join(",\n        ");
        let routes = format!("routes :: StaticIPLookup(\n        {table});\n");
        if !self.check_sources {
            return routes;
        }
        let mut out = format!(
            "GetIPAddress(12) -> sources :: StaticIPLookup(\n        {table});\n\n\
             // CheckPaint drops packets whose source is routed to another interface: RFC 1812, 5.3.8.\n\
             right :: GetIPAddress(16) -> {routes}"
        );
        let n = self.interfaces.len();
        for port in 1..=n {
            let _ = writeln!(out, "sources [{port}] -> CheckPaint({port}) -> right;");
        }
        let _ = writeln!(
            out,
            "sources [0] -> wrong :: Discard; sources [{}] -> wrong; sources [{}] -> wrong;",
            n + 1,
            n + 2
        );
        out
    }

    /// Returns the definition of an interface.
    fn interface(&self) -> String {
        let [kinds, first, more_kinds, more] = ARRIVALS;
        let mut out = INTERFACE.to_string();
        if self.advertise {
            out = out.replacen(kinds, more_kinds, 1).replacen(first, more, 1);
        }
        let sniffer = if self.shield { ", SNIFFER false" } else { "" };
        if self.workers > 1 {
            let receive =
                |worker: u16| format!("from{worker} :: FromDevice($dev{sniffer}, FANOUT $color) -> ");
            out = out.replacen(
                "FromDevice($dev) -> HostEtherFilter($dev:eth)                    ",
                &format!("{}mine :: HostEtherFilter($dev:eth)", receive(0)),
                1,
            );
            let more: String = (1..self.workers).map(|w| format!("    {}mine;\n", receive(w))).collect();
            out = out.replacen(BEHIND_FIRST, &format!("{more}{BEHIND_FIRST}"), 1);
        } else {
            out = out.replacen("FromDevice($dev)", &format!("FromDevice($dev{sniffer})"), 1);
        }
        out
    }

    /// Returns the configuration, or all errors.
    pub fn configuration(&self) -> Result<String, Vec<String>> {
        let errors = self.errors();
        if errors.is_empty() { Ok(self.text()) } else { Err(errors) }
    }

    /// Returns the lines of the route table. Output 0 leads to the router itself. The outputs after it lead to
    /// the interfaces, and the last two to `nobody` and `unreachable`.
    fn table(&self) -> Vec<String> {
        let n = self.interfaces.len();
        let (nobody, unreachable) = (n + 1, n + 2);
        let own = |format: &dyn Fn(usize, &Interface) -> String| -> Vec<String> {
            self.interfaces.iter().enumerate().map(|(i, own)| format(i + 1, own)).collect()
        };
        let mut lines = vec![own(&|_, own| format!("{}:ip 0", own.device)).join(", ")];
        // A /32 network contains only the router's own address, so it needs no route.
        let networks = self.interfaces.iter().enumerate().filter(|(_, own)| own.prefix.length < 32);
        let networks: Vec<_> = networks.map(|(i, own)| format!("{}:net {}", own.device, i + 1)).collect();
        lines.extend((!networks.is_empty()).then(|| networks.join(", ")));
        for route in &self.routes {
            lines.push(match route.gateway {
                None => format!("{} {unreachable}", route.network),
                Some(gateway) => {
                    let port = self.interfaces.iter().position(|own| own.prefix.contains(gateway));
                    format!("{} {gateway} {}", route.network, port.map_or(unreachable, |i| i + 1))
                }
            });
        }
        let broadcasts = self.interfaces.iter().filter(|own| own.prefix.broadcast().is_some());
        let mut none: Vec<_> = broadcasts.map(|own| format!("{}:bcast {nobody}", own.device)).collect();
        let martians = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3"];
        none.extend(martians.map(|net| format!("{net} {nobody}")));
        lines.push(none.join(", "));
        if self.routes.iter().all(|r| r.network.length > 0) {
            lines.push(format!("0.0.0.0/0 {unreachable}"));
        }
        lines
    }

    fn text(&self) -> String {
        let n = self.interfaces.len();
        let (nobody, unreachable) = (n + 1, n + 2);
        let list = |suffix: &str, some: &dyn Fn(&Interface) -> bool| {
            let words = self.interfaces.iter().filter(|own| some(own));
            words.map(|own| format!(" {}{suffix}", own.device)).collect::<String>()
        };
        let first = self.interfaces.first().map_or("", |own| own.device.as_str());
        let mut out = String::from(
            "// An IP router that meets RFC 1812, after Figure 8 of TOCS 2000 (\"The Click Modular Router\").\n",
        );
        out.push_str(if self.shield {
            "// The kernel does not see the frames that the devices receive.\n//\n"
        } else {
            "// The kernel must have no address on the devices and must not forward; otherwise it handles each packet a second time:\n//\n"
        });
        for own in &self.interfaces {
            let _ = writeln!(
                out,
                "//     {1}ip link set {0} up mtu {2}{3}",
                own.device,
                if self.shield { String::new() } else { format!("ip addr flush dev {}; ", own.device) },
                self.mtu(&own.device),
                if self.advertise { " allmulticast on" } else { "" }
            );
        }
        if !self.shield {
            out.push_str("//     sysctl net.ipv4.ip_forward=0\n");
        }
        if self.workers > 1 {
            let _ = writeln!(
                out,
                "//\n// Run it with as many workers as receive: castanet run -j {} FILE",
                self.workers
            );
        }
        out.push_str(
            "\n// All addresses of the router. From here on the name of a device stands \
             for them, as in eth0:ip, eth0:net, eth0:bcast,\n// and for its own Ethernet address: eth0:eth.\nAddressInfo(",
        );
        let addresses: Vec<_> =
            self.interfaces.iter().map(|own| format!("{} {}", own.device, own.prefix)).collect();
        out.push_str(&addresses.join(",\n            "));
        let _ = writeln!(
            out,
            ");\ndefine($OURS{},\n       $HEARD 255.255.255.255{},\n       $ERRORS {}, $SOURCE_ROUTES {});\n",
            list("", &|_| true),
            list(":bcast", &|own| own.prefix.broadcast().is_some()),
            self.icmp_errors,
            self.source_routes
        );
        let _ = writeln!(out, "{}", self.interface());
        out.push_str(
            "ip :: Strip(14)\n    -> CheckIPHeader(INTERFACES $OURS)\n    -> martians :: IPFilter(deny src net 0.0.0.0/8 \
             or src net 127.0.0.0/8 or src net 224.0.0.0/3, allow all)\n    -> ",
        );
        out.push_str(&self.routing());
        out.push_str(
            "\nerrors :: Queue -> Unqueue(-1) -> RatedSplitter($ERRORS) -> SetIPDSCP(48) -> routes; \
             // RFC 1812, 4.3.2.8 and 4.3.2.5\n",
        );
        for (i, own) in self.interfaces.iter().enumerate() {
            let (port, device) = (i + 1, &own.device);
            let _ = writeln!(
                out,
                "routes [{port}] -> interface{port} :: Interface({device}, {port}, {}) -> ip; interface{port} [1] -> errors;",
                self.mtu(device)
            );
        }
        if self.workers > 1 {
            let home = |port, worker| format!("interface{port}/from{worker} {worker}");
            let homes: Vec<String> = (1..=n)
                .map(|port| (0..self.workers).map(|w| home(port, w)).collect::<Vec<_>>().join(", "))
                .collect();
            let _ = writeln!(out, "\nStaticThreadSched({});\n", homes.join(",\n                  "));
        }
        let _ = write!(
            out,
            "routes [{nobody}] -> nobody :: Discard;\n\
             routes [{unreachable}] -> ICMPError({first}:ip, unreachable, net, BADADDRS $HEARD) -> errors;\n\n\
             // Packets for the router itself: it answers pings, and all its ports are closed.\n\
             routes [0] -> Queue -> Unqueue(-1) -> named :: IPGWOptions({first}:ip, OTHERADDRS $OURS, SOURCE_ROUTE $SOURCE_ROUTES)\n    \
             -> ours :: StaticIPLookup({}, 0.0.0.0/0 1) -> whole :: IPReassembler -> ping :: ICMPPingResponder -> routes;\n\
             ours [1] -> routes;\n\
             named [1] -> ICMPError({first}:ip, parameterproblem, erroratptr, BADADDRS $HEARD) -> errors;\n\
             whole [1] -> ICMPError({first}:ip, timeexceeded, reassembly, BADADDRS $HEARD) -> errors;\n\
             ping [1] -> host :: IPClassifier(udp, icmp, -);\n\
             host [0] -> ICMPError({first}:ip, unreachable, port, BADADDRS $HEARD) -> errors;\n\
             host [1] -> nobody;\n\
             host [2] -> ICMPError({first}:ip, unreachable, protocol, BADADDRS $HEARD) -> errors;\n",
            self.table().first().map_or("", String::as_str)
        );
        out
    }
}

#[cfg(test)]
mod tests;

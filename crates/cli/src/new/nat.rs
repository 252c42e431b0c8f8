// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new nat`: a gateway that lets the hosts of a network share one address.

use super::parts::{Interface, MTUS};
use clap::Args;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Writes the configuration of a NAT gateway: the inner hosts share the gateway's one outer address.

It translates TCP, UDP, pings and ICMP errors about them (RFC 3022, RFC 5508), supports active FTP, and forwards ports to inner \
servers, which inner hosts can also reach by the outer address. Unsolicited packets from outside are dropped. The gateway is that of \
conf/nat-gateway.click, which docs/nat-gateway.md explains.

The gateway owns the devices. The kernel must have no address on them and must not forward; otherwise it answers and forwards the \
same packets a second time:

  ip addr flush dev eth0; ip link set eth0 up; sysctl net.ipv4.ip_forward=0";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet new nat eth0=10.0.0.1/24 eth1=192.0.2.2/24 --gateway 192.0.2.1 > nat.click && castanet run nat.click
  castanet new nat lan=10.1.0.1/16 wan=192.0.2.9/30 -g 192.0.2.10 --forward tcp:80=10.1.0.80 --forward udp:5353=10.1.0.53:53

With `castanet run -u FILE`, `castanet ctl FILE read rw.tcp_table` lists the TCP flows; `rw.udp_table` and `ping.table` list the others, \
and `rw.size` counts them.";

/// The template of the configuration, with placeholders between at signs.
const TEXT: &str = include_str!("nat.click");

/// Arguments of `castanet new nat`.
#[derive(Args)]
pub struct Nat {
    /// The inner device, and the gateway's address on it with the prefix length.
    #[arg(value_name = "INSIDE=ADDRESS/LENGTH")]
    inside: Interface,
    /// The outer device, and the address that all hosts share, with the prefix length.
    #[arg(value_name = "OUTSIDE=ADDRESS/LENGTH")]
    outside: Interface,
    /// The default router on the outer network.
    #[arg(short, long, value_name = "ADDRESS")]
    gateway: Ipv4Addr,
    /// Forward a port of the outer address to an inner server; the server's port defaults to the same number.
    #[arg(short, long = "forward", value_name = "tcp|udp:PORT=SERVER[:PORT]")]
    forwards: Vec<Forward>,
    /// MTU in bytes, on both sides.
    #[arg(short, long, value_name = "BYTES", default_value_t = 1500, value_parser = mtu)]
    mtu: u32,
    /// Largest number of ICMP errors per second (RFC 1812, section 4.3.2.8).
    #[arg(long, value_name = "RATE", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    icmp_errors: u32,
}

fn mtu(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok().filter(|n| MTUS.contains(n));
    bytes.ok_or_else(|| format!("expected {} to {} bytes", MTUS.start(), MTUS.end()))
}

/// A forwarded port.
#[derive(Clone, Debug)]
struct Forward {
    protocol: &'static str,
    port: u16,
    server: Ipv4Addr,
    server_port: u16,
}

fn port(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| format!("the port '{text}' is not a number from 1 to 65535"))
}

impl FromStr for Forward {
    type Err = String;
    fn from_str(text: &str) -> Result<Forward, String> {
        const SHAPE: &str =
            "expected PROTOCOL:PORT=SERVER or PROTOCOL:PORT=SERVER:PORT, as in tcp:80=10.0.0.80:8080";
        let (outside, inside) = text.split_once('=').ok_or(SHAPE)?;
        let (name, outer) = outside.split_once(':').ok_or(SHAPE)?;
        let protocol = match name {
            "tcp" => "tcp",
            "udp" => "udp",
            other => return Err(format!("cannot forward ports of '{other}'; expected tcp or udp")),
        };
        let (server, inner) = inside.split_once(':').unwrap_or((inside, outer));
        let server = server.parse().map_err(|_| format!("'{server}' is not an IPv4 address"))?;
        Ok(Forward { protocol, port: port(outer)?, server, server_port: port(inner)? })
    }
}

impl Nat {
    /// A gateway between two devices with these addresses, without forwarded ports.
    pub fn between(inside: (&str, &str), outside: (&str, &str), gateway: Ipv4Addr) -> Result<Nat, String> {
        let [inside, outside] = [inside, outside].map(|(device, address)| {
            Ok::<_, String>(Interface { device: device.into(), prefix: address.parse()? })
        });
        Ok(Nat {
            inside: inside?,
            outside: outside?,
            gateway,
            forwards: Vec::new(),
            mtu: 1500,
            icmp_errors: 1000,
        })
    }

    /// Returns messages about contradictory arguments.
    fn errors(&self) -> Vec<String> {
        let (inside, outside) = (&self.inside, &self.outside);
        let mut errors = Vec::new();
        if inside.device == outside.device {
            errors.push(format!("the device {} is given twice", inside.device));
        }
        if inside.prefix.overlaps(outside.prefix) {
            errors.push(format!(
                "the networks of {}={} and {}={} overlap, so inner and outer hosts cannot be distinguished",
                inside.device, inside.prefix, outside.device, outside.prefix
            ));
        }
        if inside.prefix.length == 32 {
            errors.push(format!("{} has no addresses for inner hosts", inside.prefix));
        }
        let near = |i: &Interface, a| i.prefix.contains(a) && i.prefix.broadcast() != Some(a);
        if !near(outside, self.gateway) {
            errors
                .push(format!("the gateway {} is not in the outer network {}", self.gateway, outside.prefix));
        } else if self.gateway == outside.prefix.address {
            errors.push(format!("the gateway {} is the address of this gateway itself", self.gateway));
        }
        for (i, f) in self.forwards.iter().enumerate() {
            if self.forwards.iter().take(i).any(|g| (g.protocol, g.port) == (f.protocol, f.port)) {
                errors.push(format!("{}:{} is forwarded twice", f.protocol, f.port));
            }
            if !near(inside, f.server) || f.server == inside.prefix.address {
                errors.push(format!(
                    "the server {} of {}:{} is not a host of the inner network {}",
                    f.server, f.protocol, f.port, inside.prefix
                ));
            }
        }
        errors
    }

    /// Returns the configuration, or all errors.
    pub fn configuration(&self) -> Result<String, Vec<String>> {
        let errors = self.errors();
        if errors.is_empty() { Ok(self.text()) } else { Err(errors) }
    }

    fn text(&self) -> String {
        let (inside, outside) = (&self.inside, &self.outside);
        let mut out = String::from(
            "// A NAT gateway (RFC 3022): the inner hosts share one outer address.\n\
             // The kernel must have no address on the devices and must not forward; otherwise it handles each packet a second time:\n//\n",
        );
        for own in [&inside.device, &outside.device] {
            let _ = writeln!(out, "//     ip addr flush dev {own}; ip link set {own} up mtu {}", self.mtu);
        }
        out.push_str("//     sysctl net.ipv4.ip_forward=0\n\n");
        let (mut services, mut patterns) = (String::new(), String::new());
        let (mut choices, mut forwarded) = (String::new(), String::new());
        for (i, f) in self.forwards.iter().enumerate() {
            let n = i + 1;
            let Forward { protocol, port, server, server_port } = f;
            let _ = write!(
                services,
                ",\n       $SERVICE{n} {protocol} dst port {port}, $SERVER{n} {server} {server_port}"
            );
            let _ = write!(patterns, ",\n    pattern - - $SERVER{n} 0 0");
            let _ = write!(choices, "$SERVICE{n}, ");
            let _ = writeln!(forwarded, "services [{i}] -> [{}] rw;", n + 1);
        }
        let _ = writeln!(forwarded, "services [{}] -> [1] rw;", self.forwards.len());
        let mut text = TEXT.to_string();
        for (name, own) in [("$LAN", inside), ("$WAN", outside)] {
            if own.prefix.broadcast().is_none() {
                text = text.replace(&format!(" {name}:bcast 3,"), "").replace(&format!(" {name}:bcast"), "");
            }
        }
        let words = [
            ("@LAN@", format!("{}, $LANIP {}", inside.device, inside.prefix)),
            ("@WAN@", format!("{}, $WANIP {}", outside.device, outside.prefix)),
            ("@GATEWAY@", self.gateway.to_string()),
            ("@MTU@", self.mtu.to_string()),
            ("@ERRORS@", self.icmp_errors.to_string()),
            ("@SERVICES@", services),
            ("@PATTERNS@", patterns),
            ("@CHOICES@", choices),
            ("@FORWARDED@", forwarded),
        ];
        out + &words.iter().fold(text, |text, (word, is)| text.replace(word, is))
    }
}

#[cfg(test)]
mod tests;

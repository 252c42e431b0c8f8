// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses names after qualifiers: addresses, networks, ports, protocols.

use super::literal::{dotted, dotted_whole, ether, number};
use super::{Parsed, Parser, Qualifiers, Type, protocol_number};
use crate::bpf::Frames;
use crate::bpf::code::Node;
use crate::bpf::lex::Token;
use crate::bpf::terms::{ARP, Direction, IP, IP6, RARP};
use crate::error::Fault;
use crate::names;
use std::net::Ipv6Addr;
use std::ops::Range;

impl<'a> Parser<'a> {
    /// Parses a name after qualifiers.
    pub(super) fn name(&mut self, q: Qualifiers<'a>) -> Parsed<Node> {
        let place = self.place();
        let Token::Word(w) = self.next() else { return Err(Fault::new(place, "a name is missing")) };
        self.last = q;
        let direction = q.direction.unwrap_or(Direction::Either);
        let wrong = |what: &str| {
            Fault::new(place.clone(), format!("'{w}' is not a valid {what}")).expected(what.to_string())
        };
        match q.kind.unwrap_or(Type::Host) {
            Type::Port | Type::PortRange => {
                let protocol = match q.protocol {
                    None => None,
                    Some(p @ ("tcp" | "udp" | "sctp")) => protocol_number(p),
                    Some(p) => return Err(Fault::new(place, format!("'{p}' has no ports"))),
                };
                let port = |w: &str| {
                    let n = number(w).and_then(|n| u16::try_from(n).ok());
                    n.or_else(|| self.names.port(w, protocol)).or_else(|| names::port_number(w))
                };
                let low = port(w).ok_or_else(|| wrong("port"))?;
                let high = if q.kind == Some(Type::PortRange) {
                    self.expect("-")?;
                    let place = self.place();
                    let Token::Word(w) = self.next() else {
                        return Err(Fault::new(place, "a port is missing"));
                    };
                    let n = number(w).and_then(|n| u16::try_from(n).ok());
                    let n = n.or_else(|| self.names.port(w, protocol)).or_else(|| names::port_number(w));
                    n.ok_or_else(|| Fault::new(place, format!("'{w}' is not a valid port")))?
                } else {
                    low
                };
                Ok(self.layout.ports(direction, protocol, low.min(high), low.max(high)))
            }
            Type::Protocol => self.protocol_name(q, w, place.clone()),
            kind => self.address(q, w, place.clone(), direction, kind == Type::Net),
        }
    }

    fn protocol_name(&mut self, q: Qualifiers<'a>, w: &str, place: Range<usize>) -> Parsed<Node> {
        let l = &self.layout;
        if q.protocol == Some("ether") {
            let known = match w {
                "ip" => Some(IP),
                "ip6" => Some(IP6),
                "arp" => Some(ARP),
                "rarp" => Some(RARP),
                w => number(w).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 1500),
            };
            let kind =
                known.ok_or_else(|| Fault::new(place, format!("'{w}' is not a valid Ethernet type")))?;
            return Ok(l.ether_type(kind));
        }
        let known = number(w).and_then(|n| u8::try_from(n).ok()).or_else(|| protocol_number(w));
        let n = known.or_else(|| names::ip_proto_number(w));
        let n = n.ok_or_else(|| Fault::new(place.clone(), format!("'{w}' is not a valid IP protocol")))?;
        match q.protocol {
            None => Ok(l.protocol(n)),
            Some("ip") => Ok(l.ip_protocol(n)),
            Some("ip6") => Ok(l.ip6_protocol(n)),
            Some(p) => Err(Fault::new(place, format!("'{p}' carries no IP protocols"))),
        }
    }

    fn address(
        &mut self,
        q: Qualifiers<'a>,
        w: &str,
        place: Range<usize>,
        direction: Direction,
        net: bool,
    ) -> Parsed<Node> {
        let unknown = |what: &str| Fault::new(place.clone(), format!("'{w}' is not a valid {what}"));
        if q.protocol == Some("ether") || q.protocol.is_none() && !net && ether(w).is_some() {
            if self.layout.frames == Frames::Ip {
                return Err(Fault::new(place, "packets of this device have no Ethernet header"));
            }
            let address =
                ether(w).or_else(|| self.names.ether(w)).ok_or_else(|| unknown("Ethernet address"))?;
            return Ok(self.layout.ether_address(direction, address));
        }
        let kinds: &[u16] = match q.protocol {
            None => &[IP, ARP, RARP],
            Some("ip") => &[IP],
            Some("arp") => &[ARP],
            Some("rarp") => &[RARP],
            Some("ip6") => &[],
            Some(p) => return Err(Fault::new(place, format!("'{p}' has no addresses"))),
        };
        if let Ok(a) = w.parse::<Ipv6Addr>() {
            if !matches!(q.protocol, None | Some("ip6")) {
                return Err(unknown("IPv4 address"));
            }
            let bits = if self.accept("/") { self.number_word("a prefix length")? } else { 128 };
            if bits > 128 {
                return Err(Fault::new(place, "an IPv6 prefix has at most 128 bits"));
            }
            return Ok(self.layout.ip6_address(direction, a.to_bits(), bits));
        }
        let dotted = dotted(w).or_else(|| {
            let (a, m) = if net { self.names.net(w)? } else { (self.names.ip(w)?, [255; 4]) };
            Some((u32::from_be_bytes(a), u32::from_be_bytes(m)))
        });
        let (value, own) = dotted.ok_or_else(|| unknown("address"))?;
        if !net && own != u32::MAX {
            return Err(unknown("complete address").expected("four numbers, or 'net'"));
        }
        let mask = if self.accept("/") {
            let bits = self.number_word("a prefix length")?;
            u32::MAX
                .checked_shl(32u32.checked_sub(bits).ok_or_else(|| self.fault("more than 32 bits"))?)
                .unwrap_or(0)
        } else if self.accept("mask") {
            let Token::Word(m) = self.next() else { return Err(unknown("mask")) };
            dotted_whole(m).ok_or_else(|| unknown("mask"))?
        } else {
            own
        };
        if value & !mask != 0 {
            return Err(Fault::new(place, format!("'{w}' has bits outside of its mask")));
        }
        if kinds.is_empty() {
            return Err(unknown("IPv6 address"));
        }
        Ok(self.layout.ip_address(direction, kinds, value, mask))
    }
}

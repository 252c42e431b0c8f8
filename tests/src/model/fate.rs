// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines the required fate of a frame that arrives.
use std::net::Ipv4Addr;

use super::masked::{Fields, Masked};
use super::router::{ADDRESS, BROADCASTS, MAC, MTU, Way, is_host, route};
use super::{Neighbours, options};
use crate::trace::{arp, checksum, ether};

/// An ICMP error that must be sent.
#[derive(Clone, Debug)]
pub(super) struct IcmpError {
    /// Type and code.
    pub(super) kind: (u8, u8),
    /// Permitted values of the second word of the ICMP header.
    pub(super) rest: Vec<[u8; 4]>,
    /// The quoted packet, already truncated.
    pub(super) quote: Masked,
    /// The recipient.
    pub(super) to: Ipv4Addr,
}

/// A result that must be found in the router's output.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// A forwarded packet, before fragmentation.
    Packet {
        /// Interface of departure.
        out: usize,
        /// Next hop.
        hop: Ipv4Addr,
        want: Masked,
    },
    /// An ICMP error sent by the router.
    Error { out: usize, hop: Ipv4Addr, error: IcmpError },
    /// A packet delivered to the host.
    Host { packet: Vec<u8> },
    /// A reply to an ARP request.
    ArpReply { out: usize, frame: Vec<u8> },
}

/// The required fate of a frame.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    /// The name of the fate in the report.
    pub(super) label: &'static str,
    pub(super) due: Vec<Due>,
    /// The next hops (interface and address) that never answer ARP. The router holds the packets to them forever.
    pub(super) held: Vec<(usize, Ipv4Addr)>,
}

impl Fate {
    fn just(label: &'static str) -> Fate {
        Fate { label, due: Vec::new(), held: Vec::new() }
    }

    fn with(label: &'static str, due: Due) -> Fate {
        Fate { label, due: vec![due], held: Vec::new() }
    }
}

/// Length of an Ethernet header plus an ARP packet.
const ARP_FRAME: usize = 42;

/// Returns the operation of a complete ARP packet for IPv4 over Ethernet.
fn arp_operation(frame: &[u8]) -> Option<u16> {
    let whole = frame.len() >= ARP_FRAME && frame[14..20] == [0, 1, 8, 0, 6, 4];
    whole.then(|| u16::from_be_bytes([frame[20], frame[21]]))
}

fn address_at(frame: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3])
}

fn mac_at(frame: &[u8], at: usize) -> [u8; 6] {
    let mut mac = [0; 6];
    mac.copy_from_slice(&frame[at..at + 6]);
    mac
}

/// Returns the IP address and the Ethernet address that the router learns from an ARP reply.
pub(super) fn learned(frame: &[u8]) -> Option<(Ipv4Addr, [u8; 6])> {
    let is_reply = frame.get(12..14) == Some(&[8, 6]) && arp_operation(frame) == Some(2);
    let mac = is_reply.then(|| mac_at(frame, 22)).filter(|mac| mac[0] & 1 == 0)?;
    Some((address_at(frame, 28), mac))
}

/// Determines the required fate of a frame that arrives on an interface.
pub(super) fn of_frame(interface: usize, frame: &[u8], neighbours: &Neighbours) -> Fate {
    if frame.len() < 14 {
        return Fate::just("dropped: shorter than an Ethernet header");
    }
    match &frame[12..14] {
        [8, 6] => of_arp(interface, frame),
        [8, 0] if frame[..6] == MAC[interface] => of_packet(interface, &frame[14..], neighbours),
        [8, 0] if frame[0] & 1 == 1 => of_group_packet(&frame[14..]),
        [8, 0] => Fate::just("dropped: for another Ethernet address"),
        _ => Fate::just("dropped: not IP"),
    }
}

fn of_arp(interface: usize, frame: &[u8]) -> Fate {
    match arp_operation(frame) {
        None => Fate::just("dropped: ARP packet cut short"),
        Some(2) => Fate::just("ARP reply, learned"),
        Some(1) if address_at(frame, 38) == ADDRESS[interface] => {
            let (asker_mac, asker) = (mac_at(frame, 22), address_at(frame, 28));
            let reply = arp(2, MAC[interface], ADDRESS[interface], asker_mac, asker);
            let frame = ether(asker_mac, MAC[interface], 0x0806, &reply);
            Fate::with("ARP request, answered", Due::ArpReply { out: interface, frame })
        }
        Some(1) => Fate::just("dropped: ARP request for another host"),
        Some(_) => Fate::just("dropped: other ARP operation"),
    }
}

/// Performs the tests of CheckIPHeader in order (RFC 1812, 5.2.2), and filters invalid sources. Returns the
/// packet without padding.
fn checked(packet: &[u8]) -> Result<&[u8], &'static str> {
    if packet.len() < 20 {
        return Err("dropped: shorter than an IP header");
    }
    if packet[0] >> 4 != 4 {
        return Err("dropped: wrong IP version");
    }
    let fields = Fields::of(packet).ok_or("dropped: wrong IP header length")?;
    if fields.total_len() < fields.header_len || fields.total_len() > packet.len() {
        return Err("dropped: wrong IP length");
    }
    if checksum(&[&packet[..fields.header_len]]) != 0 {
        return Err("dropped: wrong IP header checksum");
    }
    // Packets from 0.0.0.0 (hosts without an address) or from a broadcast address are dropped, unless they
    // are for the router itself.
    let own_broadcast = [BROADCASTS[1], BROADCASTS[3]].contains(&fields.src());
    let bad = own_broadcast || fields.src().is_unspecified() || fields.src().is_broadcast();
    if bad && !ADDRESS.contains(&fields.dst()) {
        return Err("dropped: invalid source address");
    }
    if matches!(fields.src().octets()[0], 127 | 224..) {
        return Err("dropped: invalid source address");
    }
    Ok(&packet[..fields.total_len()])
}

fn of_group_packet(packet: &[u8]) -> Fate {
    match checked(packet) {
        Err(label) => Fate::just(label),
        Ok(packet) if is_host(address_at(packet, 16)) => {
            Fate::with("given to the host", Due::Host { packet: packet.to_vec() })
        }
        Ok(_) => Fate::just("dropped: link-level broadcast or multicast, not for us"),
    }
}

fn of_packet(interface: usize, packet: &[u8], neighbours: &Neighbours) -> Fate {
    let packet = match checked(packet) {
        Ok(packet) => packet,
        Err(label) => return Fate::just(label),
    };
    let Some(fields) = Fields::of(packet) else { return Fate::just("dropped: wrong IP header length") };
    let mut journey = Journey { neighbours, fate: Fate::just("") };
    journey.fate.label = match route(fields.dst()) {
        Way::Host => return Fate::with("given to the host", Due::Host { packet: packet.to_vec() }),
        Way::Martian => "dropped: invalid destination address",
        Way::Unreachable => journey.error(
            (3, 0),
            vec![[0; 4]],
            &Masked::new(packet.to_vec()),
            [
                "answered: network unreachable",
                "answered: network unreachable (held for ARP forever)",
                "dropped: network unreachable, no error about it",
            ],
        ),
        Way::Out(out, hop) => journey.out(interface, out, hop, fields),
    };
    journey.fate
}

/// A packet on the output path of an interface in Figure 8.
struct Journey<'a> {
    neighbours: &'a Neighbours,
    fate: Fate,
}

impl Journey<'_> {
    fn out(&mut self, from: usize, out: usize, hop: Ipv4Addr, fields: Fields<'_>) -> &'static str {
        let redirected = from == out;
        if redirected && !options::has_source_route(fields.options()) {
            // RFC 1812, 5.2.7.2: the sender gets a redirect to the nearer gateway, and the packet is forwarded.
            let arrived = Masked::new(fields.packet.to_vec());
            self.error((5, 1), vec![hop.octets()], &arrived, ["", "", ""]);
        }
        let filled = options::fill_in(fields.packet, fields.header_len, ADDRESS[out], &[ADDRESS[1 - out]]);
        let mut packet = match filled {
            Ok(packet) => packet,
            Err(pointers) => {
                let rest = pointers.into_iter().map(|pointer| [pointer, 0, 0, 0]).collect();
                return self.error(
                    (12, 0),
                    rest,
                    &Masked::new(fields.packet.to_vec()),
                    [
                        "answered: parameter problem",
                        "answered: parameter problem (held for ARP forever)",
                        "dropped: parameter problem, no error about it",
                    ],
                );
            }
        };
        if fields.ttl() <= 1 {
            return self.error(
                (11, 0),
                vec![[0; 4]],
                &packet,
                [
                    "answered: time exceeded",
                    "answered: time exceeded (held for ARP forever)",
                    "dropped: time exceeded, no error about it",
                ],
            );
        }
        packet.bytes[8] -= 1;
        let pieces = packet.bytes.len() > MTU;
        if pieces && fields.dont_fragment() {
            let mtu = u16::try_from(MTU).unwrap_or(0).to_be_bytes();
            return self.error(
                (3, 4),
                vec![[0, 0, mtu[0], mtu[1]]],
                &packet,
                [
                    "answered: fragmentation needed",
                    "answered: fragmentation needed (held for ARP forever)",
                    "dropped: fragmentation needed, no error about it",
                ],
            );
        }
        if !self.neighbours.contains_key(&(out, hop)) {
            self.fate.held.push((out, hop));
            return "held for ARP forever";
        }
        self.fate.due.push(Due::Packet { out, hop, want: packet });
        match (redirected, pieces) {
            (false, false) => "forwarded",
            (false, true) => "forwarded in fragments",
            (true, false) => "forwarded to the incoming interface",
            (true, true) => "forwarded in fragments to the incoming interface",
        }
    }

    /// Adds an ICMP error to the fate, if an error is permitted. Returns one of three labels: for an error
    /// that is sent, held, or not permitted.
    fn error(
        &mut self,
        kind: (u8, u8),
        rest: Vec<[u8; 4]>,
        about: &Masked,
        [sent, waits, not]: [&'static str; 3],
    ) -> &'static str {
        let Some(fields) = Fields::of(&about.bytes).filter(may_be_answered) else { return not };
        let to = fields.src();
        // RFC 1812, 4.3.2.3: quotes as much as fits into 576 bytes with the IP and ICMP headers.
        let error = IcmpError { kind, rest, quote: about.cut(576 - 28), to };
        match route(to) {
            Way::Out(out, hop) if self.neighbours.contains_key(&(out, hop)) => {
                self.fate.due.push(Due::Error { out, hop, error });
                sent
            }
            Way::Out(out, hop) => {
                self.fate.held.push((out, hop));
                waits
            }
            Way::Host | Way::Martian | Way::Unreachable => not,
        }
    }
}

/// Whether an error may be sent about a packet. RFC 1812, 4.3.2.7: no error about an ICMP error, a broadcast
/// or multicast, a later fragment, or a packet whose source does not stand for a single host.
fn may_be_answered(fields: &Fields<'_>) -> bool {
    let nobody = |address: Ipv4Addr| BROADCASTS.contains(&address) || address.octets()[0] >= 224;
    let no_sender = nobody(fields.src()) || matches!(fields.src().octets()[0], 0 | 127);
    !fields.is_icmp_error() && fields.fragment_offset() == 0 && !nobody(fields.dst()) && !no_sender
}

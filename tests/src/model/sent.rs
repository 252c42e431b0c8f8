// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the router's output is complete, is in order, and contains nothing unexpected.
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::claims::{Claim, Found, Order, check_time, claims, describe, report_missing};
use super::fate::{Due, IcmpError};
use super::masked::{Fields, Masked, header_fault};
use super::router::{ADDRESS, MAC, MTU};
use super::{Evidence, Fates, Neighbours, Report, Seen, fragments};
use crate::trace::{arp, checksum, ether};

/// The identity of a packet: source, destination, identification, protocol.
type Key = (Ipv4Addr, Ipv4Addr, u16, u8);

fn key(fields: &Fields<'_>) -> Key {
    (fields.src(), fields.dst(), fields.id(), fields.protocol())
}

/// Checks the output on both interfaces and to the host.
pub(super) fn check(evidence: &Evidence, fates: &Fates, report: &mut Report) {
    for out in [0, 1] {
        check_interface(out, evidence, fates, report);
    }
    check_host(evidence, fates, report);
}

fn check_host(evidence: &Evidence, fates: &Fates, report: &mut Report) {
    let mut claims = claims(fates, |due| matches!(due, Due::Host { .. }));
    let mut order = Order::default();
    for (at, seen) in evidence.host.iter().enumerate() {
        let matches = |claim: &&mut Claim<'_>| {
            claim.is_open() && matches!(claim.due, Due::Host { packet } if *packet == seen.data)
        };
        let (Some(claim), Some(fields)) = (claims.iter_mut().find(matches), Fields::of(&seen.data)) else {
            report.violation(format!("host packet {at} ({}) is not due to the host", describe(&seen.data)));
            report.count_sent("not due");
            continue;
        };
        claim.found = Found::At(at);
        report.count_sent("to the host");
        check_time(evidence, claim, seen, report);
        if !order.keeps(evidence, claim.cause, &fields) {
            report.violation(format!("host packet {at} ({}) was overtaken", describe(&seen.data)));
        }
    }
    report_missing(&claims, report);
}

/// The state of checking the output of one interface.
struct Output<'a> {
    out: usize,
    evidence: &'a Evidence,
    neighbours: &'a Neighbours,
    claims: Vec<Claim<'a>>,
    /// Expected packets by key, as indices into `claims`.
    packets: HashMap<Key, Vec<usize>>,
    /// Expected errors by recipient, type and code, and quoted packet, as indices into `claims`.
    errors: HashMap<(Ipv4Addr, (u8, u8), Key), Vec<usize>>,
    order: Order,
    /// Positions of ARP requests in the output, by the requested address.
    queries: HashMap<Ipv4Addr, Vec<usize>>,
    /// The position in the output of the first frame to each next hop.
    first_to: HashMap<Ipv4Addr, usize>,
}

fn check_interface(out: usize, evidence: &Evidence, fates: &Fates, report: &mut Report) {
    let claims = claims(fates, |due| match due {
        Due::Packet { out: o, .. } | Due::Error { out: o, .. } | Due::ArpReply { out: o, .. } => *o == out,
        Due::Host { .. } => false,
    });
    let mut output = Output {
        out,
        evidence,
        neighbours: &fates.neighbours,
        packets: HashMap::new(),
        errors: HashMap::new(),
        claims,
        order: Order::default(),
        queries: HashMap::new(),
        first_to: HashMap::new(),
    };
    output.index();
    for (at, seen) in evidence.sent[out].iter().enumerate() {
        match output.take(at, seen) {
            Ok((what, None)) => report.count_sent(what),
            Ok((what, Some(fault))) => {
                report.count_sent(what);
                report.violation(format!("{}: {fault}", output.place(at, &seen.data)));
            }
            Err(fault) => {
                report.count_sent("not due");
                report.violation(format!("{}: {fault}", output.place(at, &seen.data)));
            }
        }
    }
    output.finish_fragments(report);
    for claim in &output.claims {
        if let (Found::At(at), Due::Packet { .. }) = (claim.found, claim.due) {
            check_time(evidence, claim, &evidence.sent[out][at], report);
        }
    }
    report_missing(&output.claims, report);
    output.check_queries(fates, report);
}

/// The position of the first ARP reply from each neighbour, by interface and address.
type Replies = HashMap<(usize, Ipv4Addr), usize>;

/// The kind of an expected frame, with a description of its faults if it has any; or the reason a frame was not
/// expected.
type Taken = Result<(&'static str, Option<String>), String>;

impl<'a> Output<'a> {
    fn index(&mut self) {
        for (n, claim) in self.claims.iter().enumerate() {
            match claim.due {
                Due::Packet { want, .. } => {
                    if let Some(fields) = Fields::of(&want.bytes) {
                        self.packets.entry(key(&fields)).or_default().push(n);
                    }
                }
                Due::Error { error, .. } => {
                    if let Some(fields) = Fields::of(&error.quote.bytes) {
                        self.errors.entry((error.to, error.kind, key(&fields))).or_default().push(n);
                    }
                }
                Due::ArpReply { .. } | Due::Host { .. } => {}
            }
        }
    }

    fn place(&self, at: usize, frame: &[u8]) -> String {
        format!("eth{} frame {at} ({})", self.out, describe(frame.get(14..).unwrap_or_default()))
    }

    /// Finds the expected result that a frame matches.
    fn take(&mut self, at: usize, seen: &'a Seen) -> Taken {
        let frame = &seen.data[..];
        let Some((header, payload)) = frame.split_at_checked(14) else {
            return Err("shorter than an Ethernet header".to_owned());
        };
        if header[6..12] != MAC[self.out] {
            return Err("the source is not the router's Ethernet address".to_owned());
        }
        match &header[12..14] {
            [8, 6] => self.take_arp(at, frame),
            [8, 0] => self.take_packet(at, &header[..6], payload),
            _ => Err("neither IP nor ARP".to_owned()),
        }
    }

    fn take_arp(&mut self, at: usize, frame: &[u8]) -> Taken {
        let same = |claim: &&mut Claim<'_>| {
            claim.is_open() && matches!(claim.due, Due::ArpReply { frame: due, .. } if due == frame)
        };
        if let Some(claim) = self.claims.iter_mut().find(same) {
            claim.found = Found::At(at);
            return Ok(("ARP reply", None));
        }
        let Some(target) = frame.get(38..42) else { return Err("ARP packet cut short".to_owned()) };
        let target = Ipv4Addr::new(target[0], target[1], target[2], target[3]);
        // The request asks for the target's Ethernet address, so that field may have any value.
        let mut unknown = [0; 6];
        unknown.copy_from_slice(&frame[32..38]);
        let query = arp(1, MAC[self.out], ADDRESS[self.out], unknown, target);
        if frame[..42] == ether([0xff; 6], MAC[self.out], 0x0806, &query) {
            self.queries.entry(target).or_default().push(at);
            return Ok(("ARP query", None));
        }
        Err("neither a due ARP reply nor a right ARP query".to_owned())
    }

    fn take_packet(&mut self, at: usize, dst: &[u8], packet: &'a [u8]) -> Taken {
        let Some(fields) = Fields::of(packet) else { return Err("no whole IP header".to_owned()) };
        if let Some(fault) = header_fault(packet) {
            return Err(fault);
        }
        let (n, what, mut fault) = if fields.is_icmp_error() && ADDRESS.contains(&fields.src()) {
            self.take_error(fields)?
        } else {
            self.take_forwarded(fields)?
        };
        let claim = &mut self.claims[n];
        claim.found = Found::At(at);
        let (Due::Packet { hop, .. } | Due::Error { hop, .. }) = claim.due else {
            return Err("not due".to_owned());
        };
        self.first_to.entry(*hop).or_insert(at);
        if self.neighbours.get(&(self.out, *hop)).is_none_or(|mac| mac != dst) {
            fault = fault.or_else(|| Some(format!("the destination is not the Ethernet address of {hop}")));
        }
        let claim = &self.claims[n];
        if matches!(claim.due, Due::Packet { .. }) && !self.order.keeps(self.evidence, claim.cause, &fields) {
            fault = fault.or_else(|| Some("was overtaken by a later packet of its flow".to_owned()));
        }
        Ok((what, fault))
    }

    fn take_error(&mut self, fields: Fields<'_>) -> Result<(usize, &'static str, Option<String>), String> {
        let message = fields.payload();
        let quoted = message.get(8..).and_then(Fields::of).ok_or("an ICMP error that quotes no packet")?;
        let kind = (message[0], message[1]);
        let found = self.errors.get(&(fields.dst(), kind, key(&quoted)));
        let open = found.into_iter().flatten().copied().find(|n| self.claims[*n].is_open());
        let n = open.ok_or_else(|| format!("ICMP error {}/{} that is not due", kind.0, kind.1))?;
        let Due::Error { error, .. } = self.claims[n].due else { return Err("not due".to_owned()) };
        let what = match kind {
            (3, 0) => "ICMP error: network unreachable",
            (3, 4) => "ICMP error: fragmentation needed",
            (5, _) => "ICMP error: redirect",
            (11, _) => "ICMP error: time exceeded",
            (12, _) => "ICMP error: parameter problem",
            _ => "ICMP error: other",
        };
        Ok((n, what, error_fault(error, fields, ADDRESS[self.out])))
    }

    fn take_forwarded(
        &mut self,
        fields: Fields<'a>,
    ) -> Result<(usize, &'static str, Option<String>), String> {
        let candidates = self.packets.get(&key(&fields)).ok_or("not due")?;
        // If a packet arrived in fragments, each fragment is an expected packet with the same key. If several of them
        // are not found yet, one that matches this frame is preferred.
        let open = |n: &&usize| self.claims[**n].is_open() || self.claims[**n].is_split();
        let fits = |n: &&usize| match self.claims[**n].due {
            Due::Packet { want, .. } if want.bytes.len() > MTU => covers(want, &fields),
            Due::Packet { want, .. } => want.fault(fields.packet).is_none(),
            _ => false,
        };
        let open_ones: Vec<_> = candidates.iter().filter(open).collect();
        let n = **open_ones.iter().find(|n| fits(n)).or(open_ones.first()).ok_or("sent twice")?;
        let claim = &mut self.claims[n];
        if claim.is_split() {
            claim.pieces.push(fields.packet);
            return Ok((n, "fragment", None));
        }
        let fault = match claim.due {
            Due::Packet { want, .. } => want.fault(fields.packet),
            _ => None,
        };
        Ok((n, "forwarded", fault))
    }

    fn finish_fragments(&self, report: &mut Report) {
        for claim in self.claims.iter().filter(|claim| claim.is_split() && !claim.is_open()) {
            let Due::Packet { want, .. } = claim.due else { continue };
            if let Some(fault) = fragments::fault(want, &claim.pieces) {
                report.violation(format!("fragments of {}: {fault}", describe(&want.bytes)));
            }
        }
    }

    /// Checks RFC 1812, 3.3.2 and RFC 826: the router sends requests for unknown next hops, and for no
    /// others.
    fn check_queries(&self, fates: &Fates, report: &mut Report) {
        let held = fates.all.iter().flatten().flat_map(|fate| &fate.held);
        let held: HashSet<Ipv4Addr> = held.filter(|(out, _)| *out == self.out).map(|(_, hop)| *hop).collect();
        for hop in &held {
            if !self.queries.contains_key(hop) {
                report
                    .violation(format!("eth{}: packets wait for {hop}, which was never asked for", self.out));
            }
        }
        let mut wanted: HashMap<Ipv4Addr, usize> = HashMap::new();
        let mut shared: HashSet<Ipv4Addr> = HashSet::new();
        for claim in &self.claims {
            let (Due::Packet { hop, .. } | Due::Error { hop, .. }) = claim.due else { continue };
            *wanted.entry(*hop).or_default() += 1;
            if claim.cause.0 != self.out {
                shared.insert(*hop);
            }
        }
        for claim in &self.claims {
            let (Due::Packet { hop, .. } | Due::Error { hop, .. }) = claim.due else { continue };
            self.check_asked_first(claim.cause, *hop, shared.contains(hop), &fates.replies, report);
        }
        for (hop, at) in &self.queries {
            let packets = wanted.get(hop).copied().unwrap_or(0);
            if !held.contains(hop) && at.len() > packets {
                let (out, asked) = (self.out, at.len());
                report
                    .violation(format!("eth{out}: {hop} was asked for {asked} times, for {packets} packets"));
            }
        }
    }

    /// Checks a packet that arrived on this interface before the first ARP reply of its next hop. The router must have
    /// sent an ARP request before the first frame to that next hop.
    ///
    /// If packets of the other interface go to the same next hop (`shared`), the order is not checked. In that case,
    /// the worker of the other interface may be the one that sends the request, and the worker of this interface may
    /// already have read the reply.
    fn check_asked_first(
        &self,
        cause: (usize, usize),
        hop: Ipv4Addr,
        shared: bool,
        replies: &Replies,
        report: &mut Report,
    ) {
        let known = replies.get(&(self.out, hop)).is_some_and(|reply| *reply < cause.1);
        if cause.0 != self.out || known {
            return;
        }
        let asked = self.queries.get(&hop).and_then(|at| at.first());
        let sent = self.first_to.get(&hop);
        if asked.is_none() || (!shared && sent < asked) {
            report.violation(format!("eth{}: packets to {hop} before it was asked for", self.out));
        }
    }
}

/// Whether a fragment begins inside `want`, which is a packet or a fragment of a packet.
fn covers(want: &Masked, fragment: &Fields<'_>) -> bool {
    Fields::of(&want.bytes).is_some_and(|whole| {
        let start = whole.fragment_offset();
        (start..start + whole.payload().len()).contains(&fragment.fragment_offset())
    })
}

/// Describes what is wrong with an ICMP error (RFC 792; RFC 1812, 4.3.2) sent on the interface with address
/// `own`.
fn error_fault(error: &IcmpError, fields: Fields<'_>, own: Ipv4Addr) -> Option<String> {
    let (packet, message) = (fields.packet, fields.payload());
    let rest = message.get(4..8)?;
    let tests = [
        (packet[0] == 0x45, "has options"),
        (packet[1] == 0, "has a type of service"),
        (fields.total_len() == packet.len(), "wrong length"),
        (packet[6..8] == [0, 0], "is a fragment, or not to be fragmented"),
        // The router creates the error with a time to live of 200 and forwards it like any packet.
        (fields.ttl() == 199, "its time to live is not 200 - 1"),
        (fields.src() == own, "its source is not the address of its interface"),
        (checksum(&[message]) == 0, "wrong ICMP checksum"),
        (error.rest.iter().any(|right| right == rest), "wrong pointer, gateway or MTU"),
    ];
    let fault = tests.iter().find(|(right, _)| !right).map(|(_, text)| (*text).to_owned());
    fault.or_else(|| error.quote.fault(&message[8..]).map(|text| format!("its quotation: {text}")))
}

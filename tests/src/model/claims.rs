// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected results, and their matches in the output.
use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::fate::Due;
use super::masked::Fields;
use super::router::MTU;
use super::{Evidence, Fates, Report, Seen};

/// One expected result and its matches.
pub(super) struct Claim<'a> {
    pub(super) due: &'a Due,
    /// The frame that caused the result: its interface of arrival, and its position in the trace of that interface.
    pub(super) cause: (usize, usize),
    pub(super) found: Found,
    /// The fragments found, for packets longer than the MTU.
    pub(super) pieces: Vec<&'a [u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    No,
    /// Found once, at this position in the output.
    At(usize),
}

impl Claim<'_> {
    pub(super) fn is_split(&self) -> bool {
        matches!(self.due, Due::Packet { want, .. } if want.bytes.len() > MTU)
    }

    pub(super) fn is_open(&self) -> bool {
        self.found == Found::No
    }
}

/// Returns the expected results that `choose` selects, in the order of the traces.
pub(super) fn claims<'a>(fates: &'a Fates, choose: impl Fn(&Due) -> bool) -> Vec<Claim<'a>> {
    let numbered = fates.all.iter().enumerate().flat_map(|(interface, all)| {
        all.iter().enumerate().map(move |(position, fate)| ((interface, position), fate))
    });
    let due = numbered.flat_map(|(cause, fate)| fate.due.iter().map(move |due| (cause, due)));
    let chosen = due.filter(|(_, due)| choose(due));
    chosen.map(|(cause, due)| Claim { due, cause, found: Found::No, pieces: Vec::new() }).collect()
}

/// Checks that the router keeps the order of packets with the same input interface, source, destination and protocol.
#[derive(Default)]
pub(super) struct Order {
    last: HashMap<(usize, bool, Ipv4Addr, Ipv4Addr, u8), usize>,
}

impl Order {
    /// Records a packet. Returns false if a later packet overtook it. The order of packets to link-level groups is
    /// checked separately, because they take another path.
    pub(super) fn keeps(&mut self, evidence: &Evidence, cause: (usize, usize), fields: &Fields<'_>) -> bool {
        let (interface, position) = cause;
        let group = evidence.arrived[interface][position].data.first().is_some_and(|byte| byte & 1 == 1);
        let flow = (interface, group, fields.src(), fields.dst(), fields.protocol());
        let last = self.last.entry(flow).or_insert(position);
        let kept = *last <= position;
        *last = position;
        kept
    }
}

/// Checks that the timestamp of a packet is its time of arrival.
pub(super) fn check_time(evidence: &Evidence, claim: &Claim<'_>, seen: &Seen, report: &mut Report) {
    let arrived = evidence.arrived[claim.cause.0][claim.cause.1].time_ns;
    if seen.time_ns != arrived {
        let (interface, position) = claim.cause;
        report.violation(format!(
            "eth{interface} arrival {position}: its time stamp changed to {}",
            seen.time_ns
        ));
    }
}

pub(super) fn report_missing(claims: &[Claim<'_>], report: &mut Report) {
    for claim in claims.iter().filter(|claim| claim.is_open()) {
        let what = match claim.due {
            Due::Packet { want, .. } => format!("was not forwarded ({})", describe(&want.bytes)),
            Due::Error { error, .. } => {
                format!("got no ICMP error {:?} ({})", error.kind, describe(&error.quote.bytes))
            }
            Due::Host { packet } => format!("was not given to the host ({})", describe(packet)),
            Due::ArpReply { .. } => "got no ARP reply".to_owned(),
        };
        report.violation(format!("eth{} arrival {}: {what}", claim.cause.0, claim.cause.1));
    }
}

/// Describes a packet in a few words.
pub(super) fn describe(packet: &[u8]) -> String {
    match Fields::of(packet) {
        None => format!("{} bytes", packet.len()),
        Some(fields) => format!(
            "{} > {} protocol {} id {}, {} bytes",
            fields.src(),
            fields.dst(),
            fields.protocol(),
            fields.id(),
            packet.len()
        ),
    }
}

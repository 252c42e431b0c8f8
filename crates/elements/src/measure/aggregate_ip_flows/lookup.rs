// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the flow of a packet, by its IP and transport headers or by the packet that an ICMP error quotes.

use super::AggregateIpFlows;
use super::flows::{Arrival, Key, Seen};
use castanet_element::prelude::*;
use castanet_wire::ipv4::{MORE_FRAGMENTS, OFFSET_MASK, protocol};

/// The decision about a packet.
pub(super) enum Fate {
    /// The packet belongs to a flow, and leaves by output 0.
    Flow(Seen),
    /// The packet is a first fragment of a flow. Later fragments of the packet may wait for it.
    First(Seen),
    /// The packet is a later fragment and waits for its first fragment. The value is the current time, in nanoseconds.
    Waits(i64),
    /// The packet belongs to no flow. It leaves by output 1; without output 1 it is dropped for this reason.
    Other(Reason),
}

/// Reads the source and destination port at the beginning of a transport header.
fn ports(transport: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *transport.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Returns the flow of an IP packet, and whether the packet goes from the lower end of the flow to the higher end. Ends
/// are compared by address, then by port.
fn key(ip: &[u8; 20], transport: &[u8]) -> Option<(Key, bool)> {
    let kind = ip[9];
    if kind != protocol::TCP && kind != protocol::UDP {
        return None;
    }
    let (sport, dport) = ports(transport)?;
    let address = |at: usize| ip.get(at..).and_then(|a| a.first_chunk()).map(|a| u32::from_be_bytes(*a));
    Some(Key::new((address(12)?, sport), (address(16)?, dport), kind))
}

/// Returns the timestamp of a packet, or the current time if it has none; in nanoseconds.
pub(super) fn time(p: &Packet, cx: &mut Cx<'_>) -> i64 {
    match p.timestamp() {
        0 => cx.recent(),
        t => t,
    }
}

impl AggregateIpFlows {
    /// Finds the flow of the packet that an ICMP error quotes.
    fn quoted(&self, message: &[u8], now: i64) -> Option<Seen> {
        if !self.args.icmp || !castanet_wire::icmp::is_error(*message.first()?) {
            return None;
        }
        let quoted = message.get(8..)?;
        let ip: &[u8; 20] = quoted.first_chunk()?;
        let transport = quoted.get(usize::from(ip[0] & 15).max(5) * 4..)?;
        if ip[0] >> 4 != 4 || u16::from_be_bytes([ip[6], ip[7]]) & OFFSET_MASK != 0 {
            return None;
        }
        let (key, up) = key(ip, transport)?;
        let seen = self.shared.find(key, up, now)?;
        Some(Seen { paint: 1 - seen.paint, ..seen })
    }

    /// Decides about a packet with an IP header, at a time in nanoseconds.
    fn fate(&self, p: &Packet, now: i64) -> Option<Fate> {
        let ip = p.ip_header()?;
        let transport = p.transport()?;
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & (OFFSET_MASK | MORE_FRAGMENTS);
        if fragment != 0 && !self.shared.has_fragments() {
            return None;
        }
        if fragment & OFFSET_MASK != 0 {
            return match self.shared.with_fragments(|f| f.find(ip, now))? {
                Some(seen) => Some(Fate::Flow(seen)),
                None => self.waits.then_some(Fate::Waits(now)),
            };
        }
        if ip[9] == protocol::ICMP {
            return self.quoted(transport, now).map(Fate::Flow);
        }
        let (key, up) = key(ip, transport)?;
        let flags = if ip[9] == protocol::TCP { transport.get(13).copied().unwrap_or(0) } else { 0 };
        let seen = self.shared.packet(Arrival { key, up, flags, now })?;
        if fragment == 0 {
            return Some(Fate::Flow(seen));
        }
        self.shared.with_fragments(|f| f.first(ip, seen, now));
        Some(Fate::First(seen))
    }

    /// Decides about a packet.
    #[inline]
    pub(super) fn judge(&mut self, p: &Packet, cx: &mut Cx<'_>) -> Fate {
        if p.ip_header().is_none() {
            return Fate::Other(Reason::NoIpHeader);
        }
        if !self.begun {
            self.begin_info(cx);
        }
        let now = time(p, cx);
        self.shared.reap_if_due(now);
        self.fate(p, now).unwrap_or(Fate::Other(Reason::NoMatch))
    }
}

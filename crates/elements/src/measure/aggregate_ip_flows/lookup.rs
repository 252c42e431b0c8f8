// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the flow of a packet, by its IP and transport headers or by the packet that an ICMP error quotes.

use super::flows::{Flow, Key, Seen};
use super::{AggregateIpFlows, tell};
use castanet_element::prelude::*;
use castanet_wire::ipv4::{MORE_FRAGMENTS, OFFSET_MASK, protocol};

/// The decision about a packet.
pub(super) enum Fate {
    /// The packet belongs to a flow, and leaves by output 0.
    Flow(Seen),
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

/// Returns the flow of an IP packet. Also returns whether the packet goes from the lower end (address and port) to the
/// higher.
fn key(ip: &[u8; 20], transport: &[u8]) -> Option<(Key, bool)> {
    let kind = ip[9];
    if kind != protocol::TCP && kind != protocol::UDP {
        return None;
    }
    let (sport, dport) = ports(transport)?;
    let address = |at: usize| ip.get(at..).and_then(|a| a.first_chunk()).map(|a| u32::from_be_bytes(*a));
    Some(Key::new((address(12)?, sport), (address(16)?, dport), kind))
}

/// Whether a packet is a first fragment that is followed by more fragments.
pub(super) fn is_first_fragment(ip: &[u8; 20]) -> bool {
    u16::from_be_bytes([ip[6], ip[7]]) & (OFFSET_MASK | MORE_FRAGMENTS) == MORE_FRAGMENTS
}

impl AggregateIpFlows {
    /// Finds the flow of the packet that an ICMP error quotes.
    fn quoted(&mut self, message: &[u8], now: i64) -> Option<Seen> {
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
        let seen = self.table.find(key, up, now, &self.timeouts)?;
        Some(Seen { paint: 1 - seen.paint, ..seen })
    }

    /// Returns the flow number and the direction of a packet. Sets `later` if the packet is a later fragment
    /// whose first fragment is not known.
    fn seen(&mut self, p: &Packet, now: i64, later: &mut bool) -> Option<Seen> {
        let ip = p.ip_header()?;
        let transport = p.transport()?;
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & (OFFSET_MASK | MORE_FRAGMENTS);
        if fragment != 0 && self.fragments.is_none() {
            return None;
        }
        if fragment & OFFSET_MASK != 0 {
            let seen = self.fragments.as_ref()?.find(ip, now);
            *later = seen.is_none();
            return seen;
        }
        if ip[9] == protocol::ICMP {
            return self.quoted(transport, now);
        }
        let (key, up) = key(ip, transport)?;
        let flags = if ip[9] == protocol::TCP { transport.get(13).copied().unwrap_or(0) } else { 0 };
        let info = &mut self.info;
        let gone = |flow: &Flow| tell(info, flow);
        let seen = self.table.packet(key, up, flags, now, &self.timeouts, gone);
        if fragment != 0
            && let Some(f) = &mut self.fragments
        {
            f.first(ip, seen, now);
        }
        Some(seen)
    }

    /// Decides about a packet.
    #[inline]
    pub(super) fn judge(&mut self, p: &Packet, cx: &mut Cx<'_>) -> Fate {
        if p.ip_header().is_none() {
            return Fate::Other(Reason::NoIpHeader);
        }
        self.begin_info(cx);
        let now = match p.timestamp() {
            0 => cx.recent(),
            t => t,
        };
        if now >= self.next_reap {
            self.reap(now);
        }
        let mut later = false;
        match self.seen(p, now, &mut later) {
            Some(seen) => Fate::Flow(seen),
            None if later && self.waits => Fate::Waits(now),
            None => Fate::Other(Reason::NoMatch),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads fields of a packet. A field whose bytes were not captured, or whose header is invalid, has no value.

use castanet_wire::ipv4::protocol;
use std::fmt;
use std::ops::Range;

/// A packet to read fields from.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    /// The time of the packet, in nanoseconds since 1970.
    pub time: i64,
    /// The time of the first packet that this packet represents, in nanoseconds since 1970.
    pub first_time: i64,
    /// The number of further packets that this packet represents.
    pub extra_packets: u32,
    /// The number of bytes of the packet that were not captured.
    pub extra_length: u32,
    /// The paint annotation.
    pub paint: u8,
    /// The aggregate annotation.
    pub aggregate: u32,
    data: &'a [u8],
    mac: Option<&'a [u8]>,
    ip: Option<Ip<'a>>,
    bad: Option<Bad>,
}

/// An IPv4 packet with a complete header.
#[derive(Clone, Copy, Debug)]
pub struct Ip<'a> {
    /// The header, options included.
    pub header: &'a [u8],
    /// The captured bytes of the packet, header included.
    pub captured: &'a [u8],
    /// The total length that the header states, in bytes.
    pub len: usize,
}

/// Why a packet is invalid: a text, and possibly a number that is printed after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad(&'static str, Option<usize>);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(n) => write!(f, "{} {n}", self.0),
            None => f.write_str(self.0),
        }
    }
}

fn at16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}
fn at32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

/// Checks the IPv4 header (RFC 791 section 3.1) and the transport header. Returns the IP packet if its header is
/// complete and valid, and the first error if there is one.
fn check<'a>(rest: Option<&'a [u8]>, extra: usize, careful: bool) -> (Option<Ip<'a>>, Option<Bad>) {
    let bad = |text, n| (None, Some(Bad(text, n)));
    let Some(rest) = rest else { return bad("no IP header", None) };
    let whole = rest.len().saturating_add(extra);
    let (Some(first), Some(len), true) = (rest.first(), at16(rest, 2), rest.len() >= 20) else {
        let cut = if whole >= 20 { "truncated IP header capture" } else { "truncated IP header" };
        return bad(cut, None);
    };
    let (version, header_len, len) = (first >> 4, usize::from(first & 15) * 4, usize::from(len));
    if version != 4 {
        return bad("IP version", Some(version.into()));
    }
    if header_len < 20 {
        return bad("IP header length", Some(header_len));
    }
    if len < header_len {
        return bad("IP length", Some(len));
    }
    let Some(header) = rest.get(..header_len) else {
        let cut = if whole >= header_len { "truncated IP header capture" } else { "truncated IP header" };
        return bad(cut, None);
    };
    let ip = Ip { header, captured: rest.get(..len).unwrap_or(rest), len };
    let missing = len.saturating_sub(whole);
    let what = if careful && missing > 0 {
        Some(Bad("truncated IP missing", Some(missing)))
    } else {
        transport_problem(&ip)
    };
    (Some(ip), what)
}

fn transport_problem(ip: &Ip<'_>) -> Option<Bad> {
    let (tcp, least) = match ip.header.get(9).copied() {
        Some(protocol::TCP) => (true, 20),
        Some(protocol::UDP) => (false, 8),
        _ => return None,
    };
    let fragment = at16(ip.header, 6)?;
    if fragment & castanet_wire::ipv4::OFFSET_MASK != 0 {
        return None;
    }
    let pick = |for_tcp, for_udp| Some(Bad(if tcp { for_tcp } else { for_udp }, None));
    let after = ip.captured.get(ip.header.len()..).unwrap_or_default();
    let said = ip.len.saturating_sub(ip.header.len());
    let offset = after.get(12).map(|b| usize::from(b >> 4) * 4).filter(|_| tcp);
    if let Some(n) = offset.filter(|n| *n < 20) {
        return Some(Bad("TCP header length", Some(n)));
    }
    let least = offset.unwrap_or(least);
    if said < least {
        return if fragment & castanet_wire::ipv4::MORE_FRAGMENTS != 0 {
            pick("fragmented TCP header", "fragmented UDP header")
        } else {
            pick("truncated TCP header", "truncated UDP header")
        };
    }
    if after.len() < least {
        return pick("truncated TCP header capture", "truncated UDP header capture");
    }
    None
}

impl<'a> View<'a> {
    /// Makes a view of a packet. `network` is the data from the network header on, and `mac` is the data from
    /// the link header on. If `careful` is set, a packet that is shorter than the length in its IP
    /// header is an error.
    pub fn new(
        data: &'a [u8],
        mac: Option<&'a [u8]>,
        network: Option<&'a [u8]>,
        extra_length: u32,
        careful: bool,
    ) -> View<'a> {
        let extra = usize::try_from(extra_length).unwrap_or(usize::MAX);
        let (ip, mut bad) = check(network, extra, careful);
        if network.is_none() && mac.is_some_and(|m| m.len() < 14) {
            bad = Some(Bad("bad Ethernet header", None));
        }
        View { data, mac, ip, bad, extra_length, ..View::default() }
    }

    /// The first error of the packet.
    pub fn bad(&self) -> Option<Bad> {
        self.bad
    }
    /// The IP packet, if its header is complete and valid.
    pub fn ip(&self) -> Option<&Ip<'a>> {
        self.ip.as_ref()
    }
    /// The length of the packet in bytes, including bytes that were not captured.
    pub fn wire_len(&self) -> usize {
        self.data.len().saturating_add(usize::try_from(self.extra_length).unwrap_or(usize::MAX))
    }

    pub(super) fn mac(&self, range: Range<usize>) -> Option<&'a [u8]> {
        self.mac?.get(range)
    }
    pub(super) fn ip8(&self, at: usize) -> Option<u8> {
        self.ip.as_ref()?.header.get(at).copied()
    }
    pub(super) fn ip16(&self, at: usize) -> Option<u16> {
        at16(self.ip.as_ref()?.header, at)
    }
    pub(super) fn ip32(&self, at: usize) -> Option<u32> {
        at32(self.ip.as_ref()?.header, at)
    }
    /// The kind of fragment: `.` (not fragmented), `!` (must not be fragmented), `F` (first) or `f` (later).
    pub(super) fn fragment_letter(&self) -> Option<u8> {
        let f = self.ip16(6)?;
        Some(match f {
            _ if f & castanet_wire::ipv4::OFFSET_MASK != 0 => b'f',
            _ if f & castanet_wire::ipv4::MORE_FRAGMENTS != 0 => b'F',
            _ if f & castanet_wire::ipv4::DONT_FRAGMENT != 0 => b'!',
            _ => b'.',
        })
    }

    /// The data after the IP header, if the protocol is one of `protocols` and the packet is not a later
    /// fragment.
    fn transport(&self, protocols: &[u8]) -> Option<&'a [u8]> {
        let ip = self.ip.as_ref()?;
        let first = at16(ip.header, 6)? & castanet_wire::ipv4::OFFSET_MASK == 0;
        let wanted = protocols.contains(ip.header.get(9)?);
        if first && wanted { ip.captured.get(ip.header.len()..) } else { None }
    }
    pub(super) fn port(&self, at: usize) -> Option<u16> {
        const WITH_PORTS: &[u8] = &[protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE];
        at16(self.transport(WITH_PORTS)?, at)
    }
    pub(super) fn tcp16(&self, at: usize) -> Option<u16> {
        at16(self.transport(&[protocol::TCP])?, at)
    }
    pub(super) fn tcp32(&self, at: usize) -> Option<u32> {
        at32(self.transport(&[protocol::TCP])?, at)
    }
    pub(super) fn udp16(&self, at: usize) -> Option<u16> {
        at16(self.transport(&[protocol::UDP])?, at)
    }
    pub(super) fn tcp_options(&self) -> Option<&'a [u8]> {
        let header = self.transport(&[protocol::TCP])?;
        header.get(20..usize::from(header.get(12)? >> 4) * 4)
    }
    pub(super) fn icmp8(&self, at: usize) -> Option<u8> {
        self.transport(&[protocol::ICMP])?.get(at).copied()
    }
    /// The ICMP identifier (`at` 4) or sequence number (`at` 6). Only queries have these fields (RFC 792).
    pub(super) fn icmp_query(&self, at: usize) -> Option<u16> {
        let query = matches!(self.icmp8(0)?, 0 | 8 | 13..=18);
        at16(self.transport(&[protocol::ICMP])?, at).filter(|_| query)
    }
    /// The next hop's MTU in an ICMP "fragmentation needed" (RFC 1191 section 4); `None` for other packets.
    pub(super) fn icmp_mtu(&self) -> Option<u16> {
        let told = self.icmp8(0)? == 3 && self.icmp8(1)? == 4;
        at16(self.transport(&[protocol::ICMP])?, 6).filter(|_| told)
    }

    /// The length of the IP and transport headers. The ICMP header counts as payload.
    fn payload_at(&self, ip: &Ip<'_>) -> usize {
        let transport = match ip.header.get(9).copied() {
            _ if at16(ip.header, 6).is_none_or(|f| f & castanet_wire::ipv4::OFFSET_MASK != 0) => 0,
            Some(protocol::TCP) => {
                let offset = ip.captured.get(ip.header.len().saturating_add(12));
                offset.map_or(20, |b| usize::from(b >> 4) * 4).max(20)
            }
            Some(protocol::UDP) => 8,
            _ => 0,
        };
        ip.header.len().saturating_add(transport)
    }
    /// The captured part of the payload; `None` if there is payload, but no byte of it was captured.
    pub(super) fn payload(&self) -> Option<&'a [u8]> {
        match &self.ip {
            Some(ip) => {
                let at = self.payload_at(ip);
                ip.captured.get(at..).filter(|p| !p.is_empty() || ip.len == at)
            }
            None => Some(self.data),
        }
    }
    pub(super) fn payload_len(&self) -> Option<usize> {
        match &self.ip {
            Some(ip) => ip.len.checked_sub(self.payload_at(ip)),
            None => Some(self.wire_len()),
        }
    }
}

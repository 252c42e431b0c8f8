// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a record, and the packet made from them.

use super::field_type::Value;
use super::words::LATER;
use castanet_classify::names;
use castanet_wire::checksum;
use castanet_wire::ipv4::{DONT_FRAGMENT, MORE_FRAGMENTS, OFFSET_MASK, protocol};

/// Default values for fields that records do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The IP protocol.
    pub protocol: u8,
    /// The time to live.
    pub ttl: u8,
    /// The source address.
    pub src: u32,
    /// The destination address.
    pub dst: u32,
    /// The source port.
    pub sport: u16,
    /// The destination port.
    pub dport: u16,
    /// The aggregate annotation.
    pub aggregate: u32,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults { protocol: protocol::TCP, ttl: 100, src: 0, dst: 0, sport: 0, dport: 0, aggregate: 0 }
    }
}

/// The fields of a record; missing fields are `None`.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub(super) time: Option<i64>,
    pub(super) seconds: Option<u32>,
    pub(super) micros: Option<u32>,
    pub(super) first_time: Option<i64>,
    pub(super) count: Option<u32>,
    pub(super) paint: Option<u8>,
    pub(super) aggregate: Option<u32>,
    pub(super) wire_len: Option<u32>,
    pub(super) src: Option<u32>,
    pub(super) dst: Option<u32>,
    pub(super) dscp: Option<u8>,
    pub(super) ecn: Option<u8>,
    pub(super) ttl: Option<u8>,
    pub(super) fragment: Option<u8>,
    pub(super) fragment_offset: Option<u16>,
    pub(super) id: Option<u16>,
    pub(super) sum: Option<u16>,
    pub(super) protocol: Option<u8>,
    pub(super) header_len: Option<u8>,
    pub(super) len: Option<u32>,
    pub(super) capture_len: Option<u32>,
    pub(super) ip_options: Option<Vec<u8>>,
    pub(super) sport: Option<u16>,
    pub(super) dport: Option<u16>,
    pub(super) icmp_type: Option<u8>,
    /// The low byte is the ICMP code. If the record gives the code by name, the high byte is an ICMP type that has a
    /// code of this name.
    pub(super) icmp_code: Option<u16>,
    pub(super) icmp_id: Option<u16>,
    pub(super) icmp_seq: Option<u16>,
    pub(super) icmp_mtu: Option<u16>,
    pub(super) eth_src: Option<Vec<u8>>,
    pub(super) eth_dst: Option<Vec<u8>>,
    pub(super) eth_type: Option<u16>,
    pub(super) payload: Option<Vec<u8>>,
    pub(super) payload_len: Option<u32>,
    pub(super) tcp_seq: Option<u32>,
    pub(super) tcp_ack: Option<u32>,
    pub(super) tcp_off: Option<u8>,
    pub(super) tcp_flags: Option<u16>,
    pub(super) tcp_window: Option<u16>,
    pub(super) tcp_urgent: Option<u16>,
    pub(super) tcp_options: Option<Vec<u8>>,
    pub(super) some_tcp_options: Option<Vec<u8>>,
    pub(super) udp_len: Option<u16>,
}

/// How to make a packet from a record.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Whether to write all bytes of the packet and to compute its checksums. If false, only the headers are written,
    /// with the checksums of the record, and the payload if the record has it.
    pub checksum: bool,
    /// Maximum number of bytes to write. [`Made::extra_length`] is the number of further bytes of the packet.
    pub most: usize,
    /// The index of the packet to make, from 0, and the number of packets that the record represents. The length in the
    /// record is divided among these packets.
    pub part: (u32, u32),
}

/// The metadata of a made packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// The time of the packet, in nanoseconds since 1970; 0 if unknown.
    pub time: i64,
    /// The time of the first packet that this packet represents, in nanoseconds since 1970; 0 if unknown.
    pub first_time: i64,
    /// The number of packets that this packet represents.
    pub count: u32,
    /// The paint annotation.
    pub paint: u8,
    /// The aggregate annotation.
    pub aggregate: u32,
    /// The number of bytes that belong to the packet but were not written to the output.
    pub extra_length: u32,
    /// Length of the link header in bytes; 0 if there is none.
    pub link: usize,
    /// Length of the IP header in bytes; 0 if there is none.
    pub header: usize,
    /// The destination address.
    pub dst: u32,
}

/// Length of an Ethernet header, in bytes.
const ETHER: usize = 14;

/// Writes bytes at an offset, if they fit.
fn set<const N: usize>(out: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = out.get_mut(at..).and_then(|o| o.first_chunk_mut()) {
        *place = value;
    }
}

/// Returns the length in bytes of a header's options. This is the greater of two lengths: that of `said`, which holds
/// the options padded to a multiple of four bytes, and the length that `header_len` leaves for options.
fn options(said: Option<&Vec<u8>>, header_len: Option<u8>) -> usize {
    let wanted = header_len.map_or(0, |n| usize::from(n.min(60) / 4 * 4).saturating_sub(20));
    said.map_or(0, Vec::len).max(wanted)
}

impl Draft {
    /// The number of packets that the record represents.
    pub fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }
    /// Sets TCP options from a field that shows only some of them. If several such fields are given, the
    /// longest value is kept.
    pub(super) fn some_tcp_options(&mut self, v: &Value<'_>) {
        if self.some_tcp_options.as_ref().is_none_or(|o| o.len() < v.bytes().len()) {
            self.some_tcp_options = Some(v.bytes().to_vec());
        }
    }
    /// The time in nanoseconds since 1970, from the time fields that the record has.
    pub fn time(&self) -> i64 {
        let parts = || {
            let (s, us) = (i64::from(self.seconds.unwrap_or(0)), i64::from(self.micros.unwrap_or(0)));
            s * 1_000_000_000 + us * 1000
        };
        self.time.unwrap_or_else(parts)
    }
    /// Returns the time of packet number `part` of the `parts` packets that the record stands for. The time is
    /// interpolated between the record's first and last time if both are known. Otherwise it is the last time.
    fn time_of(&self, (part, parts): (u32, u32)) -> i64 {
        let last = self.time();
        match self.first_time.filter(|f| *f > 0 && *f < last) {
            Some(first) if parts > 1 => {
                let span = i128::from(last) - i128::from(first);
                let at = i128::from(first) + span * i128::from(part) / i128::from(parts - 1);
                i64::try_from(at).unwrap_or(last)
            }
            _ => last,
        }
    }
    /// Whether the record has a field that only IP packets have.
    fn is_ip(&self) -> bool {
        self.src.is_some()
            || self.dst.is_some()
            || self.protocol.is_some()
            || self.len.is_some()
            || self.sport.is_some()
            || self.dport.is_some()
            || self.ttl.is_some()
            || self.id.is_some()
    }
    fn fragment_bits(&self) -> u16 {
        let letter = match self.fragment {
            Some(b'!') => DONT_FRAGMENT,
            Some(b'F') => MORE_FRAGMENTS,
            Some(b'f') => LATER as u16,
            _ => 0,
        };
        self.fragment_offset.unwrap_or(letter)
    }

    /// Makes a packet: writes its data to `out` and returns its metadata.
    pub fn make(&self, defaults: &Defaults, making: Making, out: &mut Vec<u8>) -> Made {
        out.clear();
        let has_link = self.eth_src.is_some() || self.eth_dst.is_some() || self.eth_type.is_some();
        let has_ip = self.eth_type.is_none_or(|t| t == castanet_wire::ether::ethertype::IPV4) || self.is_ip();
        let link = if has_link { ETHER } else { 0 };
        if has_link {
            let address = |a: &Option<Vec<u8>>| a.as_ref().and_then(|a| a.first_chunk::<6>().copied());
            out.extend(address(&self.eth_dst).unwrap_or([0; 6]));
            out.extend(address(&self.eth_src).unwrap_or([0; 6]));
            out.extend(self.eth_type.unwrap_or(castanet_wire::ether::ethertype::IPV4).to_be_bytes());
        }
        let (mut header, mut total) = (0, 0);
        if has_ip {
            (header, total) = self.make_ip(defaults, making, link, out);
        } else if let Some(payload) = &self.payload {
            out.extend_from_slice(payload);
        }
        let said = |n: Option<u32>| n.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let mut whole = link.saturating_add(total);
        if self.len.is_none() || !has_ip {
            whole = whole.max(said(self.wire_len));
        }
        // An IP length in the record may shorten the packet, but not its IP header.
        whole = match self.len.filter(|_| has_ip) {
            Some(_) => whole.max(link.saturating_add(header)),
            None => whole.max(out.len()),
        };
        let mut most = making.most;
        if let Some(n) = self.capture_len.filter(|_| has_ip) {
            let n = usize::try_from(n).unwrap_or(usize::MAX).max(header).saturating_add(link);
            out.resize(n.min(whole).min(most), 0);
        }
        if making.checksum {
            out.resize(whole.min(most), 0);
        }
        most = most.min(whole);
        out.truncate(most);
        if making.checksum
            && has_ip
            && let Some(ip) = out.get_mut(link..)
        {
            set_checksums(ip, header, total);
        }
        Made {
            time: self.time_of(making.part),
            first_time: self.first_time.unwrap_or(0),
            count: self.count(),
            paint: self.paint.unwrap_or(0),
            aggregate: self.aggregate.unwrap_or(defaults.aggregate),
            extra_length: u32::try_from(whole - out.len()).unwrap_or(u32::MAX),
            link,
            header: header.min(out.len().saturating_sub(link)),
            dst: self.dst.unwrap_or(defaults.dst),
        }
    }

    /// Appends the headers of an IP packet, and the payload if the record has it. Returns the length of the
    /// IP header and the total length of the packet.
    fn make_ip(&self, defaults: &Defaults, making: Making, link: usize, out: &mut Vec<u8>) -> (usize, usize) {
        let options_len = options(self.ip_options.as_ref(), self.header_len);
        let header = 20 + options_len;
        let fragment = self.fragment_bits();
        let kind = self.protocol.unwrap_or(defaults.protocol);
        let start = out.len();
        out.resize(start + header, 0);
        if fragment & OFFSET_MASK == 0 {
            self.make_transport(defaults, kind, out);
        }
        let mut headers = out.len() - start;
        let payload = self.payload.as_deref().unwrap_or_default();
        if kind == protocol::ICMP && fragment & OFFSET_MASK == 0 {
            // The payload of ICMP begins with the ICMP header.
            headers = header;
            self.put_icmp_payload(payload, start + header, out);
        } else {
            out.extend_from_slice(payload);
        }
        let said = |n: Option<u32>| n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let total = said(self.len)
            .or_else(|| said(self.payload_len).map(|n| headers.saturating_add(n)))
            .or_else(|| self.udp_len.filter(|_| kind == protocol::UDP).map(|n| header + usize::from(n)))
            .or_else(|| self.wire_len.map(|n| (n as usize).saturating_sub(link).max(out.len() - start)));
        let total = share(total.unwrap_or(out.len() - start), making.part, headers);
        let ip = out.get_mut(start..).unwrap_or_default();
        let nibble = self.header_len.map_or(header / 4, |n| usize::from(n / 4).min(15));
        let nibble = if options_len > 0 { nibble.max(header / 4) } else { nibble };
        set(ip, 0, [0x40 | nibble as u8]);
        set(ip, 1, [self.dscp.unwrap_or(0) << 2 | self.ecn.unwrap_or(0)]);
        set(ip, 2, u16::try_from(total).unwrap_or(u16::MAX).to_be_bytes());
        set(ip, 4, self.id.unwrap_or(0).to_be_bytes());
        set(ip, 6, fragment.to_be_bytes());
        set(ip, 8, [self.ttl.unwrap_or(defaults.ttl), kind]);
        set(ip, 10, self.sum.unwrap_or(0).to_be_bytes());
        set(ip, 12, self.src.unwrap_or(defaults.src).to_be_bytes());
        set(ip, 16, self.dst.unwrap_or(defaults.dst).to_be_bytes());
        if let Some((said, place)) = self.ip_options.as_ref().zip(ip.get_mut(20..header)) {
            place.iter_mut().zip(said).for_each(|(to, from)| *to = *from);
        }
        if kind == protocol::UDP && fragment & OFFSET_MASK == 0 {
            let len = total.saturating_sub(header);
            let len = self.udp_len.unwrap_or(u16::try_from(len).unwrap_or(u16::MAX));
            set(ip, header + 4, len.to_be_bytes());
        }
        (header, total)
    }

    /// Writes the ICMP fields of the record to an ICMP header.
    fn put_icmp(&self, header: &mut [u8]) {
        if let Some(kind) = self.icmp_type {
            set(header, 0, [kind]);
        }
        if let Some(code) = self.icmp_code {
            let [named, code] = code.to_be_bytes();
            let name = names::icmp_code_name(named, code).filter(|_| named > 0);
            let meant = name.zip(self.icmp_type).and_then(|(name, kind)| names::icmp_code_number(kind, name));
            set(header, 1, [meant.unwrap_or(code)]);
        }
        if let Some(id) = self.icmp_id {
            set(header, 4, id.to_be_bytes());
        }
        let error = self.icmp_type == Some(castanet_wire::icmp::kind::UNREACHABLE);
        let last = if error { self.icmp_mtu.or(self.icmp_seq) } else { self.icmp_seq.or(self.icmp_mtu) };
        if let Some(last) = last {
            set(header, 6, last.to_be_bytes());
        }
    }

    /// Writes the payload of an ICMP packet at offset `at`. The payload begins with the ICMP header. The ICMP fields of
    /// the record then overwrite this header.
    fn put_icmp_payload(&self, payload: &[u8], at: usize, out: &mut Vec<u8>) {
        let end = at.saturating_add(payload.len());
        out.resize(out.len().max(end), 0);
        if let Some(place) = out.get_mut(at..end) {
            place.copy_from_slice(payload);
        }
        self.put_icmp(out.get_mut(at..).unwrap_or_default());
    }

    /// Appends a transport header.
    fn make_transport(&self, defaults: &Defaults, kind: u8, out: &mut Vec<u8>) {
        let at = out.len();
        let ports = [self.sport.unwrap_or(defaults.sport), self.dport.unwrap_or(defaults.dport)];
        let two = |out: &mut Vec<u8>| ports.iter().for_each(|p| out.extend(p.to_be_bytes()));
        match kind {
            protocol::TCP => {
                let said = self.tcp_options.as_ref().or(self.some_tcp_options.as_ref());
                let options_len = options(said, self.tcp_off);
                two(out);
                out.resize(at + 20 + options_len, 0);
                let header = out.get_mut(at..).unwrap_or_default();
                let words = self.tcp_off.map_or(5 + options_len / 4, |n| usize::from(n / 4).min(15));
                let words = if options_len > 0 { words.max(5 + options_len / 4) } else { words };
                set(header, 4, self.tcp_seq.unwrap_or(0).to_be_bytes());
                set(header, 8, self.tcp_ack.unwrap_or(0).to_be_bytes());
                let flags = self.tcp_flags.unwrap_or(0) & 0xfff;
                set(header, 12, ((words as u16) << 12 | flags).to_be_bytes());
                set(header, 14, self.tcp_window.unwrap_or(0).to_be_bytes());
                set(header, 18, self.tcp_urgent.unwrap_or(0).to_be_bytes());
                if let Some((said, place)) = said.zip(header.get_mut(20..)) {
                    place.iter_mut().zip(said).for_each(|(to, from)| *to = *from);
                }
            }
            protocol::UDP => {
                two(out);
                out.resize(at + 8, 0);
            }
            protocol::ICMP => {
                out.resize(at + 8, 0);
                self.put_icmp(out.get_mut(at..).unwrap_or_default());
            }
            protocol::DCCP | protocol::UDP_LITE if self.sport.is_some() || self.dport.is_some() => two(out),
            _ => {}
        }
    }
}

/// Returns the length of packet number `part` when the length `total` is divided among `parts` packets. If there
/// are several packets, each is at least as long as its headers.
fn share(total: usize, (part, parts): (u32, u32), headers: usize) -> usize {
    let (part, parts) = (part as usize, parts.max(1) as usize);
    if parts == 1 {
        return total;
    }
    (total / parts + usize::from(part < total % parts)).max(headers)
}

/// Sets the checksum of the IP header and, if the packet is complete, that of the transport header.
fn set_checksums(ip: &mut [u8], header: usize, total: usize) {
    let (Some(kind), Some(fragment)) = (ip.get(9).copied(), ip.get(6..8).and_then(|f| f.first_chunk::<2>()))
    else {
        return;
    };
    let part = u16::from_be_bytes(*fragment) & (OFFSET_MASK | MORE_FRAGMENTS) != 0;
    set(ip, 10, [0, 0]);
    if let Some(h) = ip.get(..header) {
        let sum = checksum::ipv4_header_checksum(h);
        set(ip, 10, sum.to_be_bytes());
    }
    let address =
        |at: usize| ip.get(at..).and_then(|a| a.first_chunk()).map_or(0, |a| u32::from_be_bytes(*a));
    let (src, dst) = (address(12), address(16));
    let Some(segment) = ip.get_mut(header..total).filter(|_| !part) else { return };
    match kind {
        protocol::TCP if segment.len() >= 20 => castanet_wire::tcp::set_checksum(src, dst, segment),
        protocol::UDP if segment.len() >= 8 => castanet_wire::udp::set_checksum(src, dst, segment),
        protocol::ICMP if segment.len() >= 8 => castanet_wire::icmp::set_checksum(segment),
        _ => {}
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segmentation of super-packets in software.

use super::vnet::{BadOffload, VnetHeader};
use castanet_wire::checksum;

/// The first header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An Ethernet header, possibly with VLAN tags.
    Ethernet,
    /// An IP header.
    Ip,
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The segments of a TCP or UDP super-packet. Only the super-packet is stored; [`Segments::write`] makes one segment at
/// a time.
///
/// - TCP: sequence numbers continue from segment to segment. If the super-packet has FIN or PSH, only the last segment
///   has it (RFC 9293 section 3.9.1). If the super-packet has CWR, only the first segment has it (RFC 3168 section
///   6.1.2).
/// - UDP: all datagrams except the last have the same size.
/// - IPv4: identifications are consecutive (RFC 6864 section 4.2).
///
/// Each segment has its own length and checksums.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    ip: usize,
    transport: usize,
    size: usize,
    count: usize,
    v6: bool,
    udp: bool,
    /// Whether the segments have a checksum. False if the super-packet is UDP over IPv4 without a checksum (RFC
    /// 768).
    checksum: bool,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(field) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
        *field = value;
    }
}

/// Returns the offset of the IP header, and whether the header is IPv6. Returns `None` if the frame has no IP header.
fn ip_header(frame: &[u8], start: Start) -> Option<(usize, bool)> {
    if start == Start::Ip {
        return Some((0, frame.first()? >> 4 == 6));
    }
    let mut at = 12;
    // At most three Ethernet types: those of two VLAN tags (IEEE 802.1ad), and that of the packet.
    for _ in 0..3 {
        match be16(frame, at)? {
            0x8100 | 0x88a8 => at += 4,
            0x0800 => return Some((at + 2, false)),
            0x86dd => return Some((at + 2, true)),
            _ => return None,
        }
    }
    None
}

impl<'a> Segments<'a> {
    /// Returns the segments of a super-packet. A super-packet whose payload fits into one segment becomes a single
    /// segment with a complete checksum.
    ///
    /// # Errors
    /// When `vnet` does not describe a TCP or UDP super-packet or has no segment size, or when the headers
    /// contradict `vnet`.
    pub fn new(frame: &'a [u8], vnet: &VnetHeader, start: Start) -> Result<Segments<'a>, BadOffload> {
        let udp = match vnet.gso_type & !VnetHeader::ECN {
            VnetHeader::TCP4 | VnetHeader::TCP6 => false,
            VnetHeader::UDP => true,
            _ => return Err(BadOffload::Kind),
        };
        let size = usize::from(vnet.gso_size);
        if size == 0 {
            return Err(BadOffload::Size);
        }
        Segments::parse(frame, vnet, start, udp, size).ok_or(BadOffload::Headers)
    }

    fn parse(
        frame: &'a [u8],
        vnet: &VnetHeader,
        start: Start,
        udp: bool,
        size: usize,
    ) -> Option<Segments<'a>> {
        let (ip, v6) = ip_header(frame, start)?;
        let wanted = match vnet.gso_type & !VnetHeader::ECN {
            VnetHeader::TCP4 => !v6,
            VnetHeader::TCP6 => v6,
            _ => true,
        };
        let network = frame.get(ip..)?;
        let version = network.first()? >> 4;
        if !wanted || version != if v6 { 6 } else { 4 } {
            return None;
        }
        let (least, protocol, total) = if v6 {
            (40, *network.get(6)?, usize::from(be16(network, 4)?).saturating_add(40))
        } else {
            (usize::from(network.first()? & 15) * 4, *network.get(9)?, usize::from(be16(network, 2)?))
        };
        if !v6 && least < 20 {
            return None;
        }
        let transport = if vnet.needs_checksum() {
            if usize::from(vnet.checksum_offset) != if udp { 6 } else { 16 } {
                return None;
            }
            usize::from(vnet.checksum_start)
        } else {
            ip.checked_add(least)?
        };
        // An IPv6 header may be followed by extension headers; in IPv4 the transport header follows directly.
        let direct = transport == ip.checked_add(least)?;
        let carried = protocol == if udp { 17 } else { 6 };
        if transport < ip.checked_add(least)? || (!direct && !v6) || (direct && !carried) {
            return None;
        }
        let header = if udp { 8 } else { usize::from(frame.get(transport.checked_add(12)?)? >> 4) * 4 };
        let headers = transport.checked_add(header)?;
        if header < if udp { 8 } else { 20 } || headers > frame.len() {
            return None;
        }
        // Bytes after the packet are padding. A length field of 0 means a packet longer than 65535 bytes.
        let end = ip.checked_add(total)?.min(frame.len());
        let end = if end < headers { frame.len() } else { end };
        let payload = frame.get(headers..end)?;
        Some(Segments {
            headers: frame.get(..headers)?,
            payload,
            ip,
            transport,
            size,
            count: payload.len().div_ceil(size).max(1),
            v6,
            udp,
            checksum: !udp || v6 || vnet.needs_checksum() || be16(frame, transport.checked_add(6)?)? != 0,
        })
    }

    /// The number of segments, at least one.
    pub fn count(&self) -> usize {
        self.count
    }

    fn part(&self, i: usize) -> &'a [u8] {
        let from = i.saturating_mul(self.size).min(self.payload.len());
        let to = from.saturating_add(self.size).min(self.payload.len());
        self.payload.get(from..to).unwrap_or_default()
    }

    /// The length of segment `i` in bytes, headers included.
    pub fn len_of(&self, i: usize) -> usize {
        self.headers.len().saturating_add(self.part(i).len())
    }

    /// Writes segment `i` to `out`. Returns false and writes nothing if there is no segment `i`, or if `out` does
    /// not have exactly [`Segments::len_of`] bytes.
    pub fn write(&self, i: usize, out: &mut [u8]) -> bool {
        let part = self.part(i);
        let n = self.headers.len();
        if i >= self.count || out.len() != n.saturating_add(part.len()) {
            return false;
        }
        let (headers, payload) = out.split_at_mut(n);
        headers.copy_from_slice(self.headers);
        payload.copy_from_slice(part);
        let length = |from: usize| {
            u16::try_from(n.saturating_add(part.len()).saturating_sub(from)).unwrap_or(u16::MAX)
        };
        if self.v6 {
            put(out, self.ip + 4, length(self.ip + 40).to_be_bytes());
        } else {
            put(out, self.ip + 2, length(self.ip).to_be_bytes());
            let id = be16(self.headers, self.ip + 4).unwrap_or(0).wrapping_add(i as u16);
            put(out, self.ip + 4, id.to_be_bytes());
            put(out, self.ip + 10, [0; 2]);
            let header = out.get(self.ip..self.ipv4_end()).unwrap_or_default();
            let sum = checksum::checksum(header);
            put(out, self.ip + 10, sum.to_be_bytes());
        }
        if self.udp {
            put(out, self.transport + 4, length(self.transport).to_be_bytes());
        } else {
            self.tcp(i, out);
        }
        if self.checksum {
            self.sum(out);
        }
        true
    }

    fn ipv4_end(&self) -> usize {
        let words = self.headers.get(self.ip).map_or(5, |b| usize::from(b & 15));
        self.ip.saturating_add(words * 4)
    }

    fn tcp(&self, i: usize, out: &mut [u8]) {
        let t = self.transport;
        let first =
            self.headers.get(t + 4..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b));
        let sequence = first.wrapping_add(i.saturating_mul(self.size) as u32);
        put(out, t + 4, sequence.to_be_bytes());
        if let Some(flags) = out.get_mut(t + 13) {
            if i + 1 < self.count {
                *flags &= !(FIN | PSH);
            }
            if i > 0 {
                *flags &= !CWR;
            }
        }
    }

    /// Sets the checksum over pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1), transport header
    /// and payload. Only UDP sends a checksum of zero as all ones (RFC 768).
    fn sum(&self, out: &mut [u8]) {
        let at = self.transport + if self.udp { 6 } else { 16 };
        put(out, at, [0; 2]);
        let addresses = if self.v6 { self.ip + 8..self.ip + 40 } else { self.ip + 12..self.ip + 20 };
        let covered = out.get(self.transport..).unwrap_or_default();
        // The cast is lossless: a segment has at most 65535 bytes and a link header.
        let length = covered.len() as u32;
        let mut sum = checksum::sum(out.get(addresses).unwrap_or_default());
        for word in
            [(length >> 16) as u16, length as u16, if self.udp { 17 } else { 6 }, checksum::sum(covered)]
        {
            sum = checksum::add(sum, word);
        }
        let sum = if self.udp && sum == 0xffff { 0xffff } else { !sum };
        put(out, at, sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;

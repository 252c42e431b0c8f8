// SPDX-License-Identifier: MIT OR Apache-2.0
//! Super-packets cut into the segments that would have come without offloads.

use super::vnet::{BadOffload, VnetHeader};
use castanet_wire::checksum;

/// What a frame starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// An Ethernet header, perhaps with VLAN tags behind it.
    Ethernet,
    /// An IP header.
    Ip,
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The segments of a TCP or UDP super-packet. Each is written on its own, so nothing is held but the super-packet.
///
/// TCP: sequence numbers go on, FIN and PSH stay with the last segment (RFC 9293 section 3.9.1), CWR with the first (RFC 3168
/// section 6.1.2). UDP: every datagram but the last has the same size. IPv4 identifications count up (RFC 6864 section 4.2).
/// Lengths and checksums are those of each segment.
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
    /// UDP over IPv4 without checksum (RFC 768) stays without.
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

/// Where the IP header is, and whether it is one of IPv6.
fn ip_header(frame: &[u8], start: Start) -> Option<(usize, bool)> {
    if start == Start::Ip {
        return Some((0, frame.first()? >> 4 == 6));
    }
    let mut at = 12;
    // A tag within a tag is the most that there is (IEEE 802.1ad).
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
    /// The segments of a super-packet; one that is none is a single segment with completed checksum.
    ///
    /// # Errors
    /// When the headers contradict what `vnet` says.
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
        // Extension headers may stand between an IPv6 header and what it carries; nothing may in IPv4.
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
        // What stands behind the packet is padding; a length of 0 is that of a packet longer than 65535 bytes.
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

    /// How many segments there are, at least one.
    pub fn count(&self) -> usize {
        self.count
    }

    fn part(&self, i: usize) -> &'a [u8] {
        let from = i.saturating_mul(self.size).min(self.payload.len());
        let to = from.saturating_add(self.size).min(self.payload.len());
        self.payload.get(from..to).unwrap_or_default()
    }

    /// Bytes of segment `i`, headers included.
    pub fn len_of(&self, i: usize) -> usize {
        self.headers.len().saturating_add(self.part(i).len())
    }

    /// Writes segment `i`; false, and nothing useful written, unless `out` has exactly [`Segments::len_of`] bytes.
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

    /// The checksum over pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1), header and payload.
    fn sum(&self, out: &mut [u8]) {
        let at = self.transport + if self.udp { 6 } else { 16 };
        put(out, at, [0; 2]);
        let addresses = if self.v6 { self.ip + 8..self.ip + 40 } else { self.ip + 12..self.ip + 20 };
        let covered = out.get(self.transport..).unwrap_or_default();
        // A segment is not longer than a frame of 65535 bytes and its link header.
        let length = covered.len() as u32;
        let mut sum = checksum::sum(out.get(addresses).unwrap_or_default());
        for word in
            [(length >> 16) as u16, length as u16, if self.udp { 17 } else { 6 }, checksum::sum(covered)]
        {
            sum = checksum::add(sum, word);
        }
        let sum = if sum == 0xffff { 0xffff } else { !sum };
        put(out, at, sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    /// A super-packet: TCP or UDP, over IPv4 or IPv6, perhaps tagged.
    fn frame(v6: bool, udp: bool, tagged: bool, data: &[u8], flags: u8) -> Vec<u8> {
        let b = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let ip = |b: etherparse::PacketBuilderStep<etherparse::Ethernet2Header>| {
            if v6 { b.ipv6([3; 16], [4; 16], 60) } else { b.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 60) }
        };
        let mut out = Vec::new();
        if udp {
            ip(b).udp(7, 8).write(&mut out, data).unwrap();
        } else {
            let mut tcp = etherparse::TcpHeader::new(7, 8, 0xffff_fff0, 500);
            tcp.set_options_raw(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
            tcp.acknowledgment_number = 77;
            tcp.ack = true;
            ip(b).tcp_header(tcp).write(&mut out, data).unwrap();
            let t = if v6 { 54 } else { 34 };
            out[t + 13] |= flags;
        }
        if !v6 {
            out[18..20].copy_from_slice(&0xfffeu16.to_be_bytes());
        }
        if tagged {
            out.splice(12..12, [0x81, 0, 0, 5]);
        }
        out
    }

    fn vnet(v6: bool, udp: bool, tagged: bool, size: u16) -> VnetHeader {
        VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            gso_type: match (v6, udp) {
                (_, true) => VnetHeader::UDP,
                (true, _) => VnetHeader::TCP6,
                _ => VnetHeader::TCP4,
            },
            gso_size: size,
            header_len: 0,
            checksum_start: if v6 { 54 } else { 34 } + if tagged { 4 } else { 0 },
            checksum_offset: if udp { 6 } else { 16 },
        }
    }

    fn all(s: &Segments<'_>) -> Vec<Vec<u8>> {
        (0..s.count())
            .map(|i| {
                let mut out = vec![0xaa; s.len_of(i)];
                assert!(s.write(i, &mut out));
                out
            })
            .collect()
    }

    /// Checks segments against another parser; gives back the payload put together again.
    fn check(segments: &[Vec<u8>], size: usize, flags: u8) -> Vec<u8> {
        let mut data = Vec::new();
        for (i, bytes) in segments.iter().enumerate() {
            let last = i + 1 == segments.len();
            let p = SlicedPacket::from_ethernet(bytes).unwrap();
            if let Some(NetSlice::Ipv4(ip)) = &p.net {
                let h = ip.header();
                assert_eq!(h.to_header().calc_header_checksum(), h.header_checksum());
                assert_eq!(h.identification(), 0xfffeu16.wrapping_add(i as u16));
            }
            let part = match (&p.net, p.transport.unwrap()) {
                (Some(net), TransportSlice::Tcp(t)) => {
                    assert_eq!(t.sequence_number(), 0xffff_fff0u32.wrapping_add((i * size) as u32));
                    assert_eq!(t.acknowledgment_number(), 77);
                    assert_eq!(t.options(), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
                    let had = |bit: u8| flags & bit != 0;
                    assert_eq!((t.fin(), t.psh()), (had(FIN) && last, had(PSH) && last));
                    assert_eq!((t.cwr(), t.ack()), (had(CWR) && i == 0, true));
                    let header = t.to_header();
                    let sum = match net {
                        NetSlice::Ipv4(ip) => {
                            header.calc_checksum_ipv4(&ip.header().to_header(), t.payload())
                        }
                        NetSlice::Ipv6(ip) => {
                            header.calc_checksum_ipv6(&ip.header().to_header(), t.payload())
                        }
                        _ => panic!("no IP"),
                    };
                    assert_eq!(sum.unwrap(), t.checksum());
                    t.payload().to_vec()
                }
                (Some(net), TransportSlice::Udp(u)) => {
                    let header = u.to_header();
                    assert_eq!(usize::from(header.length), 8 + u.payload().len());
                    let sum = match net {
                        NetSlice::Ipv4(ip) => {
                            header.calc_checksum_ipv4(&ip.header().to_header(), u.payload())
                        }
                        NetSlice::Ipv6(ip) => {
                            header.calc_checksum_ipv6(&ip.header().to_header(), u.payload())
                        }
                        _ => panic!("no IP"),
                    };
                    assert_eq!(sum.unwrap(), u.checksum());
                    u.payload().to_vec()
                }
                _ => panic!("not TCP or UDP"),
            };
            assert!(if last { part.len() <= size } else { part.len() == size });
            data.extend(part);
        }
        data
    }

    #[test]
    fn segments_are_whole_packets() {
        let flags = FIN | PSH | CWR;
        for (v6, udp, tagged) in (0..8).map(|n| (n & 1 != 0, n & 2 != 0, n & 4 != 0)) {
            for (len, size, count) in [
                (1, 1, 1),
                (100, 1448, 1),
                (1448, 1448, 1),
                (1449, 1448, 2),
                (60_000, 1448, 42),
                (10, 1, 10),
                (0, 9, 1),
            ] {
                let data = payload(len);
                let frame = frame(v6, udp, tagged, &data, flags);
                let s = Segments::new(&frame, &vnet(v6, udp, tagged, size), Start::Ethernet).unwrap();
                assert_eq!(s.count(), count, "{v6} {udp} {tagged} {len} {size}");
                assert_eq!(check(&all(&s), usize::from(size), flags), data);
                // The same without a hint where the transport header is, and with padding behind the packet.
                let bare = VnetHeader { flags: 0, ..vnet(v6, udp, tagged, size) };
                let padded = [&frame[..], &[0xee; 5]].concat();
                let t = Segments::new(&padded, &bare, Start::Ethernet).unwrap();
                assert_eq!(all(&t), all(&s));
            }
        }
    }

    #[test]
    fn without_link_header() {
        let data = payload(5000);
        let frame = frame(false, false, false, &data, PSH);
        let v = VnetHeader { checksum_start: 20, ..vnet(false, false, false, 1000) };
        let s = Segments::new(&frame[14..], &v, Start::Ip).unwrap();
        let with: Vec<Vec<u8>> = all(&s).iter().map(|p| [&frame[..14], p].concat()).collect();
        assert_eq!(check(&with, 1000, PSH), data);
    }

    #[test]
    fn udp_without_checksum_stays_without() {
        let mut f = frame(false, true, false, &payload(30), 0);
        f[40..42].copy_from_slice(&[0, 0]);
        let v = VnetHeader { flags: 0, ..vnet(false, true, false, 20) };
        for s in all(&Segments::new(&f, &v, Start::Ethernet).unwrap()) {
            assert_eq!(&s[40..42], [0, 0]);
        }
    }

    #[test]
    fn contradictions_are_errors() {
        let f = frame(false, false, false, &payload(3000), 0);
        let good = vnet(false, false, false, 1000);
        let table = [
            (VnetHeader { gso_size: 0, ..good }, BadOffload::Size),
            (VnetHeader { gso_type: VnetHeader::UDP_FRAGMENTS, ..good }, BadOffload::Kind),
            (VnetHeader { gso_type: 99, ..good }, BadOffload::Kind),
            (VnetHeader { gso_type: 0, ..good }, BadOffload::Kind),
            (VnetHeader { gso_type: VnetHeader::TCP6, ..good }, BadOffload::Headers),
            (VnetHeader { gso_type: VnetHeader::UDP, ..good }, BadOffload::Headers),
            (VnetHeader { checksum_offset: 6, ..good }, BadOffload::Headers),
            (VnetHeader { checksum_start: 33, ..good }, BadOffload::Headers),
            (VnetHeader { checksum_start: 54, ..good }, BadOffload::Headers),
            (VnetHeader { checksum_start: u16::MAX, ..good }, BadOffload::Headers),
        ];
        for (v, error) in table {
            assert_eq!(Segments::new(&f, &v, Start::Ethernet).unwrap_err(), error, "{v:?}");
        }
        assert!(
            Segments::new(
                &f,
                &VnetHeader { gso_type: VnetHeader::TCP4 | VnetHeader::ECN, ..good },
                Start::Ethernet
            )
            .is_ok()
        );
        // Headers that are cut anywhere.
        for len in 0..66 {
            assert_eq!(
                Segments::new(&f[..len], &good, Start::Ethernet).unwrap_err(),
                BadOffload::Headers,
                "{len}"
            );
        }
        let s = Segments::new(&f, &good, Start::Ethernet).unwrap();
        assert!(!s.write(0, &mut [0; 10]) && !s.write(3, &mut [0; 66]));
    }

    proptest! {
        #[test]
        fn nothing_panics(mut f: Vec<u8>, flags: u8, kind in 0u8..8, size: u16, start: u16, offset in 0u16..20, v6: bool, at in 0usize..70, byte: u8) {
            let v = VnetHeader { flags, gso_type: kind, gso_size: size, header_len: 0, checksum_start: start, checksum_offset: offset };
            let mut like = frame(v6, kind & 1 != 0, false, &payload(200), flags);
            like[at] = byte;
            f.truncate(2000);
            for (f, v) in [(&f, v), (&like, v), (&like, VnetHeader { gso_size: size % 100, ..vnet(v6, kind & 1 != 0, false, 1) })] {
                for start in [Start::Ethernet, Start::Ip] {
                    if let Ok(s) = Segments::new(f, &v, start) {
                        prop_assert!(s.count() <= f.len().max(1));
                        all(&s);
                    }
                }
            }
        }
    }
}

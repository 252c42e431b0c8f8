// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats IP packets as lines of text.

use castanet_classify::names;
use castanet_packet::Packet;
use castanet_spec::anno::AGGREGATE;
use castanet_wire::icmp::{kind, unreachable};
use castanet_wire::ipv4::protocol::{ICMP, TCP, UDP};
use castanet_wire::{IcmpHeader, Ipv4Header, TcpHeader, UdpHeader};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// The format in which bytes are dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dump {
    /// As hexadecimal digits.
    Hex,
    /// As characters.
    Ascii,
}

/// Which parts of a packet its line shows.
pub(super) struct Line {
    pub(super) timestamp: bool,
    pub(super) aggregate: bool,
    pub(super) paint: bool,
    pub(super) id: bool,
    pub(super) ttl: bool,
    pub(super) tos: bool,
    pub(super) length: bool,
    pub(super) swap: bool,
    pub(super) contents: Option<Dump>,
    pub(super) payload: Option<Dump>,
    pub(super) max: usize,
}

/// Writes formatted text to a string. Such a write cannot fail, so the result is ignored.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { { let _ = write!($out, $($text)*); } };
}

impl Line {
    /// Appends the line for a packet, without a newline. `network` holds the packet's bytes from the network header on.
    pub(super) fn write(&self, out: &mut String, p: &Packet, network: &[u8]) {
        if self.timestamp {
            let t = p.timestamp();
            let (s, ns) = (t.div_euclid(1_000_000_000), t.rem_euclid(1_000_000_000));
            if ns % 1000 == 0 { put!(out, "{s}.{:06}: ", ns / 1000) } else { put!(out, "{s}.{ns:09}: ") }
        }
        match (self.aggregate, self.paint) {
            (true, true) => put!(out, "#{}.{}: ", p.anno_u32(AGGREGATE), p.paint()),
            (true, false) => put!(out, "#{}: ", p.anno_u32(AGGREGATE)),
            (false, true) => put!(out, "paint {}: ", p.paint()),
            (false, false) => {}
        }
        let mut payload = &[][..];
        match Ipv4Header::from_prefix(network) {
            None => out.push_str("truncated-ip"),
            Some(h) => {
                for (wanted, name, value) in [
                    (self.id, "id", h.id.get()),
                    (self.ttl, "ttl", h.ttl.into()),
                    (self.tos, "tos", h.tos.into()),
                    (self.length, "length", h.total_len.get()),
                ] {
                    if wanted {
                        put!(out, "{name} {value} ");
                    }
                }
                payload = self.body(out, p, h, network);
            }
        }
        if let Some(form) = self.contents {
            dump(out, form, p.data(), self.max);
        }
        if let Some(form) = self.payload {
            dump(out, form, payload, self.max);
        }
    }

    /// Appends the addresses and the transport header and, for a fragment, its offset in the packet. Returns the bytes
    /// after the transport header.
    fn body<'a>(&self, out: &mut String, p: &Packet, h: &Ipv4Header, network: &'a [u8]) -> &'a [u8] {
        let in_ip = h.payload_len();
        let transport = network.get(h.header_len()..).unwrap_or_default();
        let transport = transport.get(..in_ip).unwrap_or(transport);
        let (src, dst) = (Ipv4Addr::from_bits(h.src.get()), Ipv4Addr::from_bits(h.dst.get()));
        let mut rest = transport;
        match h.protocol {
            _ if !h.is_first_fragment() => {
                put!(out, "{src} > {dst}: ");
                protocol(out, h.protocol);
            }
            protocol @ (TCP | UDP) => {
                match *transport {
                    [s0, s1, d0, d1, ..] => {
                        let (sport, dport) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                        put!(out, "{src}.{sport} > {dst}.{dport}: ");
                    }
                    _ => put!(out, "{src} > {dst}: "),
                }
                rest = if protocol == TCP { tcp(out, p, h, transport) } else { udp(out, transport) };
            }
            ICMP => {
                put!(out, "{src} > {dst}: ");
                self.icmp(out, transport);
            }
            other => {
                put!(out, "{src} > {dst}: ");
                protocol(out, other);
            }
        }
        if h.is_fragment() {
            let more = if h.more_fragments() { "+" } else { "" };
            put!(out, " (frag {}:{in_ip}@{}{more})", h.id.get(), h.fragment_offset());
        }
        rest
    }

    fn icmp(&self, out: &mut String, message: &[u8]) {
        const CUT: &str = " truncated-icmp";
        let &[kind, code, ..] = message else { return out.push_str("truncated-icmp") };
        out.push_str("icmp");
        let header = IcmpHeader::split(message);
        let name = names::icmp_type_name(kind);
        match kind {
            kind::ECHO | kind::ECHO_REPLY => {
                put!(out, " {}", name.unwrap_or_default());
                let Some((h, _)) = header else { return out.push_str(CUT) };
                let order = |n: u16| if self.swap { n } else { n.swap_bytes() };
                put!(out, " ({}, {})", order(h.id()), order(h.sequence()));
            }
            kind::UNREACHABLE => {
                let quoted = header.and_then(|(_, rest)| Some((Ipv4Header::from_prefix(rest)?, rest)));
                if let Some((q, _)) = quoted {
                    put!(out, " {}", Ipv4Addr::from_bits(q.dst.get()));
                }
                out.push_str(" unreachable");
                icmp_code(out, kind, code);
                let (Some((q, rest)), Some((h, _))) = (quoted, header) else { return out.push_str(CUT) };
                match code {
                    unreachable::PROTOCOL => {
                        out.push(' ');
                        protocol(out, q.protocol);
                    }
                    unreachable::PORT => {
                        out.push(' ');
                        protocol(out, q.protocol);
                        let ports = rest.get(q.header_len()..).and_then(|t| t.first_chunk::<4>());
                        match ports {
                            Some(&[_, _, d0, d1]) => put!(out, "/{}", u16::from_be_bytes([d0, d1])),
                            None => out.push_str(CUT),
                        }
                    }
                    unreachable::NEED_FRAGMENT => put!(out, " (mtu {})", h.next_mtu()),
                    _ => {}
                }
            }
            _ => {
                match name {
                    Some(name) => put!(out, " {name}"),
                    None => put!(out, " type {kind}"),
                }
                icmp_code(out, kind, code);
            }
        }
    }
}

fn icmp_code(out: &mut String, kind: u8, code: u8) {
    match names::icmp_code_name(kind, code) {
        Some(name) => put!(out, " {name}"),
        None if code == 0 => {}
        None => put!(out, " code {code}"),
    }
}

fn protocol(out: &mut String, number: u8) {
    match number {
        TCP => out.push_str("tcp"),
        UDP => out.push_str("udp"),
        ICMP => out.push_str("icmp"),
        n => put!(out, "ip-proto-{n}"),
    }
}

fn udp<'a>(out: &mut String, transport: &'a [u8]) -> &'a [u8] {
    match UdpHeader::split(transport) {
        Some((h, rest)) => {
            put!(out, "udp {}", h.len.get());
            rest
        }
        None => {
            out.push_str("truncated-udp");
            &[]
        }
    }
}

fn tcp<'a>(out: &mut String, p: &Packet, h: &Ipv4Header, transport: &'a [u8]) -> &'a [u8] {
    // The TCP flags end at byte 14 of the header, and the window ends at byte 16.
    if transport.len() < 14 {
        out.push_str("truncated-tcp");
        return &[];
    }
    let mut whole = [0; TcpHeader::LEN];
    whole.iter_mut().zip(transport).for_each(|(to, from)| *to = *from);
    let Some(t) = TcpHeader::from_prefix(&whole) else { return &[] };
    let flags = whole[13];
    let letters = [(2, 'S'), (1, 'F'), (4, 'R'), (8, 'P')];
    if flags & 15 == 0 {
        out.push('.');
    }
    out.extend(letters.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, c)| c));
    let data = h.payload_len().saturating_sub(t.header_len());
    let length = data as u32 + u32::from(flags >> 1 & 1) + u32::from(flags & 1);
    let seq = t.seq.get();
    put!(out, " {seq}:{}({length},{},{})", seq.wrapping_add(length), p.len(), h.total_len.get());
    if flags & 0x10 != 0 {
        put!(out, " ack {}", t.ack.get());
    }
    if transport.len() < 16 {
        out.push_str("truncated-tcp");
    } else {
        put!(out, " win {}", t.window.get());
    }
    transport.get(t.header_len()..).unwrap_or_default()
}

/// Appends a dump of at most `max` bytes, divided into lines and groups.
fn dump(out: &mut String, form: Dump, bytes: &[u8], max: usize) {
    let bytes = bytes.get(..max).unwrap_or(bytes);
    let (line, group) = match form {
        Dump::Hex => (24, 4),
        Dump::Ascii => (48, 8),
    };
    for bytes in bytes.chunks(line) {
        out.push_str("\n ");
        for bytes in bytes.chunks(group) {
            out.push(' ');
            for &b in bytes {
                match form {
                    Dump::Hex => put!(out, "{b:02x}"),
                    Dump::Ascii => out.push(if (32..127).contains(&b) { char::from(b) } else { '.' }),
                }
            }
        }
    }
}

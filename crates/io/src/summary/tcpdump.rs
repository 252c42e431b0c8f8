// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads lines that tcpdump printed. A packet takes one line, or two lines with the IP header on the first.
//!
//! Two forms are supported: the current form (`Flags [S], seq 1, win 512, length 0`) and the form before version 4 (`S
//! 1:1(0) win 512`). Lines may have a time, and the details that `-v` adds. Addresses must be numbers (`-n`).

use super::draft::Draft;
use super::options::parse_tcp;
use super::words::{DONT, MORE, OFFSET, parse_time};
use castanet_classify::names;
use castanet_wire::ipv4::protocol;
use std::net::Ipv4Addr;

const DAY: i64 = 86_400_000_000_000;
/// The protocol number of packets whose protocol name is unknown. IANA reserves this number.
const UNKNOWN: u8 = 255;

/// The result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The line completes a packet. The draft has the packet's fields.
    Packet,
    /// The line does not complete an IPv4 packet. It shows a packet of another protocol, details of the previous
    /// packet, or the IP header of a packet whose second line follows.
    Nothing,
    /// The line could not be parsed.
    Bad,
}

/// Reads the lines of one file.
#[derive(Default)]
pub(super) struct Parser {
    /// The IP header of a packet whose second line has not been read yet.
    header: Option<Draft>,
    /// For times without a date: the time of day in the previous line, in nanoseconds.
    clock: i64,
    /// For times without a date: the start of the current day, in nanoseconds. The next day begins when the time of
    /// day goes back by more than 12 hours.
    day: i64,
}

/// The number that follows a word. In `ttl 1, id 2`, the number for the word `ttl` is 1.
fn number<T: std::str::FromStr>(text: &str, word: &str) -> Option<T> {
    let mut words = text.split_ascii_whitespace();
    words.find(|w| *w == word)?;
    let end = |c: char| !c.is_ascii_digit();
    words.next()?.split(end).next()?.parse().ok()
}

/// Returns the text between two characters, and the text after them. If pairs are nested, the outermost pair
/// is used.
fn between(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let start = text.find(open)?;
    let mut depth = 0_usize;
    for (i, c) in text.get(start..)?.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some((
                    text.get(start + open.len_utf8()..start + i)?,
                    text.get(start + i + close.len_utf8()..)?,
                ));
            }
        }
    }
    None
}

/// The number of days from 1970-01-01 to a date.
fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|p| p.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some()
        || !(1970..10_000).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    // Count years from March, so that a leap day is the last day of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468)
}

impl Parser {
    /// Reads the time at the start of a line into the draft. Returns the rest of the line.
    fn time<'a>(&mut self, text: &'a str, draft: &mut Draft) -> &'a str {
        let (mut word, mut rest) = text.split_once(' ').unwrap_or((text, ""));
        let date = days(word);
        if date.is_some() {
            (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        }
        let mut parts = word.splitn(3, ':');
        let time = match (parts.next(), parts.next(), parts.next()) {
            (Some(h), Some(m), Some(s)) => {
                let (Some(h), Some(m), Some(s)) = (h.parse::<u8>().ok(), m.parse::<u8>().ok(), parse_time(s))
                else {
                    return text;
                };
                let clock = (i64::from(h) * 3600 + i64::from(m) * 60) * 1_000_000_000 + s.min(DAY);
                if clock < self.clock - DAY / 2 {
                    self.day = self.day.saturating_add(DAY);
                }
                self.clock = clock;
                date.map_or(self.day, |d| d.saturating_mul(DAY)).saturating_add(clock)
            }
            // Seconds since 1970. An address is not parsed as a time, because it has more than one dot.
            (Some(seconds), None, None) if seconds.contains('.') => match parse_time(seconds) {
                Some(time) => time,
                None => return text,
            },
            _ => return text,
        };
        draft.time = Some(time);
        rest.trim_start()
    }

    /// Reads a line.
    pub fn line(&mut self, line: &str, draft: &mut Draft) -> Parsed {
        let header = self.header.take();
        let text = line.trim();
        if text.is_empty() {
            return Parsed::Nothing;
        }
        if line.starts_with([' ', '\t']) {
            let Some(header) = header else { return Parsed::Nothing };
            *draft = header;
            return packet(text, draft);
        }
        *draft = Draft::default();
        let text = self.time(text, draft);
        let mut rest = text.strip_prefix("IP ").unwrap_or(text);
        if rest.starts_with('(')
            && let Some((details, after)) = between(rest, '(', ')')
        {
            ip_header(details, draft);
            rest = after.trim_start();
            if rest.is_empty() {
                self.header = Some(std::mem::take(draft));
                return Parsed::Nothing;
            }
        }
        match rest.as_bytes().first() {
            Some(b'0'..=b'9') => packet(rest, draft),
            // The name of another protocol: `ARP, Request who-has`.
            Some(b) if b.is_ascii_alphabetic() && draft.time.is_some() && !text.starts_with("IP ") => {
                Parsed::Nothing
            }
            _ => Parsed::Bad,
        }
    }
}

/// Reads details of the IP header: `tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto TCP (6), length 60`.
fn ip_header(text: &str, draft: &mut Draft) {
    if let Some(hex) = text.split("tos 0x").nth(1) {
        type_of_service(hex, draft);
    }
    draft.ttl = number(text, "ttl").or(draft.ttl);
    draft.id = number(text, "id").or(draft.id);
    draft.len = number(text, "length").or_else(|| number(text, "len")).or(draft.len);
    let offset = (number::<u64>(text, "offset").unwrap_or(0) / 8) & OFFSET;
    let flags = text.split("flags [").nth(1).and_then(|f| f.split(']').next()).unwrap_or("");
    let dont = if flags.contains("DF") || text.starts_with("DF") { DONT } else { 0 };
    let more = if flags.contains('+') { MORE } else { 0 };
    fragment(offset | dont | more, draft);
    if let Some((kind, _)) = text.split("proto ").nth(1).and_then(|t| between(t, '(', ')')) {
        draft.protocol = kind.parse().ok();
    }
}

fn type_of_service(hex: &str, draft: &mut Draft) {
    let digits = hex.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap_or("");
    if let Ok(tos) = u8::from_str_radix(digits, 16) {
        (draft.dscp, draft.ecn) = (Some(tos >> 2), Some(tos & 3));
    }
}

/// Sets bits of the fragment offset field.
fn fragment(bits: u64, draft: &mut Draft) {
    draft.fragment_offset = Some(draft.fragment_offset.unwrap_or(0) | bits as u16);
}

/// Parses an address and the port after it.
fn address(text: &str) -> Option<(u32, Option<u16>)> {
    let points = text.match_indices('.').nth(3).map(|p| p.0);
    let (address, port) =
        points.map_or((text, None), |at| (text.get(..at).unwrap_or(""), text.get(at + 1..)));
    let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
    match port {
        Some(name) => Some((address, Some(name.parse().ok().or_else(|| names::port_number(name))?))),
        None => Some((address, None)),
    }
}

/// Reads `SOURCE > DESTINATION: text`.
fn packet(text: &str, draft: &mut Draft) -> Parsed {
    let parts = text.split_once(" > ").and_then(|(from, rest)| {
        let (to, rest) = rest.split_once(':')?;
        Some((address(from)?, address(to)?, rest.trim()))
    });
    let Some(((src, sport), (dst, dport), rest)) = parts else { return Parsed::Bad };
    (draft.src, draft.dst, draft.sport, draft.dport) = (Some(src), Some(dst), sport, dport);
    let mut in_parentheses = rest;
    let mut payload = number(rest, "length");
    while let Some((group, after)) = between(in_parentheses, '(', ')') {
        in_parentheses = after;
        if let Some(fragment) = group.strip_prefix("frag ") {
            old_fragment(fragment, draft);
        } else if ["DF", "ttl ", "id "].iter().any(|start| group.starts_with(start)) {
            ip_header(group, draft);
        } else if sport.is_some() && payload.is_none() && after.is_empty() {
            // After the message of an application protocol, tcpdump prints the length of the data in parentheses.
            payload = group.parse().ok();
        }
    }
    if let Some((_, hex)) = rest.split_once("[tos 0x") {
        type_of_service(hex, draft);
    }
    transport(rest, sport.is_some() && dport.is_some(), payload, draft);
    Parsed::Packet
}

/// Reads the details of a fragment: `ID:LENGTH@OFFSET+`.
fn old_fragment(text: &str, draft: &mut Draft) {
    let mut numbers = text.split([':', '@', '+']).map(|n| n.parse::<u32>().ok());
    let mut next = || numbers.next().flatten();
    if let (Some(id), Some(length), Some(offset)) = (next(), next(), next()) {
        draft.id = u16::try_from(id).ok();
        draft.len = Some(length.saturating_add(20));
        let more = if text.ends_with('+') { MORE } else { 0 };
        fragment((u64::from(offset) / 8) & OFFSET | more, draft);
    }
}

/// Whether a word holds TCP flags as tcpdump printed them before version 4.
fn is_flags(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b"SFRPUEW.".contains(&b))
}

/// Reads the text after the addresses.
fn transport(text: &str, ports: bool, payload: Option<u32>, draft: &mut Draft) {
    let first = text.split_ascii_whitespace().next().unwrap_or("");
    let name = first.trim_end_matches([',', ':']).to_ascii_lowercase();
    let known = draft.protocol;
    draft.payload_len = payload;
    match name.as_str() {
        "flags" => {
            let flags = between(text, '[', ']').map_or("", |f| f.0);
            tcp(text, flags, flags.contains('.'), draft);
        }
        "tcp" | "udp" => {
            draft.protocol = Some(if name == "tcp" { protocol::TCP } else { protocol::UDP });
            draft.payload_len = number(text, first).or(payload);
        }
        "icmp" => icmp(text, payload, draft),
        _ if ports && is_flags(first) => tcp(text, first, false, draft),
        _ if ports => draft.protocol = Some(protocol::UDP),
        _ => {
            let plain = name.strip_prefix("ip-proto-").map(str::to_string).unwrap_or(name);
            // The name may have a version: `GREv0`.
            let bare = plain.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('v');
            let named = plain.parse().ok().or_else(|| names::ip_proto_number(&plain));
            let named = named.or_else(|| names::ip_proto_number(bare));
            draft.protocol = Some(named.unwrap_or(UNKNOWN));
            draft.payload_len = payload.or_else(|| number(text, first));
        }
    }
    // A protocol in the details of the IP header takes precedence over the one found in the text after the addresses.
    draft.protocol = known.or(draft.protocol);
}

/// Reads a TCP segment.
fn tcp(text: &str, letters: &str, mut acknowledges: bool, draft: &mut Draft) {
    draft.protocol = Some(protocol::TCP);
    // The sequence number follows the word `seq`. Before version 4 it follows the flags: `1:101(100)`.
    let old = text.split_ascii_whitespace().nth(1).filter(|w| w.contains('('));
    let sequence = |w: &str| w.split(':').next().and_then(|n| n.parse().ok());
    draft.tcp_seq = number(text, "seq").or_else(|| old.and_then(sequence));
    if let Some((length, _)) = old.and_then(|w| between(w, '(', ')')) {
        draft.payload_len = length.parse().ok();
    }
    draft.tcp_ack = number(text, "ack");
    acknowledges |= draft.tcp_ack.is_some();
    draft.tcp_window = number(text, "win");
    draft.tcp_urgent = number(text, "urg");
    let bit = |letter: char, bit: u32| if letters.contains(letter) { 1_u16 << bit } else { 0 };
    let flags =
        bit('F', 0) | bit('S', 1) | bit('R', 2) | bit('P', 3) | bit('U', 5) | bit('E', 6) | bit('W', 7);
    draft.tcp_flags = Some(flags | u16::from(acknowledges) << 4);
    let options = text.split_once("options [").and_then(|(_, o)| o.split(']').next());
    let options = options.or_else(|| between(text, '<', '>').map(|o| o.0));
    draft.tcp_options = options.and_then(tcp_options);
}

/// Reads `mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 7`. Returns `None` if any other option occurs.
fn tcp_options(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    for option in text.split(',') {
        let words: Vec<&str> = option.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["nop"] | ["eol"] => plain.push(option.trim().to_string()),
            ["sackOK"] => plain.push("sackok".into()),
            ["mss" | "wscale", n] => plain.push(format!("{}{n}", words.first()?)),
            ["TS", "val", value, "ecr", echo] | ["timestamp", value, echo] => {
                plain.push(format!("ts{value}:{echo}"))
            }
            ["sack", _, blocks] => {
                plain.extend(blocks.split(['{', '}']).filter(|b| !b.is_empty()).map(|b| format!("sack{b}")))
            }
            _ => return None,
        }
    }
    parse_tcp(&plain.join(";"))
}

/// Words in the texts of ICMP messages, with the type and code of the message. The first row whose words all
/// occur is used.
const MESSAGES: &[(&[&str], u8, u8)] = &[
    (&["echo", "request"], 8, 0),
    (&["echo", "reply"], 0, 0),
    (&["time", "exceeded", "reassembly"], 11, 1),
    (&["time", "exceeded"], 11, 0),
    (&["need to frag"], 3, 4),
    (&["admin prohibited"], 3, 13),
    (&["protocol", "unreachable"], 3, 2),
    (&["port", "unreachable"], 3, 3),
    (&["host", "unreachable"], 3, 1),
    (&["unreachable"], 3, 0),
    (&["source quench"], 4, 0),
    (&["redirect", "host"], 5, 1),
    (&["redirect"], 5, 0),
    (&["router advertisement"], 9, 0),
    (&["router solicitation"], 10, 0),
    (&["parameter problem"], 12, 0),
    (&["time stamp query"], 13, 0),
    (&["time stamp reply"], 14, 0),
];

/// Reads an ICMP message.
fn icmp(text: &str, length: Option<u32>, draft: &mut Draft) {
    draft.protocol = Some(protocol::ICMP);
    let found = MESSAGES.iter().find(|m| m.0.iter().all(|word| text.contains(word)));
    (draft.icmp_type, draft.icmp_code) =
        found.map_or((Some(u8::MAX), None), |m| (Some(m.1), Some(u16::from(m.2))));
    (draft.icmp_id, draft.icmp_seq) = (number(text, "id"), number(text, "seq"));
    draft.icmp_mtu = number(text, "(mtu").or_else(|| number(text, "mtu"));
    // The printed length and the payload length of the draft both include the ICMP header.
    draft.payload_len = length;
}

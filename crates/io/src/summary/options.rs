// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP and IPv4 options as text: `mss1460;sackok`, `rr{1.2.3.4}+2`.

#[cfg(test)]
mod tests;

use castanet_wire::options::kind as ip;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// TCP option kinds (RFC 9293 section 3.2, RFC 7323, RFC 2018).
mod tcp {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMP: u8 = 8;
}

/// Largest length of options in a TCP or IPv4 header, in bytes.
pub(super) const MOST: usize = 40;

/// Which TCP options a field shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOptions {
    /// All options except padding.
    All,
    /// All options except padding and timestamps.
    NoTimestamp,
    /// Selective acknowledgement only.
    Sack,
}

impl TcpOptions {
    fn wants(self, kind: u8) -> bool {
        match self {
            TcpOptions::All => true,
            TcpOptions::NoTimestamp => kind != tcp::TIMESTAMP,
            TcpOptions::Sack => matches!(kind, tcp::SACK_PERMITTED | tcp::SACK),
        }
    }
}

fn be32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|b| u32::from_be_bytes(*b))
}

/// Prints an option as `KIND=b:b:b`, the form of options that have no text form of their own.
fn plain(kind: u8, data: &[u8], out: &mut String) {
    let _ = write!(out, "{kind}");
    for (i, b) in data.iter().enumerate() {
        let _ = write!(out, "{}{b}", if i == 0 { '=' } else { ':' });
    }
}

/// Appends `;` if an option was already printed at or after `start`.
fn item(start: usize, out: &mut String) {
    if out.len() > start {
        out.push(';');
    }
}

/// Prints TCP options: `.` for none, `?` when they are malformed.
pub(super) fn print_tcp(bytes: &[u8], which: TcpOptions, out: &mut String) {
    let start = out.len();
    let mut rest = bytes;
    while let [kind, after @ ..] = rest {
        match *kind {
            tcp::END => break,
            tcp::NOP => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let length = after.first().copied().map(usize::from).filter(|n| *n >= 2);
        let Some((option, next)) = length.and_then(|n| rest.split_at_checked(n)) else {
            out.truncate(start);
            out.push('?');
            return;
        };
        rest = next;
        if which.wants(*kind) {
            item(start, out);
            print_tcp_option(*kind, option.get(2..).unwrap_or_default(), out);
        }
    }
    if out.len() == start {
        out.push('.');
    }
}

fn print_tcp_option(kind: u8, data: &[u8], out: &mut String) {
    let _ = match (kind, data) {
        (tcp::MSS, &[a, b]) => write!(out, "mss{}", u16::from_be_bytes([a, b])),
        (tcp::WINDOW_SCALE, &[n]) => write!(out, "wscale{n}"),
        (tcp::SACK_PERMITTED, []) => write!(out, "sackok"),
        (tcp::SACK, [_, ..]) if data.len().is_multiple_of(8) => {
            for (i, block) in data.as_chunks::<8>().0.iter().enumerate() {
                let n = u64::from_be_bytes(*block);
                let separator = if i == 0 { "" } else { ";" };
                let _ = write!(out, "{separator}sack{}-{}", n >> 32, n & 0xffff_ffff);
            }
            Ok(())
        }
        (tcp::TIMESTAMP, &[a, b, c, d, e, f, g, h]) => {
            let n = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            write!(out, "ts{}:{}", n >> 32, n & 0xffff_ffff)
        }
        _ => {
            plain(kind, data, out);
            Ok(())
        }
    };
}

/// Parses `KIND` or `KIND=b:b:b` and appends the option with its length. Kinds 0 and 1 have no length, so
/// they must have no data.
fn parse_plain(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (kind, data) = text.split_once('=').map_or((text, None), |(k, d)| (k, Some(d)));
    let kind: u8 = kind.parse().ok()?;
    let data = data.map_or(Some(Vec::new()), |d| d.split(':').map(|b| b.parse().ok()).collect())?;
    if kind < 2 {
        // Padding has no length (RFC 791 section 3.1, RFC 9293 section 3.1).
        out.push(kind);
        return data.is_empty().then_some(());
    }
    append(kind, &data, out)
}

/// Appends an option with its length. Returns `None` if the options do not fit into the header.
fn append(kind: u8, data: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let length = u8::try_from(data.len().checked_add(2)?).ok()?;
    out.extend([kind, length]);
    out.extend_from_slice(data);
    (out.len() <= MOST).then_some(())
}

/// Pads options to a multiple of 4 bytes. Returns `None` if they do not fit into the header.
fn padded(mut out: Vec<u8>) -> Option<Vec<u8>> {
    out.resize(out.len().next_multiple_of(4), tcp::END);
    (out.len() <= MOST).then_some(out)
}

/// Parses TCP options.
pub(super) fn parse_tcp(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if text == "." || text.is_empty() {
        return Some(out);
    }
    // Consecutive SACK blocks are one option.
    let mut blocks: Vec<u8> = Vec::new();
    for word in text.split([';', ',']) {
        if let Some((left, right)) = word.strip_prefix("sack").and_then(|w| w.split_once(['-', ':'])) {
            blocks.extend(left.parse::<u32>().ok()?.to_be_bytes());
            blocks.extend(right.parse::<u32>().ok()?.to_be_bytes());
            if blocks.len() > MOST {
                return None;
            }
            continue;
        }
        if !blocks.is_empty() {
            append(tcp::SACK, &std::mem::take(&mut blocks), &mut out)?;
        }
        if let Some(n) = word.strip_prefix("mss") {
            append(tcp::MSS, &n.parse::<u16>().ok()?.to_be_bytes(), &mut out)?;
        } else if let Some(n) = word.strip_prefix("wscale") {
            append(tcp::WINDOW_SCALE, &[n.parse().ok()?], &mut out)?;
        } else if word == "sackok" {
            append(tcp::SACK_PERMITTED, &[], &mut out)?;
        } else if let Some((value, echo)) = word.strip_prefix("ts").and_then(|w| w.split_once(':')) {
            let (value, echo): (u32, u32) = (value.parse().ok()?, echo.parse().ok()?);
            append(tcp::TIMESTAMP, &[value.to_be_bytes(), echo.to_be_bytes()].concat(), &mut out)?;
        } else if word == "nop" || word == "eol" {
            out.push(u8::from(word == "nop"));
        } else {
            parse_plain(word, &mut out)?;
        }
    }
    if !blocks.is_empty() {
        append(tcp::SACK, &blocks, &mut out)?;
    }
    padded(out)
}

/// Names of the IPv4 options that contain a list of addresses.
const ROUTES: &[(u8, &str)] =
    &[(ip::RECORD_ROUTE, "rr"), (ip::LOOSE_SOURCE_ROUTE, "lsrr"), (ip::STRICT_SOURCE_ROUTE, "ssrr")];

/// Prints IPv4 options: `.` for none, `?` when they are malformed.
pub(super) fn print_ip(bytes: &[u8], out: &mut String) {
    let start = out.len();
    for option in castanet_wire::options::Options::new(bytes) {
        let Ok(option) = option else {
            out.truncate(start);
            out.push('?');
            return;
        };
        if option.kind() == ip::NOP {
            continue;
        }
        item(start, out);
        let before = out.len();
        let known = match option.kind() {
            ip::TIMESTAMP => print_timestamps(option.data(), out),
            kind => match ROUTES.iter().find(|r| r.0 == kind) {
                Some((_, name)) => print_route(name, kind == ip::RECORD_ROUTE, option.data(), out),
                None => None,
            },
        };
        if known.is_none() {
            out.truncate(before);
            plain(option.kind(), option.data(), out);
        }
    }
    if out.len() == start {
        out.push('.');
    }
}

/// Prints a list of addresses. For a record route, these are the recorded addresses, followed by the number
/// of free slots. For a source route, these are all addresses, with a mark at the pointer.
fn print_route(name: &str, record: bool, data: &[u8], out: &mut String) -> Option<()> {
    let (pointer, slots) = data.split_first()?;
    // The pointer is the number of a byte of the option, counted from 1. The first slot is at 4 (RFC 791
    // section 3.1).
    let at = usize::from(*pointer).checked_sub(4)?;
    let (slots, rest) = slots.as_chunks::<4>();
    if !rest.is_empty() || !at.is_multiple_of(4) || at / 4 > slots.len() {
        return None;
    }
    let shown = if record { slots.get(..at / 4)? } else { slots };
    let _ = write!(out, "{name}{{");
    for (i, slot) in shown.iter().enumerate() {
        let separator = match i {
            _ if !record && i == at / 4 => "^",
            0 => "",
            _ => ",",
        };
        let _ = write!(out, "{separator}{}", Ipv4Addr::from(*slot));
    }
    if !record && at / 4 == slots.len() {
        out.push('^');
    }
    out.push('}');
    let free = slots.len() - at / 4;
    if record && free > 0 {
        let unused = slots.get(at / 4..)?;
        if unused.iter().any(|s| *s != [0; 4]) {
            return None;
        }
        let _ = write!(out, "+{free}");
    }
    Some(())
}

/// Prints an internet timestamp option (RFC 791 section 3.1).
fn print_timestamps(data: &[u8], out: &mut String) -> Option<()> {
    let [pointer, flags, entries @ ..] = data else { return None };
    let (overflow, kind) = (flags >> 4, flags & 15);
    let (name, size) = match kind {
        0 => ("ts", 4),
        1 => ("ts.ip", 8),
        3 => ("ts.preip", 8),
        _ => return None,
    };
    let at = usize::from(*pointer).checked_sub(5)?;
    let total = entries.len() / size;
    if !entries.len().is_multiple_of(size) || !at.is_multiple_of(size) || at / size > total {
        return None;
    }
    let filled = at / size;
    let prespecified = kind == 3;
    let shown = if prespecified { total } else { filled };
    let _ = write!(out, "{name}{{");
    for (i, entry) in entries.chunks(size).take(shown).enumerate() {
        let separator = match i {
            _ if prespecified && i == filled => "^",
            0 => "",
            _ => ",",
        };
        out.push_str(separator);
        if size == 8 {
            let _ = write!(out, "{}", Ipv4Addr::from(be32(entry)?));
            if prespecified && i >= filled {
                if be32(entry.get(4..)?)? != 0 {
                    return None;
                }
                continue;
            }
            out.push('=');
        }
        let time = be32(entry.get(size - 4..)?)?;
        // The top bit marks a non-standard time, not in milliseconds since midnight.
        let _ = write!(out, "{}{}", if time >> 31 != 0 { "!" } else { "" }, time & 0x7fff_ffff);
    }
    if prespecified && filled == total {
        out.push('^');
    }
    out.push('}');
    if !prespecified && total > filled {
        if entries.get(at..)?.iter().any(|b| *b != 0) {
            return None;
        }
        let _ = write!(out, "+{}", total - filled);
    }
    if overflow > 0 {
        let _ = write!(out, "++{overflow}");
    }
    Some(())
}

/// Parses IPv4 options.
pub(super) fn parse_ip(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if text == "." || text.is_empty() {
        return Some(out);
    }
    for word in text.split(';') {
        let (name, list) = match word.split_once('{') {
            Some((name, list)) => (name, list),
            None if word == "nop" || word == "eol" => {
                out.push(u8::from(word == "nop"));
                continue;
            }
            None => {
                parse_plain(word, &mut out)?;
                continue;
            }
        };
        let (list, after) = list.split_once('}')?;
        let (free, overflow) = match after.split_once("++") {
            Some((free, n)) => (free, n.parse::<u8>().ok().filter(|n| *n < 16)?),
            None => (after, 0),
        };
        let free = match free.strip_prefix('+') {
            Some(n) => n.parse::<u8>().ok()?,
            None if free.is_empty() => 0,
            None => return None,
        };
        let (kind, data) = match ROUTES.iter().find(|r| r.1 == name) {
            Some((kind, _)) if overflow == 0 => (*kind, parse_route(list, free)?),
            Some(_) => return None,
            None => (ip::TIMESTAMP, parse_timestamps(name, list, free, overflow)?),
        };
        append(kind, &data, &mut out)?;
    }
    padded(out)
}

/// Returns the entries of a list, and the number of entries before the pointer. `^` marks the pointer;
/// without `^`, the pointer is after the last entry.
fn entries(list: &str) -> (impl Iterator<Item = &str>, usize) {
    let count = |t: &str| t.split(',').filter(|w| !w.is_empty()).count();
    let passed = list.split_once('^').map_or(count(list), |(before, _)| count(before));
    (list.split(['^', ',']).filter(|w| !w.is_empty()), passed)
}

/// Returns the pointer field of an option after `passed` entries of `size` bytes each. `first` is the value that points
/// to the first entry. Returns `None` if the result does not fit into a byte.
fn pointer(first: usize, size: usize, passed: usize) -> Option<u8> {
    u8::try_from(passed.checked_mul(size)?.checked_add(first)?).ok()
}

fn parse_route(list: &str, free: u8) -> Option<Vec<u8>> {
    let (words, passed) = entries(list);
    let mut data = vec![pointer(4, 4, passed)?];
    for word in words {
        data.extend(word.parse::<Ipv4Addr>().ok()?.octets());
    }
    data.resize(data.len().checked_add(usize::from(free) * 4)?, 0);
    Some(data)
}

fn parse_timestamps(name: &str, list: &str, free: u8, overflow: u8) -> Option<Vec<u8>> {
    let (kind, size) = match name {
        "ts" => (0, 4),
        "ts.ip" => (1, 8),
        "ts.preip" => (3, 8),
        _ => return None,
    };
    let (words, passed) = entries(list);
    let mut data = vec![pointer(5, size, passed)?, overflow << 4 | kind];
    for word in words {
        let mut time = word;
        if size == 8 {
            let (address, after) = word.split_once('=').unwrap_or((word, "0"));
            data.extend(address.parse::<Ipv4Addr>().ok()?.octets());
            time = after;
        }
        let (top, number) = time.strip_prefix('!').map_or((0, time), |t| (1 << 31, t));
        data.extend((number.parse::<u32>().ok()? | top).to_be_bytes());
    }
    data.resize(data.len().checked_add(usize::from(free) * size)?, 0);
    Some(data)
}

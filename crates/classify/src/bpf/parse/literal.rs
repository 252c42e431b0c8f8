// SPDX-License-Identifier: MIT OR Apache-2.0
//! Number and address literals of capture filters.

/// Parses a number: decimal, hexadecimal with `0x`, or octal with a leading `0`.
pub fn number(w: &str) -> Option<u32> {
    match w.strip_prefix("0x").or_else(|| w.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        _ if !w.bytes().all(|b| b.is_ascii_digit()) => None,
        _ if w.len() > 1 && w.starts_with('0') => u32::from_str_radix(w, 8).ok(),
        _ => w.parse().ok(),
    }
}

/// The value of a predefined name for an offset or a constant.
pub fn named_number(w: &str) -> Option<u32> {
    const NAMES: [(&str, u32); 24] = [
        ("icmptype", 0),
        ("icmpcode", 1),
        ("icmp6type", 0),
        ("icmp6code", 1),
        ("tcpflags", 13),
        ("icmp-echoreply", 0),
        ("icmp-unreach", 3),
        ("icmp-sourcequench", 4),
        ("icmp-redirect", 5),
        ("icmp-echo", 8),
        ("icmp-routeradvert", 9),
        ("icmp-routersolicit", 10),
        ("icmp-timxceed", 11),
        ("icmp-paramprob", 12),
        ("icmp-tstamp", 13),
        ("icmp-tstampreply", 14),
        ("tcp-fin", 1),
        ("tcp-syn", 2),
        ("tcp-rst", 4),
        ("tcp-push", 8),
        ("tcp-ack", 16),
        ("tcp-urg", 32),
        ("tcp-ece", 64),
        ("tcp-cwr", 128),
    ];
    NAMES.iter().find(|n| n.0 == w).map(|n| n.1)
}

/// Parses one to four decimal bytes separated by dots. Returns the value, and a mask for the bytes given.
pub fn dotted(w: &str) -> Option<(u32, u32)> {
    let mut value = 0u32;
    let mut n = 0u32;
    for part in w.split('.') {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) || n == 4 {
            return None;
        }
        value = value << 8 | u32::from(part.parse::<u8>().ok()?);
        n += 1;
    }
    let rest = 32 - 8 * n;
    let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
    Some((value.checked_shl(rest).unwrap_or(0), mask))
}
pub fn dotted_whole(w: &str) -> Option<u32> {
    dotted(w).filter(|d| d.1 == u32::MAX).map(|d| d.0)
}

/// Parses six hexadecimal bytes separated by colons.
pub fn ether(w: &str) -> Option<[u8; 6]> {
    let mut out = [0; 6];
    let mut parts = w.split(':');
    for b in &mut out {
        let part = parts.next()?;
        *b = (part.len() <= 2).then(|| u8::from_str_radix(part, 16).ok())??;
    }
    parts.next().is_none().then_some(out)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text forms of values: times, flags, quoted bytes, digests, fragment offsets.

use castanet_classify::names;
use std::fmt::Write as _;

/// Letters of the TCP flags, from the lowest bit on (RFC 9293 section 3.1, RFC 3168 section 6.1, RFC 3540).
const FLAGS: &[u8; 9] = b"FSRPAUECN";
/// Other accepted letters for flags.
const MORE_FLAGS: &[(u8, u8)] = &[(b'X', 6), (b'Y', 7), (b'W', 7)];
/// The characters for six bits each.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) const DONT: u64 = castanet_wire::ipv4::DONT_FRAGMENT as u64;
pub(super) const MORE: u64 = castanet_wire::ipv4::MORE_FRAGMENTS as u64;
pub(super) const OFFSET: u64 = castanet_wire::ipv4::OFFSET_MASK as u64;

/// Appends a time: seconds with six decimals, or nine if microseconds are not exact.
pub fn print_time(ns: i64, out: &mut String) {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = if ns % 1000 == 0 {
        write!(out, "{sign}{s}.{:06}", ns / 1000)
    } else {
        write!(out, "{sign}{s}.{ns:09}")
    };
}

pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) || !seconds.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.get(..9).unwrap_or(fraction);
    let ns: i64 = format!("{digits:0<9}").parse().ok()?;
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
}

pub(super) fn print_flags(flags: u64, out: &mut String) {
    let before = out.len();
    for (i, letter) in FLAGS.iter().enumerate() {
        if flags >> i & 1 != 0 {
            out.push(char::from(*letter));
        }
    }
    if out.len() == before {
        out.push('.');
    }
}

pub(super) fn parse_flags(text: &str) -> Option<u64> {
    if text == "." {
        return Some(0);
    }
    if let Ok(n) = text.parse::<u64>() {
        return (n < 0x1000).then_some(n);
    }
    text.bytes().try_fold(0, |flags, letter| {
        let bit = FLAGS.iter().position(|f| *f == letter);
        let bit = bit.or_else(|| MORE_FLAGS.iter().find(|f| f.0 == letter).map(|f| usize::from(f.1)))?;
        Some(flags | 1 << bit)
    })
}

/// Quotes bytes, with octal escapes for bytes that are not printable ASCII.
pub(super) fn quote(bytes: &[u8], out: &mut String) {
    out.push('"');
    for b in bytes {
        match b {
            b'"' | b'\\' => out.extend(['\\', char::from(*b)]),
            b' '..=b'~' => out.push(char::from(*b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
}

/// The inverse of [`quote`]. It also accepts the other escapes of C. A word without quotes is unchanged.
pub(super) fn unquote(word: &[u8]) -> Vec<u8> {
    let Some(mut rest) = word.strip_prefix(b"\"") else { return word.to_vec() };
    let mut out = Vec::new();
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, after) {
            (b'"', _) => break,
            (b'\\', [b'0'..=b'7', ..]) => {
                let digits = after.iter().take(3).take_while(|d| (b'0'..=b'7').contains(d)).count();
                let (octal, later) = after.split_at(digits);
                let n = octal.iter().fold(0_u16, |n, d| n * 8 + u16::from(d - b'0'));
                out.push((n & 255) as u8);
                rest = later;
            }
            (b'\\', [letter, later @ ..]) => {
                out.push(match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                rest = later;
            }
            (other, _) => out.push(other),
        }
    }
    out
}

pub(super) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|d| d.len().is_multiple_of(2))?;
    Some(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect())
}

pub(super) fn base64(bytes: &[u8], out: &mut String) {
    for piece in bytes.chunks(3) {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().skip(1).zip(piece) {
            *to = *from;
        }
        let bits = u32::from_be_bytes(word);
        for i in 0..=piece.len() {
            let six = bits >> (18 - 6 * i) & 63;
            out.push(BASE64.get(six as usize).copied().map_or('?', char::from));
        }
    }
}

pub(super) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut n) = (0_u32, 0);
    for letter in text.bytes() {
        let six = BASE64.iter().position(|b| *b == letter)?;
        bits = (bits << 6 | u32::try_from(six).ok()?) & 0xffff;
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n & 255) as u8);
        }
    }
    Some(out)
}

/// The number of an IP protocol: `T`, `U`, `I`, a name or a number.
pub fn protocol(text: &str) -> Option<u8> {
    match text {
        "T" => Some(6),
        "U" => Some(17),
        "I" => Some(1),
        _ => text.parse().ok().or_else(|| names::ip_proto_number(&text.to_ascii_lowercase())),
    }
}

/// A fragment offset as in `8+` or `0!`, or the letter of a fragment.
pub(super) fn fragment_offset(text: &str) -> Option<u64> {
    match text {
        "." => return Some(0),
        "!" => return Some(DONT),
        "F" => return Some(MORE),
        "f" => return Some(LATER),
        _ => {}
    }
    let digits = text.trim_end_matches(['+', '!']);
    let marks = text.get(digits.len()..)?;
    let offset: u64 = digits.parse().ok()?;
    if !offset.is_multiple_of(8) || offset / 8 > OFFSET {
        return None;
    }
    let bit = |mark, bit| if marks.contains(mark) { bit } else { 0 };
    Some((offset / 8) | bit('+', MORE) | bit('!', DONT))
}

/// The assumed offset of a later fragment whose offset is unknown.
pub(super) const LATER: u64 = 100;

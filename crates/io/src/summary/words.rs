// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text forms of values: times, flags, quoted bytes, digests, fragment offsets.

use castanet_classify::names;
use std::fmt::Write as _;

/// Letters of the TCP flags, from the lowest bit on (RFC 9293 section 3.1, RFC 3168 section 6.1, RFC 3540).
const FLAGS: &[u8; 9] = b"FSRPAUECN";
/// Other accepted letters for flags.
const MORE_FLAGS: &[(u8, u8)] = &[(b'X', 6), (b'Y', 7), (b'W', 7)];
/// The characters of MD5 digests. Each character stands for six bits.
const SIX_BITS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";

pub(super) const DONT: u64 = castanet_wire::ipv4::DONT_FRAGMENT as u64;
pub(super) const MORE: u64 = castanet_wire::ipv4::MORE_FRAGMENTS as u64;
pub(super) const OFFSET: u64 = castanet_wire::ipv4::OFFSET_MASK as u64;

/// Appends a time in seconds, with six decimals. A time that is not a multiple of a microsecond has nine decimals.
pub fn print_time(ns: i64, out: &mut String) {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = if ns % 1000 == 0 {
        write!(out, "{sign}{s}.{:06}", ns / 1000)
    } else {
        write!(out, "{sign}{s}.{ns:09}")
    };
}

/// Parses a time in seconds: `1`, `.5`, `5.` and `1e3`, but no sign. Digits below a nanosecond are ignored.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The value is `digits` * 10^shift nanoseconds.
    let exponent: i64 = exponent.parse::<i32>().ok()?.into();
    let mut shift = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(9)?;
    let mut digits: Vec<u8> = Vec::new();
    for b in whole.bytes().chain(fraction.bytes()) {
        digits.push(char::from(b).to_digit(10).and_then(|d| u8::try_from(d).ok())?);
    }
    while shift < 0 && digits.pop().is_some() {
        shift += 1;
    }
    let n = digits.iter().try_fold(0_i64, |n, d| n.checked_mul(10)?.checked_add(i64::from(*d)))?;
    if n == 0 { Some(0) } else { n.checked_mul(10_i64.checked_pow(u32::try_from(shift).ok()?)?) }
}

/// Parses an unsigned number, decimal or hexadecimal with `0x`.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
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
    if let Some(n) = parse_number(text) {
        return (n < 0x1000).then_some(n);
    }
    text.bytes().try_fold(0, |flags, letter| {
        let bit = FLAGS.iter().position(|f| *f == letter);
        let bit = bit.or_else(|| MORE_FLAGS.iter().find(|f| f.0 == letter).map(|f| usize::from(f.1)))?;
        Some(flags | 1 << bit)
    })
}

/// Quotes bytes, with escapes for line ends, tabs and `$`, and octal escapes for other bytes that are not
/// printable ASCII.
pub(super) fn quote(bytes: &[u8], out: &mut String) {
    out.push('"');
    for b in bytes {
        match b {
            b'"' | b'\\' | b'$' => out.extend(['\\', char::from(*b)]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(char::from(*b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
}

/// The inverse of [`quote`]. It also accepts the other escapes of configuration strings: `\v`, `\f`, `\a`, `\b`,
/// `\xHH` and `\<HH HH>`. A word without quotes is unchanged.
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
            (b'\\', [b'x', after @ ..]) if after.first().is_some_and(u8::is_ascii_hexdigit) => {
                let digits = after.iter().take_while(|d| d.is_ascii_hexdigit()).count();
                let (hex, later) = after.split_at(digits);
                let n =
                    hex.iter().fold(0_u32, |n, d| (n << 4 | char::from(*d).to_digit(16).unwrap_or(0)) & 255);
                out.push(n as u8);
                rest = later;
            }
            (b'\\', [b'<', after @ ..]) => {
                let end = after.iter().position(|b| *b == b'>').unwrap_or(after.len());
                let (hex, later) = after.split_at(end);
                let digits: Vec<u8> =
                    hex.iter().filter_map(|b| char::from(*b).to_digit(16)).map(|d| d as u8).collect();
                out.extend(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low));
                rest = later.get(1..).unwrap_or_default();
            }
            (b'\\', [letter, later @ ..]) => {
                out.push(match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'a' => 0x07,
                    b'b' => 0x08,
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

/// Prints a digest as a little-endian number, the lowest six bits first.
pub(super) fn print_digest(bytes: &[u8], out: &mut String) {
    let (mut bits, mut n) = (0_u32, 0);
    let mut letter =
        |bits: u32| out.push(SIX_BITS.get((bits & 63) as usize).copied().map_or('?', char::from));
    for b in bytes {
        bits |= u32::from(*b) << n;
        n += 8;
        while n >= 6 {
            letter(bits);
            bits >>= 6;
            n -= 6;
        }
    }
    if n > 0 {
        letter(bits);
    }
}

/// The inverse of [`print_digest`].
pub(super) fn parse_digest(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut n) = (0_u32, 0);
    for letter in text.bytes() {
        let six = SIX_BITS.iter().position(|b| *b == letter)?;
        bits |= u32::try_from(six).ok()? << n;
        n += 6;
        if n >= 8 {
            out.push((bits & 255) as u8);
            bits >>= 8;
            n -= 8;
        }
    }
    Some(out)
}

/// Parses an IP protocol: `T`, `U`, `I`, a name or a number.
pub fn protocol(text: &str) -> Option<u8> {
    match text {
        "T" => Some(6),
        "U" => Some(17),
        "I" => Some(1),
        _ => parse_number(text)
            .and_then(|n| u8::try_from(n).ok())
            .or_else(|| names::ip_proto_number(&text.to_ascii_lowercase())),
    }
}

/// Parses a fragment offset such as `8+` or `0!`, or the letter of a kind of fragment.
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
    let offset = parse_number(digits)?;
    if !offset.is_multiple_of(8) || offset / 8 > OFFSET {
        return None;
    }
    let bit = |mark, bit| if marks.contains(mark) { bit } else { 0 };
    Some((offset / 8) | bit('+', MORE) | bit('!', DONT))
}

/// The assumed offset of a later fragment whose offset is unknown, in units of eight bytes.
pub(super) const LATER: u64 = 100;

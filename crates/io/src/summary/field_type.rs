// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of fields: their text form and their form in binary records.

use super::options::{self, TcpOptions};
use super::words::{
    DONT, MORE, OFFSET, fragment_offset, hex_bytes, parse_digest, parse_flags, parse_number, parse_time,
    print_digest, print_flags, print_time, protocol, quote, unquote,
};
use castanet_classify::names;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number, or a value that is coded as a number.
    Number(u64),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Bytes: a payload, options, an Ethernet address, or a digest.
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    pub(super) fn number(&self) -> u64 {
        match self {
            Value::Number(n) => *n,
            _ => 0,
        }
    }
    pub(super) fn time(&self) -> i64 {
        match self {
            Value::Time(t) => *t,
            _ => 0,
        }
    }
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(b) => b,
            _ => &[],
        }
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A time. Binary records hold seconds, then microseconds.
    Time,
    /// A time. Binary records hold nanoseconds, then seconds.
    NanoTime,
    /// A number of this size in bytes, printed in decimal.
    Number(u8),
    /// A paint annotation as the number of a link; `>` is read as 0 and `<` as 1.
    Link,
    /// A paint annotation as a direction, printed as `>` and `<`.
    Direction,
    /// An IPv4 address.
    Address,
    /// An IP protocol: `T`, `U`, `I` or a number.
    Protocol,
    /// Explicit congestion notification (RFC 3168 section 5).
    Ecn,
    /// The kind of fragment: `.` (not fragmented), `!` (must not be fragmented), `F` (first) or `f` (later).
    Fragment,
    /// The offset of a fragment in bytes, then `+` if more fragments follow, and `!` if the packet must not
    /// be fragmented.
    FragmentOffset,
    /// Letters of TCP flags.
    TcpFlags,
    /// An Ethernet address.
    Ether,
    /// Four hexadecimal digits.
    EtherType,
    /// A quoted string.
    Text,
    /// An MD5 digest in 22 characters.
    Md5,
    /// An MD5 digest in 32 hexadecimal digits.
    Md5Hex,
    /// An ICMP type, printed as a number. Its name is accepted too.
    IcmpTypeNumber,
    /// An ICMP code, printed as a number. Its name is accepted too.
    IcmpCodeNumber,
    /// An ICMP type by name.
    IcmpType,
    /// An ICMP code by name. The value has the type in its upper byte and the code in its lower byte.
    IcmpCode,
    /// TCP options.
    TcpOptions(TcpOptions),
    /// IPv4 options.
    IpOptions,
}

/// Names of the ECN values. The first name of each value is printed.
const ECN: &[(&str, u64)] = &[
    ("no", 0),
    ("ect1", 1),
    ("ect2", 2),
    ("ce", 3),
    ("ECT(1)", 1),
    ("ECT(0)", 2),
    ("CE", 3),
    ("0", 0),
    ("1", 1),
    ("2", 2),
    ("3", 3),
];
/// Converts a digest to a value, if it has 16 bytes.
fn digest(bytes: Option<Vec<u8>>) -> Option<Value<'static>> {
    bytes.filter(|b| b.len() == 16).map(|b| Value::Bytes(b.into()))
}

impl FieldType {
    /// The name of the type in the manual.
    pub fn name(self) -> &'static str {
        match self {
            FieldType::Time | FieldType::NanoTime => "time",
            FieldType::Number(_)
            | FieldType::Link
            | FieldType::IcmpTypeNumber
            | FieldType::IcmpCodeNumber => "number",
            FieldType::Direction => "direction",
            FieldType::Address => "IP address",
            FieldType::Protocol => "protocol",
            FieldType::Ecn => "ECN",
            FieldType::Fragment => "fragment",
            FieldType::FragmentOffset => "fragment offset",
            FieldType::TcpFlags => "TCP flags",
            FieldType::Ether => "Ethernet address",
            FieldType::EtherType => "hexadecimal number",
            FieldType::Text => "quoted bytes",
            FieldType::Md5 | FieldType::Md5Hex => "digest",
            FieldType::IcmpType | FieldType::IcmpCode => "ICMP name",
            FieldType::TcpOptions(_) => "TCP options",
            FieldType::IpOptions => "IP options",
        }
    }

    /// The size of a number in binary records, in bytes; `None` for other types.
    fn size(self) -> Option<usize> {
        Some(match self {
            FieldType::Number(n) => usize::from(n),
            FieldType::Address => 4,
            FieldType::FragmentOffset | FieldType::EtherType => 2,
            FieldType::Link
            | FieldType::Direction
            | FieldType::Protocol
            | FieldType::Ecn
            | FieldType::Fragment => 1,
            FieldType::TcpFlags | FieldType::IcmpType | FieldType::IcmpCode => 1,
            FieldType::IcmpTypeNumber | FieldType::IcmpCodeNumber => 1,
            _ => return None,
        })
    }

    /// The size of a value in binary records, in bytes, if it is fixed.
    fn width(self) -> Option<usize> {
        self.size().or(match self {
            FieldType::Time | FieldType::NanoTime => Some(8),
            FieldType::Ether => Some(6),
            FieldType::Md5 | FieldType::Md5Hex => Some(16),
            _ => None,
        })
    }

    /// Appends a value as text.
    pub fn print(self, value: &Value<'_>, out: &mut String) {
        let n = value.number();
        let _ = match self {
            FieldType::Time | FieldType::NanoTime => {
                print_time(value.time(), out);
                Ok(())
            }
            FieldType::Number(_)
            | FieldType::Link
            | FieldType::IcmpTypeNumber
            | FieldType::IcmpCodeNumber => write!(out, "{n}"),
            FieldType::Direction => match n {
                0 => write!(out, ">"),
                1 => write!(out, "<"),
                _ => write!(out, "{n}"),
            },
            FieldType::Address => write!(out, "{}", Ipv4Addr::from((n & 0xffff_ffff) as u32)),
            FieldType::Protocol => match n {
                6 => write!(out, "T"),
                17 => write!(out, "U"),
                1 => write!(out, "I"),
                _ => write!(out, "{n}"),
            },
            FieldType::Ecn => write!(out, "{}", ECN.iter().find(|e| e.1 == n & 3).map_or("", |e| e.0)),
            FieldType::Fragment => write!(out, "{}", char::from((n & 127) as u8)),
            FieldType::FragmentOffset => {
                let mark = |bit, text| if n & bit != 0 { text } else { "" };
                write!(out, "{}{}{}", (n & OFFSET) * 8, mark(MORE, "+"), mark(DONT, "!"))
            }
            FieldType::TcpFlags => {
                print_flags(n, out);
                Ok(())
            }
            FieldType::Ether => value
                .bytes()
                .iter()
                .enumerate()
                .try_for_each(|(i, b)| write!(out, "{}{b:02X}", if i > 0 { "-" } else { "" })),
            FieldType::EtherType => write!(out, "{n:04X}"),
            FieldType::Text => {
                quote(value.bytes(), out);
                Ok(())
            }
            FieldType::Md5 => {
                print_digest(value.bytes(), out);
                Ok(())
            }
            FieldType::Md5Hex => value.bytes().iter().try_for_each(|b| write!(out, "{b:02x}")),
            FieldType::IcmpType => match names::icmp_type_name((n & 255) as u8) {
                Some(name) => write!(out, "{name}"),
                None => write!(out, "{n}"),
            },
            FieldType::IcmpCode => match names::icmp_code_name((n >> 8 & 255) as u8, (n & 255) as u8) {
                Some(name) => write!(out, "{name}"),
                None => write!(out, "{}", n & 255),
            },
            FieldType::TcpOptions(which) => {
                options::print_tcp(value.bytes(), which, out);
                Ok(())
            }
            FieldType::IpOptions => {
                options::print_ip(value.bytes(), out);
                Ok(())
            }
        };
    }

    /// Parses a word. Returns `None` for an invalid value.
    pub fn parse(self, word: &[u8]) -> Option<Value<'static>> {
        if self == FieldType::Text {
            return Some(Value::Bytes(unquote(word).into()));
        }
        let text = std::str::from_utf8(word).ok()?;
        let number_of = |size: usize| {
            let n = parse_number(text)?;
            (size >= 8 || n >> (8 * size) == 0).then_some(Value::Number(n))
        };
        let number = |n: Option<u64>| n.map(Value::Number);
        match self {
            FieldType::Time | FieldType::NanoTime => parse_time(text).map(Value::Time),
            FieldType::Number(size) => number_of(usize::from(size)),
            FieldType::Link | FieldType::Direction => match text {
                ">" | "L" => number(Some(0)),
                "<" | "R" | "X" => number(Some(1)),
                _ => number_of(1),
            },
            FieldType::Address => number(text.parse::<Ipv4Addr>().ok().map(|a| u64::from(u32::from(a)))),
            FieldType::Protocol => number(protocol(text).map(u64::from)),
            FieldType::Ecn => number(ECN.iter().find(|e| e.0 == text).map(|e| e.1)),
            FieldType::Fragment => match *word {
                [letter @ (b'.' | b'!' | b'F' | b'f')] => number(Some(letter.into())),
                _ => None,
            },
            FieldType::FragmentOffset => number(fragment_offset(text)),
            FieldType::TcpFlags => number(parse_flags(text)),
            FieldType::Ether => {
                let parts: Option<Vec<u8>> = text
                    .split(['-', ':'])
                    .map(|p| u8::from_str_radix(p, 16).ok().filter(|_| p.len() <= 2 && !p.starts_with('+')))
                    .collect();
                parts.filter(|p| p.len() == 6).map(|p| Value::Bytes(p.into()))
            }
            FieldType::EtherType => {
                let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
                let hex = digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                number(u64::from_str_radix(digits, 16).ok().filter(|_| hex))
            }
            FieldType::Md5 => digest(parse_digest(text)),
            FieldType::Md5Hex => digest(hex_bytes(text)),
            FieldType::IcmpType | FieldType::IcmpTypeNumber => match names::icmp_type_number(text) {
                Some(n) => number(Some(n.into())),
                None => number_of(1),
            },
            FieldType::IcmpCode | FieldType::IcmpCodeNumber => {
                match names::ICMP_CODES.iter().find(|c| c.1 == text) {
                    Some(code) => number(Some(u64::from(code.0) << 8 | u64::from(code.2))),
                    None => number_of(1),
                }
            }
            FieldType::TcpOptions(_) => options::parse_tcp(text).map(|b| Value::Bytes(b.into())),
            FieldType::IpOptions => options::parse_ip(text).map(|b| Value::Bytes(b.into())),
            FieldType::Text => None,
        }
    }

    /// Appends a value to a binary record. A missing value is written as zeros.
    pub fn write(self, value: Option<&Value<'_>>, out: &mut Vec<u8>) {
        let number = value.map_or(0, Value::number);
        let bytes = value.map_or(&[][..], Value::bytes);
        if let Some(size) = self.size() {
            let all = number.to_be_bytes();
            out.extend_from_slice(all.get(8 - size.min(8)..).unwrap_or_default());
            return;
        }
        let time = value.map_or(0, Value::time);
        // Seconds before 1970 and after 2106 do not fit into 32 bits, and are written as 0.
        let seconds = u32::try_from(time.div_euclid(1_000_000_000)).unwrap_or(0);
        let ns = time.rem_euclid(1_000_000_000) as u32;
        match self {
            FieldType::Time => {
                out.extend(seconds.to_be_bytes());
                out.extend((ns / 1000).to_be_bytes());
            }
            FieldType::NanoTime => {
                out.extend(ns.to_be_bytes());
                out.extend(seconds.to_be_bytes());
            }
            FieldType::Text => {
                out.extend(u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes());
                out.extend_from_slice(bytes);
            }
            FieldType::TcpOptions(_) | FieldType::IpOptions => {
                let bytes = bytes.get(..options::MOST).unwrap_or(bytes);
                out.push(u8::try_from(bytes.len()).unwrap_or(0));
                out.extend_from_slice(bytes);
            }
            _ => {
                let end = out.len() + self.width().unwrap_or(0);
                out.extend_from_slice(bytes);
                out.resize(end, 0);
            }
        }
    }

    /// Reads a value from a binary record, and removes it from the start of `record`. Returns `None` if the
    /// record is too short or the value is invalid.
    pub fn read(self, record: &mut &[u8]) -> Option<Value<'static>> {
        let mut take = |n: usize| {
            let (bytes, rest) = record.split_at_checked(n)?;
            *record = rest;
            Some(bytes)
        };
        if let Some(size) = self.size() {
            return Some(Value::Number(take(size)?.iter().fold(0, |n, b| n << 8 | u64::from(*b))));
        }
        let time = |seconds: u32, ns: u64| {
            let ns = i64::try_from(ns).ok()?;
            Some(Value::Time(i64::from(seconds).checked_mul(1_000_000_000)?.checked_add(ns)?))
        };
        let two = |b: &[u8]| {
            let [a, b] = *b.as_chunks::<4>().0 else { return None };
            Some((u32::from_be_bytes(a), u32::from_be_bytes(b)))
        };
        match self {
            FieldType::Time => two(take(8)?).and_then(|(s, us)| time(s, u64::from(us) * 1000)),
            FieldType::NanoTime => two(take(8)?).and_then(|(ns, s)| time(s, ns.into())),
            FieldType::Text => {
                let length = u32::from_be_bytes(*take(4)?.first_chunk()?);
                Some(Value::Bytes(take(usize::try_from(length).ok()?)?.to_vec().into()))
            }
            FieldType::TcpOptions(_) | FieldType::IpOptions => {
                let length = usize::from(*take(1)?.first()?);
                let mut bytes = take(length)?.to_vec();
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                (bytes.len() <= options::MOST).then_some(Value::Bytes(bytes.into()))
            }
            _ => Some(Value::Bytes(take(self.width()?)?.to_vec().into())),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Booleans, numbers, times, bandwidths, text.

use super::{ArgValue, Show, ValueError, mend};
use crate::anno::{Anno1, Anno2, Anno4};
use crate::arg::ArgCx;
use crate::handler::ValueKind;
use castanet_lang::args as text;

impl ArgValue for bool {
    const TYPE: &'static str = "bool";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<bool, ValueError> {
        match text {
            "true" | "yes" | "y" | "t" | "1" => Ok(true),
            "false" | "no" | "n" | "f" | "0" => Ok(false),
            _ => Err(mend::boolean(text, "syntax error, expected 'true' or 'false'".into())),
        }
    }
}

/// Reads an integer: optional sign; decimal, `0x` hexadecimal, `0` octal; `_` between digits.
fn integer(text: &str) -> Result<i128, ValueError> {
    let invalid = || mend::integer(text, "invalid number".into());
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..).unwrap_or("")),
        [b'+', ..] => (false, text.get(1..).unwrap_or("")),
        _ => (false, text),
    };
    let (base, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..).unwrap_or("")),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, digits.get(1..).unwrap_or("")),
        _ => (10, digits),
    };
    if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return Err(invalid());
    }
    let mut value: i128 = 0;
    for c in digits.chars().filter(|&c| c != '_') {
        let d = c.to_digit(base).ok_or_else(invalid)?;
        // A value that is too large saturates. The result is outside the range of every type, so the range error still
        // names the right limit.
        value = value.saturating_mul(i128::from(base)).saturating_add(i128::from(d));
    }
    Ok(if negative { -value } else { value })
}

/// The error for a number that is not in `low..=high`.
fn beyond(n: i128, low: i128, high: i128) -> ValueError {
    if n < 0 && low == 0 {
        ValueError::from("must be positive")
            .help(format!("the smallest number here is 0, the largest {high}"))
    } else {
        ValueError::out_of_range(n, low, high)
    }
}

macro_rules! integers {
    ($($t:ty, $name:literal;)+) => { $(
        impl ArgValue for $t {
            const TYPE: &'static str = $name;
            fn parse(text: &str, _: &ArgCx<'_>) -> Result<$t, ValueError> {
                let n = integer(text)?;
                <$t>::try_from(n).map_err(|_| beyond(n, <$t>::MIN as i128, <$t>::MAX as i128))
            }
        }
    )+ };
}
integers! {
    u8, "uint8"; u16, "uint16"; u32, "uint"; u64, "uint64"; usize, "uint64"; i32, "int"; i64, "int64";
}

/// The number of packets or entries that an element has room for. Memory for all of them is allocated at
/// once, so the number is limited to what fits into the memory of any machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capacity(u32);

impl Capacity {
    /// The largest: 16,777,216.
    pub const MAX: u32 = 1 << 24;

    /// Makes a capacity of `n`, at most [`MAX`](Capacity::MAX).
    pub const fn new(n: u32) -> Capacity {
        Capacity(if n < Capacity::MAX { n } else { Capacity::MAX })
    }
    /// The number of packets or entries.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl ArgValue for Capacity {
    const TYPE: &'static str = u32::TYPE;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Capacity, ValueError> {
        let n = integer(text)?;
        match u32::try_from(n) {
            Ok(n) if n <= Capacity::MAX => Ok(Capacity(n)),
            _ => Err(beyond(n, 0, i128::from(Capacity::MAX))),
        }
    }
}

impl Show for Capacity {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl ArgValue for f64 {
    const TYPE: &'static str = "real";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<f64, ValueError> {
        real(text).ok_or_else(|| ValueError::from("invalid number").help("write a number, such as 10 or 0.5"))
    }
}

/// Parses a finite decimal number with an optional exponent. Names such as `inf` are not accepted.
fn real(text: &str) -> Option<f64> {
    let ok = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    (text.chars().all(ok) && text.chars().any(|c| c.is_ascii_digit()))
        .then(|| text.parse::<f64>().ok().filter(|v| v.is_finite()))
        .flatten()
}

/// Splits a text into a decimal number and the unit after it.
fn with_unit(text: &str) -> Option<(f64, &str)> {
    // An `e` belongs to the number only when digits follow it.
    let b = text.as_bytes();
    let mut i = 0;
    while let Some(&c) = b.get(i) {
        let exponent = matches!(c, b'e' | b'E')
            && i > 0
            && match b.get(i + 1) {
                Some(b'+' | b'-') => b.get(i + 2).is_some_and(u8::is_ascii_digit),
                Some(d) => d.is_ascii_digit(),
                None => false,
            };
        if exponent {
            i += 2;
        } else if c.is_ascii_digit() || c == b'.' || (i == 0 && matches!(c, b'-' | b'+')) {
            i += 1;
        } else {
            break;
        }
    }
    let number = real(text.get(..i)?)?;
    Some((number, text.get(i..)?.trim()))
}

/// A time or a span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub i64);

impl ArgValue for Nanos {
    const TYPE: &'static str = "seconds";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Nanos, ValueError> {
        let bad = || mend::time(with_unit(text), "expected time in seconds".into());
        let (digits, unit) = with_unit(text).ok_or_else(bad)?;
        let scale: i64 = match unit {
            "" | "s" | "sec" => 1_000_000_000,
            "ms" | "msec" => 1_000_000,
            "us" | "usec" => 1_000,
            "ns" | "nsec" => 1,
            "m" | "min" => 60_000_000_000,
            "h" | "hr" => 3_600_000_000_000,
            "d" | "day" => 86_400_000_000_000,
            _ => return Err(bad()),
        };
        exact_decimal(text.trim_end_matches(unit).trim(), scale)
            .or_else(|| {
                let v = digits * scale as f64;
                (v.abs() < 9.2e18).then_some(v.round() as i64)
            })
            .map(Nanos)
            .ok_or_else(|| "out of range".into())
    }
}

/// Computes `text * scale` for plain decimals, without the rounding of floating point.
fn exact_decimal(text: &str, scale: i64) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(t) => (true, t),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
        || (whole.is_empty() && fraction.is_empty())
    {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(i128::from(scale))?;
    let mut unit = i128::from(scale);
    for d in fraction.bytes() {
        if unit % 10 != 0 {
            break;
        }
        unit /= 10;
        value += i128::from(d - b'0') * unit;
    }
    i64::try_from(if negative { -value } else { value }).ok()
}

impl Nanos {
    /// The shortest period that an argument may give a timer: a shorter one would leave no time for anything else.
    pub const SHORTEST_PERIOD: Nanos = Nanos(1_000);
    /// Seconds as a real number.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Show for Nanos {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let n = self.0.unsigned_abs();
        let (s, ns) = (n / 1_000_000_000, n % 1_000_000_000);
        if ns == 0 {
            format!("{sign}{s}")
        } else {
            let digits = format!("{ns:09}");
            format!("{sign}{s}.{}", digits.trim_end_matches('0'))
        }
    }
}

/// A span of time in nanoseconds that handlers show with its unit: `500ms`, `1s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(pub i64);

impl Interval {
    /// The shortest period of a timer that an argument may set, see [`Nanos::SHORTEST_PERIOD`].
    pub const SHORTEST_PERIOD: Interval = Interval(Nanos::SHORTEST_PERIOD.0);
}

impl ArgValue for Interval {
    const TYPE: &'static str = Nanos::TYPE;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Interval, ValueError> {
        Ok(Interval(Nanos::parse(text, cx)?.0))
    }
}

impl Show for Interval {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        let n = self.0;
        match n.unsigned_abs() {
            0 | 1_000_000_000.. => format!("{}s", Nanos(n).show()),
            ns if ns % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
            ns if ns % 1_000 == 0 => format!("{}us", n / 1_000),
            _ => format!("{n}ns"),
        }
    }
}

/// Bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);

impl Bandwidth {
    /// Reads a bandwidth. Also returns whether the text has a unit.
    fn read(text: &str) -> Result<(Bandwidth, bool), ValueError> {
        let bad = || mend::bandwidth(with_unit(text), "expected bandwidth".into());
        let (number, unit) = with_unit(text).ok_or_else(bad)?;
        let (prefix, rest) = match unit.as_bytes().first() {
            Some(b'k' | b'K') => (1e3, unit.get(1..).unwrap_or("")),
            Some(b'M') => (1e6, unit.get(1..).unwrap_or("")),
            Some(b'G') => (1e9, unit.get(1..).unwrap_or("")),
            _ => (1.0, unit),
        };
        let per_byte = match rest {
            "" | "Bps" | "B/s" => 1.0,
            "bps" | "b/s" | "baud" => 8.0,
            _ => return Err(bad()),
        };
        let v = number * prefix / per_byte;
        if !(0.0..=1.8e19).contains(&v) {
            return Err("out of range".into());
        }
        Ok((Bandwidth(v.round() as u64), !rest.is_empty()))
    }
}

impl ArgValue for Bandwidth {
    const TYPE: &'static str = "bandwidth";
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<Bandwidth, ValueError> {
        Ok(Bandwidth::read(text)?.0)
    }
    fn doubt(text: &str, nth: Option<usize>) -> Option<ValueError> {
        let (bandwidth, has_unit) = Bandwidth::read(text).ok()?;
        if has_unit || bandwidth.0 == 0 {
            return None;
        }
        let warning = match nth {
            Some(n) => ValueError::whole(format!("no units for bandwidth argument {n}, assuming Bps")),
            None => format!("no units on bandwidth {text}, assuming Bps").into(),
        };
        let bytes = format!("{text}Bps");
        let help = format!("write {bytes} or {}", bandwidth.show());
        Some(warning.replacement(bytes).help(help))
    }
}

impl Show for Bandwidth {
    const KIND: ValueKind = ValueKind::Rate;
    fn show(&self) -> String {
        let bits = u128::from(self.0) * 8;
        let units = [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps")];
        match units.iter().find(|u| bits >= u.0) {
            Some((unit, name)) => format!("{}{name}", bits as f64 / *unit as f64),
            None => format!("{bits}bps"),
        }
    }
}

impl ArgValue for String {
    const TYPE: &'static str = "string";
    const TEXT: bool = true;
    fn parse(t: &str, _: &ArgCx<'_>) -> Result<String, ValueError> {
        Ok(text::unquote(t))
    }
}

/// Bytes: a string in which escapes may give any byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data(pub Vec<u8>);

impl ArgValue for Data {
    const TYPE: &'static str = "data";
    fn parse(t: &str, _: &ArgCx<'_>) -> Result<Data, ValueError> {
        text::data(t).map(Data).ok_or_else(|| "a quote or '\\<' is not closed".into())
    }
}

impl Show for Data {
    fn show(&self) -> String {
        castanet_lang::bytes::decode(&self.0).into_owned()
    }
}

/// One word: printable ASCII except quotes, backslash and comma.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(pub String);

impl ArgValue for Word {
    const TYPE: &'static str = "word";
    const WORD: bool = true;
    fn parse(t: &str, _: &ArgCx<'_>) -> Result<Word, ValueError> {
        let ok = !t.is_empty() && t.bytes().all(|b| (33..=126).contains(&b) && !b"\"'\\,".contains(&b));
        if ok { Ok(Word(t.to_string())) } else { Err("expected word".into()) }
    }
}

impl Show for Word {
    fn show(&self) -> String {
        self.0.clone()
    }
}

macro_rules! annotations {
    ($($t:ident, $size:literal, $name:literal;)+) => { $(
        impl ArgValue for $t {
            const TYPE: &'static str = $name;
            fn parse(t: &str, cx: &ArgCx<'_>) -> Result<$t, ValueError> {
                Ok($t(cx.annotation(t, $size)?))
            }
        }
    )+ };
}
annotations! { Anno1, 1, "anno1"; Anno2, 2, "anno2"; Anno4, 4, "anno4"; }

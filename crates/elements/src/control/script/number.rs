// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers in scripts: 64-bit integers, and real numbers where an integer does not suffice.

use castanet_element::spec::{ArgCx, ArgValue, Names, Show, ValueKind};
use std::cmp::Ordering;
use std::fmt;

/// A number in a script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other number, and whole numbers beyond 64 bits.
    Real(f64),
}

/// Parses a word as a value of an argument type. Names of the configuration are not known here, so the type must not
/// need them.
pub fn value<T: ArgValue>(text: &str) -> Option<T> {
    T::parse(
        text,
        &ArgCx { scope: "", names: &Names::new(), origin: castanet_element::spec::Origin::Operator },
    )
    .ok()
}

impl Number {
    /// Parses a number: decimal, hexadecimal after `0x`, octal after `0`, or a decimal fraction with optional exponent.
    pub fn parse(text: &str) -> Option<Number> {
        value(text).map(Number::Int).or_else(|| value(text).map(Number::Real))
    }
    /// Returns the nearest real number.
    pub fn real(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Real(v) => v,
        }
    }
    /// Compares two numbers; `None` if one is NaN.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        }
    }
    /// Combines two numbers: by `int` if both are integers and `int` has a result, otherwise by `real`.
    pub fn combine(
        self,
        other: Number,
        int: impl FnOnce(i64, i64) -> Option<i64>,
        real: impl FnOnce(f64, f64) -> f64,
    ) -> Number {
        let whole = match (self, other) {
            (Number::Int(a), Number::Int(b)) => int(a, b),
            _ => None,
        };
        whole.map_or_else(|| Number::Real(real(self.real(), other.real())), Number::Int)
    }
}

/// Shows twelve significant digits without trailing zeros. Below 1e-4 and from 1e12 on, an exponent is used.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = match *self {
            Number::Int(n) => return write!(f, "{n}"),
            Number::Real(v) => v,
        };
        if v.is_nan() {
            return f.write_str("nan");
        }
        if v.is_infinite() {
            return f.write_str(if v > 0.0 { "inf" } else { "-inf" });
        }
        if v == 0.0 {
            return f.write_str("0");
        }
        let scientific = format!("{v:.11e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let trimmed = |s: &str| match s.contains('.') {
            true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => s.to_string(),
        };
        match usize::try_from(11 - exponent) {
            Ok(decimals) if (-4..12).contains(&exponent) => f.write_str(&trimmed(&format!("{v:.decimals$}"))),
            _ => {
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(f, "{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs())
            }
        }
    }
}

impl Show for Number {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reading() {
        for (text, n) in [
            ("0", Some(Number::Int(0))),
            ("-12", Some(Number::Int(-12))),
            ("0x1F", Some(Number::Int(31))),
            ("010", Some(Number::Int(8))),
            ("08", Some(Number::Real(8.0))),
            ("1.5e3", Some(Number::Real(1500.0))),
            ("9223372036854775807", Some(Number::Int(i64::MAX))),
            ("9223372036854775808", Some(Number::Real(9_223_372_036_854_775_808.0))),
            ("", None),
            ("x", None),
            ("1x", None),
            ("inf", None),
            ("-", None),
        ] {
            assert_eq!(Number::parse(text), n, "{text}");
        }
    }

    #[test]
    fn showing() {
        for (v, text) in [
            (3.5, "3.5"),
            (3.0, "3"),
            (-0.0, "0"),
            (0.02, "0.02"),
            (10.510_125_608_812_3, "10.5101256088"),
            (1.0 / 3.0, "0.333333333333"),
            (2.0 / 3.0, "0.666666666667"),
            (1e11, "100000000000"),
            (1e12, "1e+12"),
            (-1.5e100, "-1.5e+100"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (999_999_999_999.9, "1e+12"),
            (99_999_999_999.95, "99999999999.9"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(Number::Real(v).to_string(), text);
        }
        assert_eq!(Number::Int(i64::MIN).to_string(), "-9223372036854775808");
    }

    #[test]
    fn what_is_shown_reads_back_to_twelve_digits() {
        let mut x = 88_172_645_463_325_252u64;
        for _ in 0..20_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let v = f64::from_bits(x);
            if !v.is_finite() || v.abs() < 1e-300 {
                continue;
            }
            let back: f64 = Number::Real(v).to_string().parse().unwrap();
            assert!(((back - v) / v).abs() <= 5e-12, "{v} {back}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types for values that elements measure and read handlers return.

use super::{ArgValue, Nanos, Show, ValueError};
use crate::arg::ArgCx;
use crate::handler::ValueKind;

/// A number that only grows until it is reset, for elements that do not keep it as a `Count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted(pub u64);

impl Show for Counted {
    const KIND: ValueKind = ValueKind::Counter;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A number per second, shown with up to twelve significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate(pub f64);

impl Show for Rate {
    const KIND: ValueKind = ValueKind::Rate;
    fn show(&self) -> String {
        twelve_digits(self.0)
    }
}

/// A measured number, shown with up to twelve significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Real(pub f64);

impl Show for Real {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        twelve_digits(self.0)
    }
}

/// A time or a span of time in seconds, shown with up to twelve significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds(pub f64);

impl Show for Seconds {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        twelve_digits(self.0)
    }
}

/// A moment in nanoseconds since 1970, shown as seconds with six decimal places, or nine if six are not
/// exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp(pub i64);

impl Show for Timestamp {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (s, ns) = (self.0.unsigned_abs() / 1_000_000_000, self.0.unsigned_abs() % 1_000_000_000);
        match ns % 1000 {
            0 => format!("{sign}{s}.{:06}", ns / 1000),
            _ => format!("{sign}{s}.{ns:09}"),
        }
    }
}

/// A span of time in nanoseconds. Handlers show it in seconds, with six decimal places and the unit: `0.005000s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed(pub i64);

impl ArgValue for Elapsed {
    const TYPE: &'static str = Nanos::TYPE;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Elapsed, ValueError> {
        Ok(Elapsed(Nanos::parse(text, cx)?.0))
    }
}

impl Show for Elapsed {
    const KIND: ValueKind = ValueKind::Time;
    fn show(&self) -> String {
        Timestamp(self.0).show() + "s"
    }
}

/// Lines of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(pub String);

impl Show for Table {
    const KIND: ValueKind = ValueKind::Table;
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// Formats a number with up to twelve significant digits, without an exponent; 0 if it is not finite.
pub fn twelve_digits(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return "0".into();
    }
    let before = v.abs().log10().floor();
    let places = (11.0 - before).clamp(0.0, 20.0) as usize;
    let text = format!("{v:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_have_twelve_digits() {
        for (v, text) in [
            (0.0, "0"),
            (7.8125, "7.8125"),
            (500.0, "500"),
            (41_000.0 / 3901.0, "10.5101256088"),
            (1.0 / 3.0, "0.333333333333"),
            (2e15, "2000000000000000"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(twelve_digits(v), text);
        }
        assert_eq!(
            (Rate(0.5).show(), Seconds(2.0).show(), Real(-1.5).show()),
            ("0.5".into(), "2".into(), "-1.5".into())
        );
    }
}

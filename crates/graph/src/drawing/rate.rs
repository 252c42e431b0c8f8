// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets per second as a short text.

/// The width in pixels of the longest text of [`short`].
pub(crate) const WIDTH: f64 = 5.0 * super::card::DIGIT;

/// Formats packets per second with at most five characters: `0`, `3.4`, `812`, `9.87k`, `123k`, `1.23M`.
pub(crate) fn short(rate: f64) -> String {
    let rate = rate.max(0.0);
    let digits = |r: f64| match r {
        r if r >= 99.95 => format!("{r:.0}"),
        r if r >= 9.995 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    };
    match rate {
        r if r >= 999.5e9 => "1000G".to_string(),
        r if r >= 999.5e6 => digits(r / 1e9) + "G",
        r if r >= 999.5e3 => digits(r / 1e6) + "M",
        r if r >= 9999.5 => digits(r / 1e3) + "k",
        r if r >= 99.95 || r == r.trunc() => format!("{r:.0}"),
        r => format!("{r:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn texts_are_short() {
        for (rate, text) in [
            (0.0, "0"),
            (-1.0, "0"),
            (0.04, "0.0"),
            (3.44, "3.4"),
            (7.0, "7"),
            (99.96, "100"),
            (812.4, "812"),
            (9_999.0, "9999"),
            (12_345.0, "12.3k"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
            (14_880_952.0, "14.9M"),
            (2.5e9, "2.50G"),
            (1e15, "1000G"),
            (f64::INFINITY, "1000G"),
        ] {
            assert_eq!(short(rate), text);
            assert!(text.len() <= 5);
        }
    }
}

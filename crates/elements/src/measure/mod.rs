// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting packets and bytes, and how fast they come.

use castanet_element::{ClassDef, action};

pub mod average_counter;
pub mod counter;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[action::<average_counter::AverageCounter>(), action::<counter::Counter>()];

/// A real number as handlers show it: at most 12 significant digits, no trailing zeros.
fn real(v: f64) -> String {
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
            assert_eq!(real(v), text);
        }
    }
}

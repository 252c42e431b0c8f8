// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting packets and bytes, how fast they come, and what they have in common.
// Several handlers of a class may have the same flags.
#![allow(clippy::duplicated_attributes)]

use castanet_element::{ClassDef, action, element};

pub mod aggregate_counter;
pub mod aggregate_filter;
pub mod aggregate_ip;
pub mod aggregate_ip_addr_pair;
pub mod aggregate_ip_flows;
pub mod aggregate_length;
pub mod aggregate_paint;
pub mod average_counter;
pub mod counter;
pub mod header_field;
pub mod ip_rate_monitor;
pub mod time_range;
pub mod timestamp_accum;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<aggregate_counter::AggregateCounter>(),
    element::<aggregate_filter::AggregateFilter>(),
    action::<aggregate_ip::AggregateIp>(),
    action::<aggregate_ip_addr_pair::AggregateIpAddrPair>(),
    action::<aggregate_ip_flows::AggregateIpFlows>(),
    action::<aggregate_length::AggregateLength>(),
    action::<aggregate_paint::AggregatePaint>(),
    action::<average_counter::AverageCounter>(),
    action::<counter::Counter>(),
    element::<ip_rate_monitor::IpRateMonitor>(),
    action::<time_range::TimeRange>(),
    action::<timestamp_accum::TimestampAccum>(),
];

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

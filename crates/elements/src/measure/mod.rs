// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes that count packets and bytes, measure their rates, and assign packets to aggregates.

use castanet_element::{ClassDef, action, element};

pub mod aggregate_counter;
pub mod aggregate_filter;
pub mod aggregate_ip;
pub mod aggregate_ip_addr_pair;
pub mod aggregate_ip_flows;
pub mod aggregate_length;
pub mod aggregate_paint;
pub mod average_counter;
pub mod block;
pub mod counter;
pub mod header_field;
pub mod ip_rate_monitor;
mod small_keys;
pub mod time_range;
pub mod timestamp_accum;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<aggregate_counter::AggregateCounter>(),
    element::<aggregate_filter::AggregateFilter>(),
    action::<aggregate_ip::AggregateIp>(),
    action::<aggregate_ip_addr_pair::AggregateIpAddrPair>(),
    element::<aggregate_ip_flows::AggregateIpFlows>(),
    action::<aggregate_length::AggregateLength>(),
    action::<aggregate_paint::AggregatePaint>(),
    action::<average_counter::AverageCounter>(),
    action::<block::Block>(),
    action::<counter::Counter>(),
    element::<ip_rate_monitor::IpRateMonitor>(),
    action::<time_range::TimeRange>(),
    action::<timestamp_accum::TimestampAccum>(),
];

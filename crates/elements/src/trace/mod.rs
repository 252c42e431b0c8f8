// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: reading packets from capture files and summary dumps, writing packets to such files, and classes
//! for timestamps.

use castanet_element::{ClassDef, action, element};

pub mod adjust_timestamp;
pub mod from_dump;
pub mod from_ip_summary_dump;
pub mod from_tcpdump;
mod merge;
mod records;
mod replay;
pub mod set_timestamp_delta;
mod shared_file;
pub mod store_timestamp;
mod summary_args;
pub mod time_filter;
pub mod to_dump;
pub mod to_ip_summary_dump;

pub(crate) use from_dump::args::Probability;
pub(crate) use to_dump::try_file;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    action::<adjust_timestamp::AdjustTimestamp>(),
    element::<from_dump::FromDump>(),
    element::<from_ip_summary_dump::FromIpSummaryDump>(),
    element::<from_tcpdump::FromTcpdump>(),
    action::<set_timestamp_delta::SetTimestampDelta>(),
    action::<store_timestamp::StoreTimestamp>(),
    element::<time_filter::TimeFilter>(),
    element::<to_dump::ToDump>(),
    element::<to_ip_summary_dump::ToIpSummaryDump>(),
];

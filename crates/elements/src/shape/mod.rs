// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements for rates and delays: meters, shapers, splitters.

use castanet_element::{ClassDef, element};

pub mod bandwidth_meter;
pub mod bandwidth_rated_splitter;
pub mod bandwidth_shaper;
pub mod delay_shaper;
pub mod delay_unqueue;
pub mod link_unqueue;
pub mod meter;
pub mod rated_splitter;
pub mod shaper;
pub mod timed_sink;

mod bands;
mod gap;
mod gate;
pub(crate) mod rate;
mod shaping;
mod shared_rate;
mod splitting;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<bandwidth_meter::BandwidthMeter>(),
    element::<bandwidth_rated_splitter::BandwidthRatedSplitter>(),
    element::<bandwidth_shaper::BandwidthShaper>(),
    element::<delay_shaper::DelayShaper>(),
    element::<delay_unqueue::DelayUnqueue>(),
    element::<link_unqueue::LinkUnqueue>(),
    element::<meter::Meter>(),
    element::<rated_splitter::RatedSplitter>(),
    element::<shaper::Shaper>(),
    element::<timed_sink::TimedSink>(),
];

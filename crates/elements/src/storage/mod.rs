// SPDX-License-Identifier: MIT OR Apache-2.0
//! Storage: queues in which packets wait, and elements that pull packets out of queues.

use castanet_element::{ClassDef, element};

pub mod bandwidth_rated_unqueue;
pub mod front_drop_queue;
pub mod mixed_queue;
pub mod notifier_queue;
pub mod queue;
pub mod rated_unqueue;
pub mod simple_queue;
pub mod timed_unqueue;
pub mod unqueue;
pub mod unqueue2;

mod engine;
mod rated;
mod store;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<bandwidth_rated_unqueue::BandwidthRatedUnqueue>(),
    element::<front_drop_queue::FrontDropQueue>(),
    element::<mixed_queue::MixedQueue>(),
    element::<notifier_queue::NotifierQueue>(),
    element::<queue::Queue>(),
    element::<rated_unqueue::RatedUnqueue>(),
    element::<simple_queue::SimpleQueue>(),
    element::<timed_unqueue::TimedUnqueue>(),
    element::<unqueue::Unqueue>(),
    element::<unqueue2::Unqueue2>(),
];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where packets wait, and what takes them out again.

use castanet_element::{ClassDef, element};

pub mod queue;
pub mod rated_unqueue;
pub mod simple_queue;
pub mod unqueue;

mod store;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<queue::Queue>(),
    element::<rated_unqueue::RatedUnqueue>(),
    element::<simple_queue::SimpleQueue>(),
    element::<unqueue::Unqueue>(),
];

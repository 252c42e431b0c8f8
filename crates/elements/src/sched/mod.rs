// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several inputs gives the next packet.

use castanet_element::{ClassDef, element};

pub mod prio_sched;
pub mod round_robin_sched;

/// The classes of this family.
pub const CLASSES: &[ClassDef] =
    &[element::<prio_sched::PrioSched>(), element::<round_robin_sched::RoundRobinSched>()];

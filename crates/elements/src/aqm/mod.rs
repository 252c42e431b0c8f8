// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: classes that drop packets before a queue is full.

use castanet_element::{ClassDef, element};

pub mod adaptive_red;
pub mod codel;
pub mod pi;
pub mod red;

mod average;
mod early;
mod lengths;
mod policy;

/// The classes of this family.
pub const CLASSES: &[ClassDef] = &[
    element::<adaptive_red::AdaptiveRed>(),
    element::<codel::CoDel>(),
    element::<pi::Pi>(),
    element::<red::Red>(),
];

// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

/// Passes packets on.
#[derive(Class)]
#[class(name = "Pass", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct Pass {
    /// Bad packets.
    #[count(unit = "packets", label(reason = &["too short"]))]
    bad: [Count; 2],
}

fn main() {}

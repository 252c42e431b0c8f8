// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

/// Passes packets on.
#[derive(Class)]
#[class(name = "Pass", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive)]
pub struct Pass {
    /// Packets so far.
    count: Count,
}

fn main() {}

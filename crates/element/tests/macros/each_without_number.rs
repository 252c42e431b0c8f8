// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

/// Passes packets on.
#[derive(Class)]
#[class(name = "Pass", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, handlers)]
pub struct Pass {}

#[handlers]
impl Pass {
    /// The limit of a port.
    #[read(each = 2)]
    fn limit(&self) -> u32 {
        0
    }
}

impl Action for Pass {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
}

fn main() {}

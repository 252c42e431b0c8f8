// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

/// Passes packets on.
#[derive(Class)]
#[class(name = "Pass", ports = "1/1", processing = "a/a", packets = "any/strip", flow = "x/x", workers = exclusive)]
pub struct Pass {}

impl Action for Pass {
    fn action(&mut self, _: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        Verdict::Next
    }
}

fn main() {}

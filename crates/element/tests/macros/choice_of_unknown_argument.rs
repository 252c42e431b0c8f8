// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

#[derive(Args)]
#[args(at_most_one(first, third))]
struct Arguments {
    /// One way to say it.
    first: Option<u32>,
    /// Another way to say it.
    second: Option<u32>,
}

fn main() {}

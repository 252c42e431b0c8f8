// SPDX-License-Identifier: MIT OR Apache-2.0
use castanet_element::prelude::*;

#[derive(Args)]
struct Arguments {
    /// How many.
    #[arg(handler = "rx")]
    count: u32,
}

fn main() {}

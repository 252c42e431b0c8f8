// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench control`: measures the cost of control clients.

use crate::load::write_out;
use castanet_bench::control::{Settings, run};
use clap::Args;

/// `castanet bench control`.
#[derive(Args)]
pub struct Control {
    /// Total time of all measurements, in seconds.
    #[arg(long, value_name = "N", default_value_t = 20.0, value_parser = super::seconds)]
    pub seconds: f64,
    /// Handler reads per second.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub reads: u32,
    /// Number of times to compare the forwarding rate during reads with the rate without reads.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub groups: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Runs the benchmark and prints the results.
pub fn main(a: &Control) -> Result<(), String> {
    let results = run(&Settings { seconds: a.seconds, reads: a.reads, groups: a.groups })?;
    let text = if a.json { format!("{:#}\n", results.json()) } else { results.text() };
    write_out(None, &text)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench routes`: measures full route tables.

use crate::load::write_out;
use castanet_bench::routes::{Settings, json, run_all, table};
use clap::Args;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures full route tables: lookups of random addresses, and changes of routes while packets are forwarded.

The first figure is the time of a packet through the table, without its source and its sinks: the same sources send through a Null in \
turns with it. The addresses are those of random prefixes of the table. Then another thread removes and adds routes at a fixed rate, some with each write of the handler ctrl, \
in half of the phases of a run; the others show what the worker forwards without changes.";

/// `castanet bench routes`.
#[derive(Args)]
pub struct Routes {
    /// Total time of all measurements, in seconds, without that of filling the tables.
    #[arg(long, value_name = "N", default_value_t = 20.0, value_parser = super::seconds)]
    seconds: f64,
    /// Number of prefixes, at least 64.
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(64..=4_000_000))]
    prefixes: u32,
    /// Batch size, 1 to 256.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = super::batch)]
    batch: usize,
    /// Changes per second.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    changes: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark and prints the results.
pub fn main(a: &Routes) -> Result<(), String> {
    let settings = Settings { seconds: a.seconds, prefixes: a.prefixes, batch: a.batch, changes: a.changes };
    let rows = run_all(&settings)?;
    let text = if a.json { format!("{:#}\n", json(&rows, &settings)) } else { table(&rows, &settings) };
    write_out(None, &text)
}

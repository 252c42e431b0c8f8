// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench swap`: how long forwarding pauses in a hot swap.

use crate::classes::BuiltIn;
use crate::load::write_out;
use crate::reread::Reader;
use castanet_bench::swap::{self, Settings};
use castanet_runtime::swap::Loader;
use clap::Args;
use std::sync::Arc;

/// `castanet bench swap`.
#[derive(Args)]
pub struct Swap {
    /// Numbers of elements, 10 to 200000.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [50, 1000, 10000], value_parser = elements)]
    pub elements: Vec<usize>,
    /// Number of swaps per size.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub swaps: usize,
    /// Number of workers, 1 to 16.
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub workers: u8,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn elements(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (10..=200_000).contains(n));
    n.ok_or_else(|| "expected a number from 10 to 200000".to_string())
}

/// Runs the benchmark and prints the results.
pub fn main(a: &Swap) -> Result<(), String> {
    let workers = usize::from(a.workers);
    let settings = Settings { elements: a.elements.clone(), workers, swaps: a.swaps };
    let loader: Arc<dyn Loader> =
        Reader::new(BuiltIn::all().available(None), &[], &Default::default(), Default::default());
    let rows = swap::run(&settings, &loader)?;
    let text = match a.json {
        true => format!("{:#}\n", swap::json(&rows, workers)),
        false => swap::table(&rows, workers),
    };
    write_out(None, &text)
}

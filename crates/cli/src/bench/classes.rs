// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench classes`: what each class costs.

use crate::load::write_out;
use castanet_bench::aspl::measure::Counted;
use castanet_bench::classes::{Settings, report, run_all, run_counted};
use clap::Args;
use std::path::PathBuf;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures what each class costs: the time of a packet through an element, without its sources and sinks.

The element is that of the example in the manual (`castanet doc CLASS`), without arguments that call handlers or name files. Each of its inputs gets a source of packets in memory, of the \
type that the class declares, and each output a sink; where packets are pulled, a Queue and an Unqueue stand between. In the same router, \
the same sources send through a Null. Both take turns, and the cost is the difference of turns that follow each other. So a class costs \
what it adds to a router in which a Null stood before. Classes whose elements delay packets, write files or need devices \
are not measured; the end of the table names them.

Routers run as with `castanet run --no-optimize`.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench classes
  castanet bench classes Paint HashSwitch --batch 32 --instructions
  castanet bench classes --capture trace.pcap --seconds 300 --csv classes.csv";

/// `castanet bench classes`.
#[derive(Args)]
pub struct Classes {
    /// The classes to measure; default: all.
    #[arg(value_name = "CLASS")]
    names: Vec<String>,
    /// Total time of all measurements, in seconds, without that of counting instructions.
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = super::seconds)]
    seconds: f64,
    /// Batch sizes, 1 to 256.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [32, 1], value_parser = super::batch)]
    batch: Vec<usize>,
    /// Let sources send the Ethernet frames of this capture file; default: UDP of 64 flows.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Count instructions per packet, with callgrind (part of valgrind). This takes some seconds for each class.
    #[arg(long)]
    instructions: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write a table of all results to this file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Perform only this run, under callgrind, which counts its instructions; `--instructions` passes this option.
    #[arg(long, hide = true, value_name = "RUN", value_parser = super::aspl::counted)]
    count: Option<Counted>,
}

/// Runs the benchmark, then prints the results and writes the requested file.
pub fn main(a: &Classes) -> Result<(), String> {
    if let Some(run) = &a.count {
        return run_counted(run);
    }
    super::warn();
    let is_counted = a.instructions && super::can_count();
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let results = run_all(&Settings {
        names: a.names.clone(),
        seconds: a.seconds,
        batches: a.batch.clone(),
        capture: a.capture.clone(),
        counted: is_counted.then(|| (program, vec!["bench", "classes", "--count"])),
    })?;
    if let Some(file) = &a.csv {
        write_out(Some(file), &report::csv(&results))?;
    }
    let text = if a.json { format!("{:#}\n", report::json(&results)) } else { report::table(&results) };
    write_out(None, &text)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench tcp`: the figures of the paper on TCP in Prolac.

use super::results::Results;
use castanet_bench::tcp::contestant::{Counter, Run};
use castanet_bench::tcp::{PARTS, Part, Settings, link, report, run_all, svg};
use clap::Args;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures the TCP of TCPStack: Figures 6, 7 and 8 of \"A readable TCP in the Prolac protocol language\" (SIGCOMM 1999).

  echo  Figures 6 to 8, in memory: the cost of a packet, input and output, for echoes of 4 to 1448 bytes
  bulk  transfers in memory with packets of 1500 bytes
  link  Figure 6, end to end: 1000 round trips of 4 bytes over veth between network namespaces; and bulk transfers

In memory, hosts exchange packets without loss or delay. All hosts compute and verify the checksums of IP and TCP:

  castanet               the TCP as it is compiled
  castanet, not inlined  the same TCP, compiled without inlining
  smoltcp                another TCP, with timestamps and CUBIC as Castanet's
  smoltcp, bare          the same without timestamps and congestion control

The contestants take turns. Instructions do not depend on other load, times do.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench tcp --instructions --svg tcp.svg --csv tcp.csv
  castanet bench tcp echo bulk --seconds 20
  castanet bench tcp link --processors 0,1";

/// `castanet bench tcp`.
#[derive(Args)]
pub struct Tcp {
    /// The parts to measure: echo, bulk, link; default: all.
    #[arg(value_name = "PART", value_parser = part)]
    parts: Vec<Part>,
    /// Total time of all measurements, in seconds, without that of counting instructions.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds)]
    seconds: f64,
    /// Count instructions per packet, with callgrind (part of valgrind). This takes some minutes.
    #[arg(long)]
    instructions: bool,
    /// Over veth: the processors of client and servers; default: the first two.
    #[arg(long, value_name = "N,N", value_parser = super::veth::processors)]
    processors: Option<[usize; 2]>,
    #[command(flatten)]
    results: Results,
    /// Perform only this run, under callgrind, which counts its instructions; `--instructions` passes this option.
    #[arg(long, hide = true, value_name = "RUN", value_parser = counted)]
    count: Option<Run>,
}

fn part(text: &str) -> Result<Part, String> {
    super::named(&PARTS, text)
}

fn counted(text: &str) -> Result<Run, String> {
    Run::parse(text).ok_or_else(|| "expected CONTESTANT,WORK,SIZE,AMOUNT".to_string())
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Tcp) -> Result<(), String> {
    if let Some(run) = a.count {
        return run.run();
    }
    super::warn();
    let is_counted = a.instructions && super::can_count();
    let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let arguments = ["bench", "tcp", "--count"];
    let settings = Settings {
        parts: if a.parts.is_empty() { PARTS.map(|p| p.1).to_vec() } else { a.parts.clone() },
        seconds: a.seconds,
        counter: is_counted.then_some(Counter { program: &program, arguments: &arguments }),
        link: link::Settings {
            program: program.clone(),
            part: ["bench", "veth-part"].map(str::to_string).into(),
            processors: a.processors,
        },
    };
    let results = run_all(&settings)?;
    a.results.show(
        || report::csv(&results),
        || svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}

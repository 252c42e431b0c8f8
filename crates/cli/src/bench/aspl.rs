// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench aspl`: the papers' figures on optimisation passes, and on the cost of elements.

mod passes;

use super::results::Results;
use castanet_bench::aspl::devices;
use castanet_bench::aspl::measure::Counted;
use castanet_bench::aspl::{PARTS, Part, Settings, report, run_all, svg};
use castanet_bench::veth::Generator;
use clap::Args;
use passes::PASSES;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Measures what the passes of the tools do for a router, and what its elements cost.

The router is that of `castanet bench fig8`. Each pass is applied to it in this process, and all configurations take turns with each \
other and with the hand-written forwarder. Before that, each is checked: it must send the same frames as the router without passes.

  passes      ASPLOS 2002, Figures 8 and 9: the router without passes (Base), with fast classifiers (FC), compiled code (DV), combination \
elements (XF), and without ARP on links between routers (MR); the simplest router (Simple)
  elements    TOCS 2000, Tables I and II: the cost of each element, as what it adds to the elements before it
  modularity  TOCS 2000, section 6.4: combination elements, and with them eight different elements that do nothing
  devices     ASPLOS 2002, Figures 8, 10 and 11: routers between devices (veth), as for `castanet bench veth`

Routers run as with `castanet run --no-optimize`; those whose name ends in (as loaded) run without that option.

The path is a configuration without its sources and sinks, whose cost is measured too. Ratios compare turns that follow each other, so \
they depend less on other load than times; instructions do not depend on it at all.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench aspl --instructions --svg aspl.svg --csv aspl.csv
  castanet bench aspl passes --batch 1,32
  castanet bench aspl devices --seconds 60 --generator packet";

/// `castanet bench aspl`.
#[derive(Args)]
pub struct Aspl {
    /// The parts to measure: passes, elements, modularity, devices; default: the first three.
    #[arg(value_name = "PART", value_parser = part)]
    parts: Vec<Part>,
    /// Total time of all measurements, in seconds, without that of counting instructions.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds)]
    seconds: f64,
    /// Batch sizes, 1 to 256.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 32], value_parser = super::batch)]
    batch: Vec<usize>,
    /// Count instructions per packet, with callgrind (part of valgrind). This takes some minutes.
    #[arg(long)]
    instructions: bool,
    /// Between devices: number of input rates.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    points: u16,
    /// Between devices: number of trials for each rate.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Between devices: the processors of generator and routers; default: the first two.
    #[arg(long, value_name = "N,N", value_parser = super::veth::processors)]
    processors: Option<[usize; 2]>,
    /// Between devices: how packets are made, `live` or `packet`; default: live where the kernel permits it.
    #[arg(long, value_name = "NAME")]
    generator: Option<Generator>,
    #[command(flatten)]
    results: Results,
    /// Perform only this run, under callgrind, which counts its instructions; `--instructions` passes this option.
    #[arg(long, hide = true, value_name = "RUN", value_parser = counted)]
    count: Option<Counted>,
}

fn part(text: &str) -> Result<Part, String> {
    super::named(&PARTS, text)
}

pub fn counted(text: &str) -> Result<Counted, String> {
    Counted::parse(text).ok_or_else(|| "expected BATCH,OPTIMIZE,ROUNDS,FILE".to_string())
}

/// Runs the benchmark, then prints the results and writes the requested files.
pub fn main(a: &Aspl) -> Result<(), String> {
    if let Some(run) = &a.count {
        return run.run(Some(&passes::loader()));
    }
    super::warn();
    let is_counted = a.instructions && super::can_count();
    let default = [Part::Passes, Part::Elements, Part::Modularity];
    let settings = Settings {
        parts: if a.parts.is_empty() { default.to_vec() } else { a.parts.clone() },
        seconds: a.seconds,
        batches: a.batch.clone(),
        program: std::env::current_exe().map_err(|e| format!("this program: {e}"))?,
        counted: is_counted.then(|| vec!["bench", "aspl", "--count"]),
        passes: &PASSES,
        code: Some(&passes::loader()),
        devices: devices::Settings {
            part: ["bench", "veth-part"].map(str::to_string).into(),
            points: a.points.into(),
            rounds: a.rounds.into(),
            processors: a.processors,
            generator: a.generator,
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

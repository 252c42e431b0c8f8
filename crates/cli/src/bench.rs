// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench`: measures forwarding rates and behaviour under load.

mod aspl;
mod classes;
mod control;
mod curves;
mod results;
mod routes;
mod scale;
mod streams;
mod swap;
mod tcp;
mod veth;

use crate::load::complain;
use castanet_bench::fig8::{self, Settings};
use castanet_bench::{Mode, instructions, report};
use clap::{Args, Subcommand};
use results::Results;
use std::process::ExitCode;

/// `castanet bench`.
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    pub what: What,
}

/// The benchmarks.
#[derive(Subcommand)]
pub enum What {
    /// The forwarding path of TOCS 2000, Figure 8, against a hand-written forwarder that sends the same bytes.
    Fig8(Fig8),
    /// What the passes of the tools do for a router, and what its elements cost (ASPLOS 2002, TOCS 2000).
    #[command(long_about = aspl::ABOUT, after_help = aspl::EXAMPLES)]
    Aspl(Box<aspl::Aspl>),
    /// The cost of each class, compared with a Null in its place.
    #[command(long_about = classes::ABOUT, after_help = classes::EXAMPLES)]
    Classes(classes::Classes),
    /// Forwarded rate against offered rate, for a router between two devices and for the kernel's router.
    #[command(long_about = veth::ABOUT, after_help = veth::EXAMPLES)]
    Veth(veth::Veth),
    /// The TCP of TCPStack: echo and bulk, beside smoltcp and the kernel (SIGCOMM 1999).
    #[command(long_about = tcp::ABOUT, after_help = tcp::EXAMPLES)]
    Tcp(tcp::Tcp),
    /// TCP streams between two hosts across the IP router or a NAT gateway, with each driver.
    #[command(long_about = streams::ABOUT, after_help = streams::EXAMPLES)]
    Streams(streams::Streams),
    /// Full route tables: lookups of random addresses, and changes of routes while packets are forwarded.
    #[command(long_about = routes::ABOUT)]
    Routes(routes::Routes),
    /// The cost of reading handlers over a control socket, for a router at full rate.
    Control(control::Control),
    /// How long forwarding pauses while the configuration is swapped.
    Swap(swap::Swap),
    /// The cost of sharing elements between workers, and predicted throughput on 4 to 64 cores.
    #[command(long_about = scale::ABOUT, after_help = scale::EXAMPLES)]
    Scale(scale::Scale),
    /// Differentiated services: output rates of four streams, plotted against the input rate.
    #[command(long_about = curves::DIFFSERV, after_help = curves::EXAMPLES)]
    Diffserv(curves::Curve),
    /// Strict priority with a rate limit, for packets classified late (after the processor) and early (before it):
    /// output rates of three classes, plotted against the input rate.
    #[command(long_about = curves::PRIORITY, after_help = curves::EXAMPLES)]
    Priority(curves::Curve),
    /// RED before one queue, before several queues, and behind one queue: drop rate, plotted against the average queue
    /// length.
    #[command(long_about = curves::RED, after_help = curves::EXAMPLES)]
    Red(curves::Curve),
    /// A helper process of `veth` and others.
    #[command(hide = true)]
    VethPart(veth::Part),
}

/// `castanet bench fig8`.
#[derive(Args)]
pub struct Fig8 {
    /// Total time of all measurements, in seconds.
    #[arg(long, value_name = "N", default_value_t = 12.0, value_parser = seconds)]
    pub seconds: f64,
    /// Batch sizes, 1 to 256.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 8, 32, 128], value_parser = batch)]
    pub batch: Vec<usize>,
    /// Count instructions per packet, with callgrind (part of valgrind).
    #[arg(long)]
    pub instructions: bool,
    /// Do not optimise the configurations as they are loaded.
    #[arg(long)]
    pub no_optimize: bool,
    #[command(flatten)]
    pub results: Results,
    /// Perform only this run, under callgrind, which counts its instructions; `--instructions` passes this option.
    #[arg(long, hide = true, value_name = "RUN", value_parser = run)]
    pub count: Option<instructions::Run>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| (0.0..=3600.0).contains(s));
    seconds.ok_or_else(|| "expected a number of seconds, at most 3600".to_string())
}

fn batch(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=256).contains(n))
        .ok_or_else(|| "expected a number from 1 to 256".to_string())
}

fn run(text: &str) -> Result<instructions::Run, String> {
    instructions::Run::parse(text)
        .ok_or_else(|| "expected CONTESTANT,TRAFFIC,BATCH,OPTIMIZE,ROUNDS".to_string())
}

/// Whether instructions can be counted. If not, says why.
fn can_count() -> bool {
    let can = instructions::available();
    if !can {
        complain("no instructions counted: valgrind is not installed");
    }
    can
}

/// Returns the part of a benchmark that has this name.
fn named<T: Copy, const N: usize>(parts: &[(&str, T); N], text: &str) -> Result<T, String> {
    let part = parts.iter().find(|p| p.0 == text).map(|p| p.1);
    part.ok_or_else(|| format!("expected one of {}", parts.map(|p| p.0).join(", ")))
}

/// Prints a warning if this is a debug build, whose figures are not meaningful.
fn warn() {
    if cfg!(debug_assertions) {
        complain(
            "this program was built without optimisation, so the figures are not meaningful; build with --release",
        );
    }
}

/// Runs a benchmark.
pub fn main(arguments: &Bench) -> ExitCode {
    let done = match &arguments.what {
        What::Fig8(fig8) => match &fig8.count {
            Some(run) => run.run(),
            None => measure(fig8),
        },
        What::Aspl(arguments) => aspl::main(arguments),
        What::Classes(arguments) => classes::main(arguments),
        What::Tcp(arguments) => tcp::main(arguments),
        What::Veth(arguments) => {
            warn();
            veth::main(arguments)
        }
        What::Streams(arguments) => {
            warn();
            streams::main(arguments)
        }
        What::Control(arguments) => {
            warn();
            control::main(arguments)
        }
        What::Routes(arguments) => {
            warn();
            routes::main(arguments)
        }
        What::Swap(arguments) => {
            warn();
            swap::main(arguments)
        }
        What::Scale(arguments) => {
            warn();
            scale::main(arguments)
        }
        What::Diffserv(curve) => curves::main("diffserv", curve),
        What::Priority(curve) => curves::main("priority", curve),
        What::Red(curve) => curves::main("red", curve),
        What::VethPart(part) => veth::part(part),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(e.trim_end());
            ExitCode::FAILURE
        }
    }
}

fn measure(a: &Fig8) -> Result<(), String> {
    warn();
    let optimize = !a.no_optimize;
    let settings = Settings { seconds: a.seconds, batches: a.batch.clone(), optimize };
    let mut results = fig8::run_all(&settings, |_| {})?;
    if a.instructions && can_count() {
        let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
        for row in &mut results.rows {
            let arguments = ["bench", "fig8", "--count"];
            let mode = Mode { batch: row.batch, optimize };
            row.instructions = Some(instructions::count(&program, &arguments, row.traffic, mode)?);
        }
    }
    a.results.show(
        || report::csv(&results),
        || report::svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}

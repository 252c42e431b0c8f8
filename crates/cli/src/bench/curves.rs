// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench diffserv`, `priority` and `red`: draws curves of the papers.

use super::results::Results;
use castanet_bench::curves::{self, Hosts, Settings, report};
use clap::Args;

/// Introductory text of `castanet bench diffserv --help`.
pub const DIFFSERV: &str = "Draws the output rates of four streams over their input rate (Figure 18 of the SOSP 1999 paper).

Each point is a run of conf/diffserv.click in simulated time, so it takes seconds and is the same each time. Stream A is dropped while \
it is above 7,500 packets a second, B is shaped to 10,000, C joins best effort above 12,500, and D is best effort: it gets the \
rest of a link of 100,000. The table shows the measured rates and, in brackets, the ideal ones.";

/// Introductory text of `castanet bench priority --help`.
pub const PRIORITY: &str = "Draws the output rates of three classes of packets over their input rate (Figure 20 of the TOCS 2000 paper).

Each point is a run of conf/priority-late.click and of conf/priority-early.click in simulated time. High priority is limited to 30,000 \
packets a second; from 57,000 on the link is full, and medium displaces low. The processor of the figure is an element of the \
configuration, a RatedUnqueue, also with --hosts: no real processor is at its limit. `castanet bench veth` measures that: the whole IP router of Figure 8 on a real \
processor, at rates far beyond its limit. From 100,000 on it is overloaded. If packets are \
classified late, after the processor, it loses packets of every class, and low gets the rate that medium loses. If they are classified \
early, before the processor, medium keeps the link. The table shows the measured rates and, in brackets, the ideal ones.";

/// Introductory text of `castanet bench red --help`.
pub const RED: &str = "Draws the share of packets that RED drops over the average length of the queues that it watches, for each placement (Figures 5 \
and 11 of the TOCS 2000 paper).

Each point is a run of conf/red.click in simulated time with another load: before one queue, before several, behind a queue, and three \
RED elements with different arguments before one queue. The first column is the share of the load that exceeds the link, which the \
drops must reach. Then come the average length, the share dropped and, in brackets, the share by the formula of Floyd and \
Jacobson 1993 for that length.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet bench diffserv --svg diffserv.svg --csv diffserv.csv
  castanet bench priority --points 14 --to 140000
  castanet bench red --json --seed 7
  castanet bench diffserv --hosts --seconds 60 --svg diffserv-hosts.svg

With --hosts the sender, the router and the receiver are network namespaces on this machine, joined by veth, and runs take real time. \
This needs no privileges where user namespaces are allowed. The configuration is the same, with devices for its sources and for the end \
of its link. All rates are multiplied by --scale, and the results are divided by it. Without --scale it is the greatest of 1, \
0.5, 0.2, 0.1, 0.05 and 0.02 at which a trial at the greatest load comes near the ideal curve; agreement at that load is then a \
consequence of this choice. For red, times shrink as rates grow.";

/// Arguments of `castanet bench diffserv`, `priority` and `red`.
#[derive(Args)]
pub struct Curve {
    /// Number of loads to measure, in equal steps; with --hosts the default depends on --seconds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub points: Option<u16>,
    /// The greatest load, as the rate of each stream or class in packets a second. For red: the greatest excess of the
    /// load over the link's rate, as a share of the load (below 1).
    #[arg(long, value_name = "LOAD", value_parser = positive)]
    pub to: Option<f64>,
    /// Largest number of packets in a batch; the curves do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = super::batch)]
    pub batch: usize,
    /// Seed of random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure in real time between hosts in network namespaces.
    #[arg(long, conflicts_with_all = ["batch", "seed"])]
    pub hosts: bool,
    /// With --hosts: total time of all measurements, in seconds.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds, requires = "hosts")]
    pub seconds: f64,
    /// With --hosts: the factor by which all rates are multiplied.
    #[arg(long, value_name = "FACTOR", value_parser = positive, requires = "hosts")]
    pub scale: Option<f64>,
    #[command(flatten)]
    pub results: Results,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 1e6);
    number.ok_or_else(|| "expected a number above 0, at most 1000000".to_string())
}

/// Runs the benchmark called `name`, then prints the results and writes the requested files.
pub fn main(name: &str, a: &Curve) -> Result<(), String> {
    let what = curves::named(name).ok_or("there is no such curve")?;
    // If the load R exceeds the rate L of the link, the excess is the share (R - L) / R of the load, which is always
    // below 1.
    if name == "red" && a.to.is_some_and(|to| to >= 1.0) {
        return Err("--to: the excess is a share of the load and must be below 1".into());
    }
    let settings = Settings {
        program: std::env::current_exe().map_err(|e| format!("this program: {e}"))?,
        points: match a.points {
            Some(points) => points.into(),
            None if a.hosts => curves::fitting(what, a.seconds),
            None => what.points,
        },
        to: a.to.unwrap_or(what.to),
        batch: a.batch,
        seed: a.seed,
    };
    let results = if a.hosts {
        let part = ["bench", "veth-part"].map(str::to_string).into();
        curves::on_hosts(what, &settings, &Hosts { part, seconds: a.seconds, scale: a.scale })?
    } else {
        curves::simulated(what, &settings)?
    };
    a.results.show(
        || report::csv(&results),
        || curves::svg(&results),
        || report::json(&results),
        || report::table(&results),
    )
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet bench diffserv`, `priority` and `red`: curves of the papers.

use crate::load::write_out;
use castanet_bench::curves::{self, Hosts, Settings, report};
use clap::Args;
use std::path::PathBuf;

/// What `--help` of `diffserv` says first.
pub const DIFFSERV: &str = "Draws what leaves of four streams, over the rate at which each of them comes (Figure 18 of the SOSP 1999 paper).

Each point is a run of conf/diffserv.click in simulated time, so it takes seconds and is the same each time: stream A is dropped while \
it is above 7,500 packets a second, B is shaped to 10,000, C joins best effort above 12,500, and D is best effort: it gets what \
the others leave of a link of 100,000. The table shows what was measured and, in brackets, what is ideal.";

/// What `--help` of `priority` says first.
pub const PRIORITY: &str = "Draws what leaves of three classes of packets, over the rate at which each of them comes (Figure 20 of the TOCS 2000 paper).

Each point is a run of conf/priority-late.click and of conf/priority-early.click in simulated time. High priority is limited to 30,000 \
packets a second; from 57,000 on the link is full, and medium takes from low. The processor of the figure is an element of the \
configuration, a RatedUnqueue, with --hosts too: no real processor is at its limit. From 100,000 on it is overloaded: if packets are \
classified late, behind it, it loses some of each class and low gets what medium loses; if they are classified \
early, before it, medium keeps the link. The table shows what was measured and, in brackets, what is ideal.";

/// What `--help` of `red` says first.
pub const RED: &str = "Draws the share of packets that RED drops, over the average length of the queues that it watches, in each placement (Figures 5 \
and 11 of the TOCS 2000 paper).

Each point is a run of conf/red.click in simulated time with another load: before one queue, before several, behind a queue, and three \
RED elements with other arguments before one. The first column is the share of the load that is too much for the link, to \
which the drops must come; then come the average length, the share dropped and, in brackets, what the formula of Floyd and \
Jacobson 1993 says about that length.";

/// What `--help` says last.
pub const EXAMPLES: &str = "Examples:
  castanet bench diffserv --svg diffserv.svg --csv diffserv.csv
  castanet bench priority --points 14 --to 140000
  castanet bench red --json --seed 7
  castanet bench diffserv --hosts --seconds 60 --svg diffserv-hosts.svg

With --hosts a sender, the router and a receiver are network namespaces on this machine, joined by veth, and time is that of the \
clock. No privileges are needed where user namespaces are allowed. The configuration is the same, with devices for its sources and its \
link's end. All rates are multiplied by --scale, and what is shown has that taken out again. Without --scale it is the greatest of 1, \
0.5, 0.2, 0.1, 0.05 and 0.02 at which a trial at the greatest load comes near the ideal curve: agreement at that load is then chosen, \
not measured. For red times shrink as rates grow.";

/// A curve.
#[derive(Args)]
pub struct Curve {
    /// How many loads, in equal steps; between hosts by default as many as there is time for.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub points: Option<u16>,
    /// The greatest load: packets a second of each stream or class, or, for red, the share that is too much, below 1.
    #[arg(long, value_name = "LOAD", value_parser = positive)]
    pub to: Option<f64>,
    /// The most packets of a batch; the curves do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = super::batch)]
    pub batch: usize,
    /// Seed of random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure between hosts made of network namespaces, by the clock.
    #[arg(long, conflicts_with_all = ["batch", "seed"])]
    pub hosts: bool,
    /// With --hosts: how long all measurements may take together.
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = super::seconds, requires = "hosts")]
    pub seconds: f64,
    /// With --hosts: by how much all rates are multiplied.
    #[arg(long, value_name = "FACTOR", value_parser = positive, requires = "hosts")]
    pub scale: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a table of all measurements to this file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the measurements to this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 1e6);
    number.ok_or_else(|| "expected a number above 0, at most 1000000".to_string())
}

/// Measures and shows.
pub fn main(name: &str, a: &Curve) -> Result<(), String> {
    let what = curves::named(name).ok_or("there is no such curve")?;
    // A load of three times a link is two thirds too much; no load is all too much.
    if name == "red" && a.to.is_some_and(|to| to >= 1.0) {
        return Err("--to: the share that is too much is below 1".into());
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
    if let Some(file) = &a.csv {
        write_out(Some(file), &report::csv(&results))?;
    }
    if let Some(file) = &a.svg {
        write_out(Some(file), &curves::svg(&results))?;
    }
    let text = if a.json { format!("{:#}\n", report::json(&results)) } else { report::table(&results) };
    write_out(None, &text)
}

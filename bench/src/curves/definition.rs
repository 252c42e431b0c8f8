// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the figures: the configurations to run, the variables for the load, and the ideal curves.

use super::Sample;
use super::red::Red;

/// A figure.
#[derive(Debug)]
pub struct Definition {
    /// The name on the command line.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The horizontal axis: quantity and unit.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The values at which the two axes end, in the units of samples. If a value is 0, its axis ends just above the
    /// largest sample.
    pub ends: (f64, f64),
    /// The number of decimals of x and y in tables.
    pub decimals: (usize, usize),
    /// The name of the load in tables.
    pub load: &'static str,
    /// The default number of loads.
    pub points: usize,
    /// The default greatest load.
    pub to: f64,
    /// The titles of the panels, side by side.
    pub panels: &'static [&'static str],
    /// The configurations to run.
    pub files: &'static [File],
}

/// An axis.
#[derive(Debug)]
pub struct Axis {
    /// The quantity.
    pub shows: &'static str,
    /// The unit of samples; empty for ratios.
    pub unit: &'static str,
    /// The number by which samples are divided to get the figures on the axis: 1000 if the axis shows thousands, else
    /// 1.
    pub scale: f64,
}

impl Axis {
    /// The label of the axis.
    pub fn label(&self) -> String {
        let thousands = if self.scale > 1.0 { "thousands of " } else { "" };
        match self.unit {
            "" => self.shows.into(),
            unit => format!("{} ({thousands}{unit})", self.shows),
        }
    }
}

/// A configuration to run, and how to read its results.
#[derive(Debug)]
pub struct File {
    /// The file name in the repository.
    pub name: &'static str,
    /// The text of the configuration.
    pub text: &'static str,
    /// The variable that sets the load.
    pub variable: &'static str,
    /// The handlers to read at the end.
    pub handlers: &'static [&'static str],
    /// Converts the load and the output of a run to samples, one for each series.
    pub read: fn(f64, &str) -> Option<Vec<Sample>>,
    /// Returns the value of the variable for a load from 0 to the greatest load.
    pub value: fn(f64) -> f64,
    /// The source of the samples when real hosts are used.
    pub seen: Seen,
    /// The series of this configuration.
    pub series: &'static [Series],
}

/// The source of the samples when a configuration runs between real hosts.
#[derive(Debug)]
pub enum Seen {
    /// The packets that arrive, counted by DSCP. The list has the DSCP of each series; 0 stands for every DSCP that is
    /// not in the list.
    Arrivals(&'static [u8]),
    /// The numbers that the configuration prints.
    Printed,
}

/// A line of a figure.
#[derive(Debug)]
pub struct Series {
    /// The index of the panel that shows the line.
    pub panel: usize,
    /// The name in tables and beside the line.
    pub name: &'static str,
    /// The name in the legend.
    pub label: &'static str,
    /// The colour.
    pub color: &'static str,
    /// The ideal y at x.
    pub ideal: fn(f64) -> f64,
}

impl Definition {
    /// All series, file by file.
    pub fn series(&'static self) -> impl Iterator<Item = &'static Series> {
        self.files.iter().flat_map(|f| f.series)
    }
}

/// All figures.
pub static ALL: [Definition; 3] = [DIFFSERV, PRIORITY, RED];

/// The figure with this name.
pub fn named(name: &str) -> Option<&'static Definition> {
    ALL.iter().find(|d| d.name == name)
}

const COLORS: [&str; 4] = ["#b03a2e", "#2f6f8f", "#c9a227", "#4d7c3a"];

/// Parses the output of a run: `n` counts of packets, in the order of the handlers. Divides them by the
/// `seconds` in which they were counted.
fn counts(load: f64, printed: &str, n: usize, seconds: f64) -> Option<Vec<Sample>> {
    let numbers = printed.lines().filter_map(|l| l.trim().parse::<f64>().ok());
    let load = whole(load);
    let all: Vec<Sample> = numbers.map(|y| Sample { load, x: load, y: y / seconds }).collect();
    (all.len() == n).then_some(all)
}

fn whole(load: f64) -> f64 {
    load.round()
}

/// Rates in conf/diffserv.click, in packets per second. `LINK` is the rate of the link. Above the rate `RECLASSIFIED`,
/// stream C is best effort.
const LINK: f64 = 100_000.0;
const RECLASSIFIED: f64 = 12_500.0;

fn dropped(rate: f64) -> f64 {
    if rate < 7_500.0 { rate } else { 0.0 }
}

fn shaped(rate: f64) -> f64 {
    rate.min(10_000.0)
}

fn kept(rate: f64) -> f64 {
    if rate < RECLASSIFIED { rate } else { 0.0 }
}

fn best_effort(rate: f64) -> f64 {
    let wanted = if rate < RECLASSIFIED { rate } else { 2.0 * rate };
    wanted.min(LINK - dropped(rate) - shaped(rate) - kept(rate))
}

const DIFFSERV: Definition = Definition {
    name: "diffserv",
    title: "Differentiated services (SOSP 1999, Figure 18)",
    x: Axis { shows: "input rate of each of four streams", unit: "packets a second", scale: 1e3 },
    y: Axis { shows: "output rate", unit: "packets a second", scale: 1e3 },
    ends: (0.0, 0.0),
    decimals: (0, 0),
    load: "input",
    points: 20,
    to: 36_000.0,
    panels: &[""],
    files: &[File {
        name: "conf/diffserv.click",
        text: include_str!("../../../conf/diffserv.click"),
        variable: "RATE",
        handlers: &["a.count", "b.count", "c.count", "d.count"],
        read: |load, printed| counts(load, printed, 4, 1.0),
        value: whole,
        seen: Seen::Arrivals(&[46, 10, 18, 0]),
        series: &[
            Series { panel: 0, name: "A", label: "A: dropped above 7,500", color: COLORS[0], ideal: dropped },
            Series { panel: 0, name: "B", label: "B: shaped to 10,000", color: COLORS[1], ideal: shaped },
            Series {
                panel: 0,
                name: "C",
                label: "C: reclassified as D above 12,500",
                color: COLORS[2],
                ideal: kept,
            },
            Series { panel: 0, name: "D", label: "D: best effort", color: COLORS[3], ideal: best_effort },
        ],
    }],
};

/// Rates in conf/priority-*.click, in packets per second: the rate of the link, and the rate at which the CPU takes
/// packets from each controller (`ARRIVE`).
const ETHERNET: f64 = 144_000.0;
const ARRIVE: f64 = 100_000.0;

fn high(rate: f64) -> f64 {
    rate.min(30_000.0)
}

fn medium(rate: f64) -> f64 {
    rate.min(ETHERNET - high(rate))
}

fn low(rate: f64) -> f64 {
    rate.min(ETHERNET - high(rate) - medium(rate))
}

const fn priorities(panel: usize, ideal: [fn(f64) -> f64; 3]) -> [Series; 3] {
    [
        Series {
            panel,
            name: "high",
            label: "high priority, at most 30,000",
            color: COLORS[0],
            ideal: ideal[0],
        },
        Series { panel, name: "medium", label: "medium priority", color: COLORS[1], ideal: ideal[1] },
        Series { panel, name: "low", label: "low priority", color: COLORS[2], ideal: ideal[2] },
    ]
}

const PRIORITY: Definition = Definition {
    name: "priority",
    title: "Strict priority with a rate limit (TOCS 2000, Figure 20; its processor is a RatedUnqueue)",
    x: Axis { shows: "input rate of each class", unit: "packets a second", scale: 1e3 },
    y: Axis { shows: "forwarding rate", unit: "packets a second", scale: 1e3 },
    ends: (0.0, 144_000.0),
    decimals: (0, 0),
    load: "input",
    points: 14,
    to: 140_000.0,
    panels: &["classified late", "classified early"],
    files: &[
        File {
            name: "conf/priority-late.click",
            text: include_str!("../../../conf/priority-late.click"),
            variable: "RATE",
            handlers: &["high.count", "medium.count", "low.count"],
            read: |load, printed| counts(load, printed, 3, 0.5),
            value: whole,
            seen: Seen::Arrivals(&[46, 10, 0]),
            series: &priorities(
                0,
                [|r| high(r.min(ARRIVE)), |r| medium(r.min(ARRIVE)), |r| low(r.min(ARRIVE))],
            ),
        },
        File {
            name: "conf/priority-early.click",
            text: include_str!("../../../conf/priority-early.click"),
            variable: "RATE",
            handlers: &["high.count", "medium.count", "low.count"],
            read: |load, printed| counts(load, printed, 3, 0.5),
            value: whole,
            seen: Seen::Arrivals(&[46, 10, 0]),
            series: &priorities(1, [high, medium, low]),
        },
    ],
};

/// The arguments of RED in conf/red.click.
const PLAIN: Red = Red { min: 20.0, max: 80.0, max_p: 0.2 };
const FIRST: Red = Red { min: 30.0, max: 100.0, max_p: 0.1 };
const LAST: Red = Red { min: 10.0, max: 60.0, max_p: 0.3 };

/// Parses the output of conf/red.click: packets dropped, packets in total, and average queue length.
fn drops(load: f64, printed: &str) -> Option<Vec<Sample>> {
    // The argument `load` is the requested share of packets to drop. Packet rates are rounded to whole numbers, so the
    // share that the run really has to drop differs slightly. This line computes that share.
    let load = 1.0 - CARRIES / 3.0 / too_much(load);
    let samples = printed.lines().map(|line| {
        let numbers = line.split_whitespace().filter_map(|w| w.parse::<f64>().ok());
        match numbers.collect::<Vec<_>>()[..] {
            [dropped, all, average] => Some(Sample { load, x: average, y: dropped / all.max(1.0) }),
            _ => None,
        }
    });
    let samples: Vec<Sample> = samples.collect::<Option<_>>()?;
    (samples.len() == 6).then_some(samples)
}

/// The link rate in conf/red.click, in packets per second.
const CARRIES: f64 = 100.0;

/// The rate at which each of the three flows must send so that about `share` of all packets exceeds the link rate.
fn too_much(share: f64) -> f64 {
    (CARRIES / 3.0 / (1.0 - share.clamp(0.0, 0.99))).round()
}

const RED: Definition = Definition {
    name: "red",
    title: "RED in each placement (TOCS 2000, Figures 5 and 11)",
    x: Axis { shows: "average queue length", unit: "packets", scale: 1.0 },
    y: Axis { shows: "share of packets dropped", unit: "", scale: 1.0 },
    ends: (160.0, 1.0),
    decimals: (1, 3),
    load: "share",
    points: 12,
    to: 0.9,
    panels: &["one formula, three placements", "weighted: three formulas before one queue"],
    files: &[File {
        name: "conf/red.click",
        text: include_str!("../../../conf/red.click"),
        variable: "EACH",
        handlers: &[],
        read: drops,
        value: too_much,
        seen: Seen::Printed,
        series: &[
            Series {
                panel: 0,
                name: "one",
                label: "before one queue",
                color: COLORS[0],
                ideal: |l| PLAIN.share(l),
            },
            Series {
                panel: 0,
                name: "several",
                label: "before several queues",
                color: COLORS[1],
                ideal: |l| PLAIN.share(l),
            },
            Series {
                panel: 1,
                name: "high",
                label: "RED(30, 100, 0.1)",
                color: COLORS[0],
                ideal: |l| FIRST.share(l),
            },
            Series {
                panel: 1,
                name: "medium",
                label: "RED(20, 80, 0.2)",
                color: COLORS[1],
                ideal: |l| PLAIN.share(l),
            },
            Series {
                panel: 1,
                name: "low",
                label: "RED(10, 60, 0.3)",
                color: COLORS[2],
                ideal: |l| LAST.share(l),
            },
            Series {
                panel: 0,
                name: "front",
                label: "behind a queue: drop from front",
                color: COLORS[3],
                ideal: |l| PLAIN.share(l),
            },
        ],
    }],
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Castanet routers with the kernel's router, between the same two hosts: how much of the offered load each
//! of them forwards.
//!
//! A sender, the routers and a receiver are network namespaces connected by veth (`world`). Trials alternate between
//! the routers, so that other load on the machine affects both. The generator ([`generator`]) has one CPU, and the
//! router another. Over veth the sender's CPU also executes the receive path of the router's host. For Castanet, this
//! path ends at the packet socket. For the kernel's router, it includes the whole router. This receive path can be
//! moved to the router's CPU ([`Settings::steer`]). Programs that the driver of a device runs (XDP) are also a part of this
//! path, so they and the generator share one CPU, as the kernel's router does.

pub mod beside;
mod compare;
pub mod generator;
pub mod part;
mod plot;
pub mod report;
pub(crate) mod world;

pub use compare::Compared;
pub use generator::Generator;
pub use plot::svg;
pub use world::{ADDRESSES, NEXT_HOP, RECEIVER, interfaces};

use crate::fig8::Spread;
use beside::executed::{self, Length};
use std::path::PathBuf;
use std::time::Duration;
use world::World;

/// The name of the kernel's router, which is the first of all.
pub const KERNEL: &str = "kernel";
/// The name of the hand-written forwarder ([`Way::Forwarder`]).
pub const FORWARDER: &str = "xdp-forwarder";
/// The name of the program that drops all frames ([`Way::Drop`]).
pub const DROP: &str = "xdp-drop";
/// The name of the bare AF_XDP forwarder ([`Way::Sockets`]).
pub const SOCKETS: &str = "af-xdp-bare";
/// The least share of frames that must stay in the kernel, if the router runs there.
const STAY: f64 = 0.99;
/// The number of bisection steps in the search for the loss-free rate. They give a resolution of one percent.
const STEPS: usize = 7;
/// The number of trials that determine the maximum sending rate.
const FLOODS: usize = 10;
/// The highest offered rate, as a multiple of the highest rate that a router forwarded.
const BEYOND: f64 = 2.2;
/// The largest acceptable share of a trial's time that other programs take on the CPU of the generator or of the
/// router.
const CALM: f64 = 0.03;
/// The time that a trial takes in addition to its measurement, in seconds.
const AROUND: f64 = 0.05;

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of this program.
    pub program: PathBuf,
    /// The subcommand, as words, with which the program performs a part of the measurement. The arguments of the part
    /// are appended. The subcommand must call [`part::run`].
    pub part: Vec<String>,
    /// The routers to compare with the kernel's.
    pub routers: Vec<Contender>,
    /// The total duration in seconds.
    pub seconds: f64,
    /// The number of offered rates.
    pub points: usize,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The frame length in bytes.
    pub length: usize,
    /// The largest share of lost packets at which a rate still counts as loss-free.
    pub tolerance: f64,
    /// The CPUs of generator and routers; by default the first two.
    pub processors: Option<[usize; 2]>,
    /// Whether the routers' CPU executes the receive path. This requires root.
    pub steer: bool,
    /// The method of packet generation; by default live frames if the kernel permits them.
    pub generator: Option<Generator>,
}

/// A router to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its name in the results.
    pub name: String,
    /// How it forwards.
    pub way: Way,
    /// It forwards one of this number of packets, and drops the others.
    pub share: u32,
    /// The number of its pairs of interfaces (see [`interfaces`]). Packets cross the first pair; the others are idle.
    pub pairs: usize,
    /// The name of the router that it is compared with, besides the kernel's.
    pub base: Option<String>,
}

/// How a router forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By `castanet run`.
    Castanet {
        /// The configuration.
        configuration: String,
        /// Whether the elements that can run in the kernel do (`--driver xdp`).
        in_kernel: bool,
    },
    /// By the hand-written XDP program.
    Forwarder,
    /// Not at all: an XDP program drops all frames. What arrives at the program counts as forwarded.
    Drop,
    /// By AF_XDP sockets, without any elements.
    Sockets,
}

impl Way {
    /// Whether the driver of the receiving device does the work, on the CPU of the generator.
    fn is_program(&self) -> bool {
        matches!(self, Way::Castanet { in_kernel: true, .. } | Way::Forwarder | Way::Drop)
    }
    /// The length of the program; `None` if there is none, or it cannot be interpreted.
    fn length(&self, frame: usize) -> Option<Length> {
        match self {
            Way::Castanet { configuration, in_kernel: true } => executed::compiled(configuration, frame).ok(),
            Way::Forwarder => executed::forwarder(frame).ok(),
            Way::Drop => Some(executed::drop()),
            Way::Castanet { .. } | Way::Sockets => None,
        }
    }
}

/// Measurements of a program that the driver of a device runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The router's name.
    pub name: String,
    /// Nanoseconds of one run, as the kernel counts them.
    pub time: Spread,
    /// The number of its instructions, and of those that it executes for one packet.
    pub length: Option<Length>,
    /// For Castanet: the share of the forwarded packets that did not leave the kernel.
    pub stayed: Option<f64>,
}

/// One trial of one router.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Trial {
    offered: f64,
    forwarded: f64,
    lost: f64,
    cpu: f64,
    /// The share of time in which other programs occupied the CPU of generator or router.
    disturbed: f64,
}

/// A router at one offered rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Packets per second sent to the router.
    pub offered: f64,
    /// Packets per second that the router forwarded.
    pub forwarded: Spread,
    /// The share of packets lost.
    pub lost: f64,
    /// Nanoseconds of CPU time for each packet forwarded.
    pub cpu: Spread,
    /// The share of time in which other programs occupied the CPU of generator or router.
    pub disturbed: f64,
}

/// The results of all routers at one offered rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The requested packets per second; 0 for as many as possible.
    pub asked: f64,
    /// The results of each router, in the order of [`Results::names`].
    pub cells: Vec<Cell>,
}

/// The capacity of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capacity {
    /// The highest forwarding rate in packets per second.
    pub peak: f64,
    /// The highest loss-free rate, in packets per second.
    pub loss_free: f64,
    /// The highest offered rate, in packets per second.
    pub overload: f64,
    /// The forwarding rate at the highest offered rate, in packets per second.
    pub survives: f64,
    /// Nanoseconds of CPU time per packet at the peak.
    pub cpu: f64,
}

/// All results.
#[derive(Clone, Debug)]
pub struct Results {
    /// The names of the routers. The first is [`KERNEL`].
    pub names: Vec<String>,
    /// The frame length in bytes.
    pub length: usize,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The duration of a trial in seconds.
    pub trial: f64,
    /// The largest share of lost packets at which a rate still counts as loss-free.
    pub tolerance: f64,
    /// The CPUs of generator and routers.
    pub processors: [usize; 2],
    /// Whether the routers' CPU executed the receive path.
    pub steered: bool,
    /// The method of packet generation.
    pub generator: Generator,
    /// The results for each rate, in increasing order of the rate. The maximum rate is the last.
    pub points: Vec<Point>,
    /// The results of each router, in the order of `names`.
    pub capacities: Vec<Capacity>,
    /// The programs that the driver of a device runs.
    pub programs: Vec<Program>,
    /// Comparisons of Castanet's routers with each other.
    pub compared: Vec<Compared>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Settings {
    /// The duration of a trial, in seconds, at which all trials fit into the available time.
    fn trial(&self) -> f64 {
        let trials = (1 + self.routers.len()) * (1 + FLOODS + (self.points + 1) * self.rounds + 2 * STEPS)
            + self.routers.iter().filter(|r| r.way.is_program()).count() * self.rounds;
        (self.seconds / trials as f64 - AROUND).clamp(0.02, 10.0)
    }
}

fn trial(world: &mut World, who: usize, rate: f64, seconds: f64) -> Result<Trial, String> {
    let (load, arrived) = world.send(who, rate, Duration::from_secs_f64(seconds))?;
    let time = load.time.as_secs_f64().max(1e-9);
    let received = load.received as f64 * world.share(who);
    Ok(Trial {
        offered: load.sent as f64 / time,
        forwarded: received / time,
        lost: (1.0 - arrived as f64 * world.share(who) / load.all.max(1) as f64).max(0.0),
        cpu: load.busy.as_secs_f64() * 1e9 / received.max(1.0),
        disturbed: load.waited.as_secs_f64() / time,
    })
}

/// Combines the trials that other programs did not disturb. If fewer than a third of all trials were undisturbed,
/// combines the least disturbed third.
fn cell(trials: &[Trial]) -> Cell {
    let mut trials = trials.to_vec();
    trials.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
    let calm = trials.partition_point(|t| t.disturbed <= CALM);
    trials.truncate(calm.max(trials.len().div_ceil(3)));
    let median = |of: fn(&Trial) -> f64| Spread::of(trials.iter().map(of)).median;
    Cell {
        offered: median(|t| t.offered),
        forwarded: Spread::of(trials.iter().map(|t| t.forwarded)),
        lost: median(|t| t.lost),
        cpu: Spread::of(trials.iter().map(|t| t.cpu)),
        disturbed: median(|t| t.disturbed),
    }
}

/// Runs all measurements.
///
/// # Errors
/// The machine lacks a required feature or permission, or the configuration has errors.
pub fn run_all(settings: &Settings) -> Result<Results, String> {
    let mut notes = Vec::new();
    let processors = settings.processors.or_else(|| match castanet_io::namespace::processors()[..] {
        [one] => Some([one, one]),
        [a, b, ..] => Some([a, b]),
        [] => None,
    });
    let processors = processors.ok_or("the kernel does not report its CPUs")?;
    if processors[0] == processors[1] {
        notes.push(
            "generator and routers share one processor: what is offered is what is left of it".to_string(),
        );
    }
    let mut world = World::new(settings, processors)?;
    let names: Vec<String> = world.names().map(str::to_string).collect();
    if let Some(why) = &world.fallback {
        let why = why.lines().next().unwrap_or_default();
        notes.push(format!("packets are sent by a packet socket, which is slower than live frames: {why}"));
    }
    if !settings.steer {
        let programs = settings.routers.iter().filter(|r| r.way.is_program()).map(|r| r.name.as_str());
        let programs: Vec<&str> = programs.collect();
        notes.push(match programs[..] {
            [] => "the kernel's router works on the generator's processor: its ns a packet include generating it; Castanet's \
                   are those of its process"
                .to_string(),
            [ref all @ .., last] => format!(
                "{} and {last} work on the generator's processor: their ns a packet include generating it; those of \
                 others are of the router's process",
                [&["the kernel's router"], all].concat().join(", ")
            ),
        });
    }
    let seconds = settings.trial();
    let before = (0..names.len()).map(|who| world.redirected(who)).collect::<Result<Vec<_>, String>>()?;
    let mut limit = [f64::MAX, 0.0];
    for who in 0..names.len() {
        // This trial is a warm-up: its result is not used.
        trial(&mut world, who, 0.0, seconds)?;
        let mut best = Trial::default();
        for _ in 0..FLOODS {
            let flood = trial(&mut world, who, 0.0, seconds)?;
            best.offered = best.offered.max(flood.offered);
            best.forwarded = best.forwarded.max(flood.forwarded);
        }
        limit = [limit[0].min(best.offered), limit[1].max(best.forwarded)];
    }
    let [most, peak] = limit;
    let top = most.min(BEYOND * peak);
    let points = sweep(&mut world, settings, top, seconds)?;
    let mut capacities = vec![Capacity::default(); names.len()];
    for (who, c) in capacities.iter_mut().enumerate() {
        let cells = points.iter().filter_map(|p| p.cells.get(who));
        for cell in cells {
            if cell.forwarded.median > c.peak {
                (c.peak, c.cpu) = (cell.forwarded.median, cell.cpu.median);
            }
            if cell.offered > c.overload {
                (c.overload, c.survives) = (cell.offered, cell.forwarded.median);
            }
        }
    }
    let most: Vec<f64> = capacities.iter().map(|c| c.overload.max(c.peak)).collect();
    let loss_free = search(&mut world, settings.tolerance, &most, seconds)?;
    for (c, rate) in capacities.iter_mut().zip(loss_free) {
        c.loss_free = rate;
    }
    let (mut programs, compared) = count_runs(&mut world, settings, seconds)?;
    for (who, (name, before)) in names.iter().zip(before).enumerate() {
        let (Some(before), Some(after)) = (before, world.redirected(who)?) else { continue };
        let arrived = after.arrived.saturating_sub(before.arrived);
        let stayed = after.redirected.saturating_sub(before.redirected) as f64 / arrived.max(1) as f64;
        if stayed < STAY {
            notes.push(format!("{name}: only {:.1}% of the packets stayed in the kernel", stayed * 100.0));
        }
        for p in programs.iter_mut().filter(|p| p.name == *name) {
            p.stayed = Some(stayed);
        }
    }
    let disturbed = points.iter().flat_map(|p| &p.cells).map(|c| c.disturbed).fold(0.0, f64::max);
    if disturbed > CALM {
        notes.push(format!(
            "other programs had the processors for up to {:.0}% of the time, so rates are too low; times a packet are right",
            (disturbed * 100.0).min(100.0)
        ));
    }
    let short = names.iter().zip(&capacities).filter(|(_, c)| c.overload < 1.9 * c.peak);
    let short: Vec<&str> = short.map(|(name, _)| name.as_str()).collect();
    if !short.is_empty() {
        notes.push(format!("the generator cannot send twice what is forwarded by {}", short.join(" and ")));
    }
    let (length, rounds, tolerance) = (settings.length, settings.rounds, settings.tolerance);
    Ok(Results {
        names,
        length,
        rounds,
        trial: seconds,
        tolerance,
        processors,
        steered: settings.steer,
        generator: world.generator,
        points,
        capacities,
        programs,
        compared,
        notes,
    })
}

/// Measures at several offered rates up to `top`, and once without a rate limit (rate 0). Each round makes every
/// measurement once, and alternates between the routers.
fn sweep(world: &mut World, settings: &Settings, top: f64, seconds: f64) -> Result<Vec<Point>, String> {
    let n = settings.points.max(1);
    let mut rates: Vec<f64> = (1..=n).map(|i| top * i as f64 / n as f64).collect();
    rates.push(0.0);
    let routers = world.names().count();
    let mut trials: Vec<Vec<Vec<Trial>>> = vec![vec![Vec::new(); routers]; rates.len()];
    for round in 0..settings.rounds.max(1) {
        for (rate, row) in rates.iter().zip(&mut trials) {
            for i in 0..routers {
                // Each round begins with another router.
                let who = (i + round) % routers;
                let done = trial(world, who, *rate, seconds)?;
                row.get_mut(who).map(|all| all.push(done)).unwrap_or_default();
            }
        }
    }
    Ok(rates
        .into_iter()
        .zip(trials)
        .map(|(asked, row)| Point { asked, cells: row.iter().map(|t| cell(t)).collect() })
        .collect())
}

/// Measures the running times of programs with the kernel's statistics, at the maximum rate. Each round measures every
/// program once.
fn count_runs(
    world: &mut World,
    settings: &Settings,
    seconds: f64,
) -> Result<(Vec<Program>, Vec<Compared>), String> {
    let mut counters = Vec::new();
    for (i, router) in settings.routers.iter().enumerate().filter(|(_, r)| r.way.is_program()) {
        counters.push((i + 1, router, world.count_runs(i + 1)?, Vec::new()));
    }
    for _ in 0..settings.rounds.max(1) {
        for (who, _, counter, times) in &mut counters {
            let before = world::runs(counter)?;
            trial(world, *who, 0.0, seconds)?;
            let after = world::runs(counter)?;
            let runs = after.0.saturating_sub(before.0);
            times.push(after.1.saturating_sub(before.1) as f64 / runs.max(1) as f64);
        }
    }
    let times = |name: &str| counters.iter().find(|c| c.1.name == name).map(|c| c.3.as_slice());
    let compared = compare::all(&settings.routers, times);
    let program = |(_, router, _, times): (usize, &Contender, _, Vec<f64>)| Program {
        name: router.name.clone(),
        time: Spread::of(times),
        length: router.way.length(settings.length),
        stayed: None,
    };
    Ok((counters.into_iter().map(program).collect(), compared))
}

/// Finds the highest loss-free rate of each router by bisection, from 0 up to its rate in `most`. A rate passes if at
/// least one of three trials loses no more than `tolerance`. The other trials may fail because of other load on the
/// machine. Disturbed trials are repeated, up to six trials in total.
fn search(world: &mut World, tolerance: f64, most: &[f64], seconds: f64) -> Result<Vec<f64>, String> {
    let mut between: Vec<(f64, f64)> = most.iter().map(|most| (0.0, *most)).collect();
    let mut good = vec![0.0; most.len()];
    for _ in 0..STEPS {
        for (who, (low, high)) in between.iter_mut().enumerate() {
            let rate = (*low + *high) / 2.0;
            let mut passed = None;
            let mut calm = 0;
            for _ in 0..6 {
                let t = trial(world, who, rate, seconds)?;
                calm += usize::from(t.disturbed <= CALM);
                if t.lost <= tolerance {
                    passed = Some(t.offered);
                }
                if passed.is_some() || calm == 3 {
                    break;
                }
            }
            match passed {
                Some(offered) => {
                    *low = rate;
                    if let Some(good) = good.get_mut(who) {
                        *good = offered;
                    }
                }
                None => *high = rate,
            }
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests;

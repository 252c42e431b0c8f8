// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routers between devices: what becomes of packets at each input rate (ASPLOS 2002, Figures 10 and 11), and the processor time
//! of receiving, forwarding and transmitting (Figure 8).
//!
//! Sender, routers and receiver are network namespaces joined by veth, as for [`crate::veth`]. Each router has a host of its own and
//! waits until its turn comes.

mod world;

use super::base::{self, Ends};
use super::figures::{BASE, Figure, Line, ROWS, Row, SIMPLE};
use super::measure::Quartiles;
use super::{Settings as All, made};
use crate::fig8::Spread;
use crate::veth::Generator;
use std::time::Duration;
use world::{Subject, World};

/// How many times more the routers of Figure 8 check each header. Without that, a router that only receives would be faster than the
/// generator, and spend a part of its time on waiting for packets.
const BURDEN: usize = 200;
/// The routers of Figure 8: two that only receive, one of them with twice the burden; the simplest router; and the one without passes.
const BURDENED: [&str; 4] =
    ["receiving", "receiving, twice the burden", "Simple with burden", "Base with burden"];
/// The number of trials without a rate limit that determine the maximum sending rate.
const FLOODS: usize = 10;
/// The time that a trial takes in addition to its measurement, in seconds.
const AROUND: f64 = 0.08;
/// The largest acceptable share of a trial's time that other programs take on the CPU of the generator or of the router.
const CALM: f64 = 0.03;
/// The largest share of lost packets at which a rate counts as loss-free.
const TOLERANCE: f64 = 0.001;

/// Options of the measurement between devices.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The subcommand, as words, that performs a part of the measurement ([`crate::veth::part::run`]).
    pub part: Vec<String>,
    /// The number of input rates.
    pub points: usize,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The CPUs of generator and routers; by default the first two.
    pub processors: Option<[usize; 2]>,
    /// The method of packet generation; by default live frames if the kernel permits them.
    pub generator: Option<Generator>,
}

/// The fate of the packets of a trial. All fields but `ns` and `disturbed` are packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Packets sent to the router.
    pub input: f64,
    /// Packets that arrived at the receiver.
    pub sent: f64,
    /// Packets that did not fit into the ring of the router's packet socket, because the router was too slow.
    pub ring: f64,
    /// Packets that did not fit into the queue before the sending device.
    pub queue: f64,
    /// Packets that the sending device refused.
    pub device: f64,
    /// Packets that the router received.
    pub received: f64,
    /// Processor time of the router for each packet that it received, in nanoseconds.
    pub ns: f64,
    /// The share of time in which other programs occupied the CPU of generator or router.
    pub disturbed: f64,
}

/// The outcomes of each router at one input rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The requested packets per second; 0 for as many as possible.
    pub asked: f64,
    /// The outcomes, by router: the medians of all trials.
    pub outcomes: Vec<Outcome>,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The names of the routers.
    pub routers: Vec<String>,
    /// The results for each rate, in increasing order. The maximum rate is the last.
    pub points: Vec<Point>,
    /// The number of trials for each rate.
    pub rounds: usize,
    /// The duration of a trial in seconds.
    pub trial: f64,
    /// The method of packet generation.
    pub generator: &'static str,
    /// The CPUs of generator and routers.
    pub processors: [usize; 2],
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Results {
    /// The outcomes of one router.
    pub fn of(&self, router: usize) -> impl Iterator<Item = Outcome> + '_ {
        self.points.iter().filter_map(move |p| p.outcomes.get(router).copied())
    }
    /// The highest forwarding rate of a router.
    pub fn peak(&self, router: usize) -> f64 {
        self.of(router).map(|o| o.sent).fold(0.0, f64::max)
    }
    /// The highest of the measured rates that a router forwards without loss (MLFFR).
    pub fn loss_free(&self, router: usize) -> f64 {
        let free = self.of(router).filter(|o| o.sent >= o.input * (1.0 - TOLERANCE));
        free.map(|o| o.sent).fold(0.0, f64::max)
    }
    /// The forwarding rate of a router at the highest input rate.
    pub fn overload(&self, router: usize) -> f64 {
        let last = self.of(router).max_by(|a, b| a.input.total_cmp(&b.input));
        last.map_or(0.0, |o| o.sent)
    }
}

/// The rates of MLFFR in the paper (section 8.3), in packets per second. For Simple it says only that it is not much higher.
pub fn paper(router: &str) -> Option<f64> {
    match router {
        BASE => Some(357e3),
        "All" => Some(446e3),
        "MR+All" => Some(457e3),
        _ => None,
    }
}

/// The routers of Figures 10 and 11: the simplest one, the one without passes, and those with most passes. Without
/// devirtualisation, the others take its place.
fn rows(settings: &All<'_>) -> Vec<Row> {
    let exists = |row: &Row| row.passes.iter().all(|name| settings.passes.iter().any(|p| p.name == *name));
    let named = |names: [&str; 2]| {
        names.into_iter().find_map(|name| ROWS.into_iter().find(|row| row.name == name && exists(row)))
    };
    [[BASE, BASE], ["All", "XF+FC"], ["MR+All", "MR+XF+FC"]].into_iter().filter_map(named).collect()
}

/// Combines the trials that other programs did not disturb. If fewer than a third of all trials were undisturbed, combines the
/// least disturbed third.
fn median(trials: &[Outcome]) -> Outcome {
    let mut trials = trials.to_vec();
    trials.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
    let calm = trials.partition_point(|o| o.disturbed <= CALM);
    trials.truncate(calm.max(trials.len().div_ceil(3)));
    let of = |value: fn(&Outcome) -> f64| Spread::of(trials.iter().map(value)).median;
    Outcome {
        input: of(|o| o.input),
        sent: of(|o| o.sent),
        ring: of(|o| o.ring),
        queue: of(|o| o.queue),
        device: of(|o| o.device),
        received: of(|o| o.received),
        ns: of(|o| o.ns),
        disturbed: of(|o| o.disturbed),
    }
}

/// Runs the measurement. Returns the lines of Figure 8, and the results of Figures 10 and 11.
///
/// # Errors
/// The machine lacks a required feature or permission, or a configuration does not run.
pub fn run(settings: &All<'_>, seconds: f64) -> Result<(Vec<Line>, Results), String> {
    let own = &settings.devices;
    let processors = own.processors.or_else(|| match castanet_io::namespace::processors()[..] {
        [one] => Some([one, one]),
        [a, b, ..] => Some([a, b]),
        [] => None,
    });
    let processors = processors.ok_or("the kernel does not report its CPUs")?;
    let base = base::router(Ends::Devices, 32)?;
    let subject = |name: &str, text: String, forwards| Subject {
        name: name.into(),
        configuration: text.into_bytes(),
        forwards,
    };
    let [once, twice, queue, router] = BURDENED;
    let mut subjects = vec![
        subject(once, base::simple_devices(false, BURDEN), false),
        subject(twice, base::simple_devices(false, 2 * BURDEN), false),
        subject(queue, base::simple_devices(true, BURDEN), true),
        subject(router, base::burdened(BURDEN)?, true),
        subject(SIMPLE, base::simple_devices(true, 0), true),
    ];
    for row in rows(settings) {
        let Some(configuration) = made(&row, &base, settings.passes) else { continue };
        subjects.push(Subject { name: row.name.into(), configuration: configuration?, forwards: true });
    }
    let mut world = World::new(&settings.program, own, processors, &base, &subjects)?;
    let trials = subjects.len() * FLOODS + (subjects.len() - BURDENED.len()) * (own.points + 1) * own.rounds;
    let trial = Duration::from_secs_f64((seconds / trials as f64 - AROUND).clamp(0.02, 10.0));

    let mut floods: Vec<Vec<Outcome>> = vec![Vec::new(); subjects.len()];
    for _ in 0..FLOODS {
        for (who, all) in floods.iter_mut().enumerate() {
            all.push(world.trial(who, 0.0, trial)?);
        }
    }
    let (lines, is_saturated) = breakdown(&floods);
    // The highest rate that the generator reaches with all of them.
    let most = |all: &Vec<Outcome>| all.iter().map(|o| o.input).fold(0.0, f64::max);
    let first = BURDENED.len();
    let top = floods.iter().skip(first).map(most).fold(f64::MAX, f64::min);
    let steps = own.points.max(1);
    let mut rates: Vec<f64> = (1..=steps).map(|i| top * i as f64 / steps as f64).collect();
    rates.push(0.0);
    let several = subjects.len() - first;
    let mut all: Vec<Vec<Vec<Outcome>>> = vec![vec![Vec::new(); several]; rates.len()];
    for round in 0..own.rounds.max(1) {
        for (rate, row) in rates.iter().zip(&mut all) {
            for i in 0..several {
                let who = (i + round) % several;
                let outcome = world.trial(who + first, *rate, trial)?;
                row.get_mut(who).map(|trials| trials.push(outcome)).unwrap_or_default();
            }
        }
    }
    let points = rates
        .into_iter()
        .zip(all)
        .map(|(asked, row)| Point { asked, outcomes: row.iter().map(|trials| median(trials)).collect() });
    let points: Vec<Point> = points.collect();
    let mut notes = Vec::new();
    let disturbed = points.iter().flat_map(|p| &p.outcomes).map(|o| o.disturbed).fold(0.0, f64::max);
    if disturbed > CALM {
        notes.push(format!(
            "other programs had the processors for up to {:.0}% of the time, so rates are too low",
            (disturbed * 100.0).min(100.0)
        ));
    }
    if !is_saturated {
        notes.push(
            "the generator was too slow for Figure 8: a router kept up with it, so its time is too long"
                .to_string(),
        );
    }
    if processors[0] == processors[1] {
        notes.push("generator and routers share one processor".to_string());
    }
    if let Some(why) = &world.fallback {
        let why = why.lines().next().unwrap_or_default();
        notes.push(format!("packets are sent by a packet socket, which is slower than live frames: {why}"));
    }
    let results = Results {
        routers: subjects.iter().skip(first).map(|s| s.name.clone()).collect(),
        points,
        rounds: own.rounds.max(1),
        trial: trial.as_secs_f64(),
        generator: world.generator.name(),
        processors,
        notes,
    };
    Ok((lines, results))
}

/// The lines of Figure 8, and whether each of its routers got more packets than it could handle. Transmitting is what the simplest
/// router needs in addition to receiving, forwarding what the router needs in addition to that. Receiving is the time of the router
/// that only receives, without its burden, which the router with twice the burden tells.
fn breakdown(floods: &[Vec<Outcome>]) -> (Vec<Line>, bool) {
    let [once, twice, simple, base, ..] = floods else { return (Vec::new(), false) };
    // The first trial is a warm-up. Of the others, the half in which other programs disturbed the routers least.
    let all = [once, twice, simple, base];
    let disturbed = |i: &usize| all.iter().filter_map(|of| of.get(*i)).map(|o| o.disturbed).sum::<f64>();
    let mut calm: Vec<usize> = (1..FLOODS).collect();
    calm.sort_by(|a, b| disturbed(a).total_cmp(&disturbed(b)));
    calm.truncate(FLOODS.div_ceil(2));
    let is_saturated = all.iter().all(|of| calm.iter().filter_map(|i| of.get(*i)).all(|o| o.ring > 0.0));
    let [once, twice, simple, base] =
        all.map(|of| calm.iter().filter_map(|i| of.get(*i)).map(|o| o.ns).collect::<Vec<f64>>());
    let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
    let burden = minus(&twice, &once);
    let total = minus(&base, &burden);
    let line = |name: &str, ns: &[f64], paper: f64| Line {
        figure: Figure::Devices,
        batch: 0,
        name: name.into(),
        ns: Quartiles::of(ns.iter().copied()),
        ratio: Quartiles::of(ns.iter().zip(&total).filter(|(_, all)| **all > 0.0).map(|(a, all)| a / all)),
        instructions: None,
        instruction_ratio: None,
        paper: Some(paper),
        paper_ratio: Some(paper / 2905.0),
    };
    let lines = vec![
        line("receiving", &minus(&once, &burden), 701.0),
        line("forwarding", &minus(&base, &simple), 1657.0),
        line("transmitting, with a queue", &minus(&simple, &once), 547.0),
        line("total", &total, 2905.0),
    ];
    (lines, is_saturated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burdens_cancel() {
        let flood = |ns: f64, ring: f64| vec![Outcome { ns, ring, ..Outcome::default() }; FLOODS];
        let floods = |ring| [flood(1100.0, 1.0), flood(1900.0, ring), flood(1600.0, 1.0), flood(1650.0, 1.0)];
        let (lines, is_saturated) = breakdown(&floods(1.0));
        let ns: Vec<f64> = lines.iter().map(|l| l.ns.median).collect();
        assert_eq!((ns.as_slice(), is_saturated), (&[300.0, 50.0, 500.0, 850.0][..], true));
        assert!(!breakdown(&floods(0.0)).1);
        assert_eq!(breakdown(&[]), (Vec::new(), false));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out the measurement: trials, offered rates, the search for the loss-free rate, and running times of programs.

use super::compare;
use super::world::{self, World};
use super::{Capacity, Cell, Compared, Contender, KernelTask, Point, Program, Results, Settings, Subject};
use crate::fig8::Spread;
use std::time::Duration;

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
pub(super) const AROUND: f64 = 0.05;

/// One trial of one router.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Trial {
    pub(super) offered: f64,
    pub(super) forwarded: f64,
    pub(super) received: Option<f64>,
    pub(super) lost: f64,
    pub(super) cpu: f64,
    /// The share of time in which other programs occupied the CPU of generator or router.
    pub(super) disturbed: f64,
}

impl Settings {
    /// The duration of a trial, in seconds, at which all trials fit into the available time.
    pub(super) fn trial(&self) -> f64 {
        let kinds = self.traffic.len();
        let floods = self.floods();
        let searches = if self.search { 2 * (STEPS + 1) } else { 0 };
        let trials =
            (1 + self.routers.len()) * kinds * (1 + floods + (self.points + 1) * self.rounds + searches)
                + self.routers.iter().filter(|r| r.way.is_program()).count() * kinds * self.rounds;
        (self.seconds / trials.max(1) as f64 - AROUND).clamp(0.02, 10.0)
    }

    /// The number of trials that determine the maximum sending rate: none if only that rate is offered, and fewer for each kind of
    /// traffic if there are several.
    fn floods(&self) -> usize {
        if self.points > 0 || self.search { FLOODS.div_ceil(self.traffic.len().max(1)) } else { 0 }
    }
}

fn trial(world: &mut World, who: usize, rate: f64, seconds: f64) -> Result<Trial, String> {
    let sent = world.send(who, rate, Duration::from_secs_f64(seconds))?;
    let load = sent.load;
    let time = load.time.as_secs_f64().max(1e-9);
    let forwarded = load.received as f64 * world.share(who);
    // Packets that were sent after the end of the trial are also received, in the same proportion as those before.
    let before = load.sent as f64 / load.all.max(1) as f64;
    Ok(Trial {
        offered: load.sent as f64 / time,
        forwarded: forwarded / time,
        received: sent.received.map(|n| n as f64 * before / time),
        lost: (1.0 - sent.arrived as f64 * world.share(who) / load.all.max(1) as f64).max(0.0),
        cpu: load.busy.as_secs_f64() * 1e9 / forwarded.max(1.0),
        disturbed: load.waited.as_secs_f64() / time,
    })
}

/// Combines the trials that other programs did not disturb. If fewer than a third of all trials were undisturbed,
/// combines the least disturbed third.
pub(super) fn cell(trials: &[Trial]) -> Cell {
    let mut trials = trials.to_vec();
    trials.sort_by(|a, b| a.disturbed.total_cmp(&b.disturbed));
    let calm = trials.partition_point(|t| t.disturbed <= CALM);
    trials.truncate(calm.max(trials.len().div_ceil(3)));
    let median = |of: fn(&Trial) -> f64| Spread::of(trials.iter().map(of)).median;
    let received: Vec<f64> = trials.iter().filter_map(|t| t.received).collect();
    Cell {
        offered: median(|t| t.offered),
        forwarded: Spread::of(trials.iter().map(|t| t.forwarded)),
        received: (!received.is_empty()).then(|| Spread::of(received).median),
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
    let mut notes = settings.notes.clone();
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
    let (places, subjects): (Vec<usize>, Vec<Subject>) = settings.subjects().into_iter().unzip();
    if let Some(why) = &world.fallback {
        let why = why.lines().next().unwrap_or_default();
        notes.push(format!("packets are sent by a packet socket, which is slower than live frames: {why}"));
    }
    notes.extend(settings.about_processors());
    let seconds = settings.trial();
    let before = world.redirected_all()?;
    let mut limit = [f64::MAX, 0.0];
    for who in 0..subjects.len() {
        // This trial is a warm-up: its result is not used.
        trial(&mut world, who, 0.0, seconds)?;
        let mut best = Trial::default();
        for _ in 0..settings.floods() {
            let flood = trial(&mut world, who, 0.0, seconds)?;
            best.offered = best.offered.max(flood.offered);
            best.forwarded = best.forwarded.max(flood.forwarded);
        }
        limit = [limit[0].min(best.offered), limit[1].max(best.forwarded)];
    }
    let [most, peak] = limit;
    let top = most.min(BEYOND * peak);
    let points = sweep(&mut world, settings, top, seconds)?;
    let mut capacities = vec![Capacity::default(); subjects.len()];
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
    if settings.search {
        let loss_free = search(&mut world, settings.tolerance, &most, seconds)?;
        for (c, rate) in capacities.iter_mut().zip(loss_free) {
            c.loss_free = Some(rate);
        }
    }
    let (mut programs, compared) = count_runs(&mut world, settings, seconds)?;
    let after = world.redirected_all()?;
    let stay = before.into_iter().zip(after).enumerate().filter_map(|(place, (a, b))| Some((place, a?, b?)));
    for (place, before, after) in stay {
        let arrived = after.arrived.saturating_sub(before.arrived);
        let stayed = after.redirected.saturating_sub(before.redirected) as f64 / arrived.max(1) as f64;
        let own = || places.iter().zip(&subjects).filter(|(p, _)| **p == place).map(|(_, s)| s);
        if stayed < STAY
            && let Some(subject) = own().next()
        {
            let router = &subject.router;
            notes.push(format!("{router}: only {:.1}% of the packets stayed in the kernel", stayed * 100.0));
        }
        for subject in own() {
            for p in programs.iter_mut().filter(|p| p.name == subject.name) {
                p.stayed = Some(stayed);
            }
        }
    }
    let disturbed = points.iter().flat_map(|p| &p.cells).map(|c| c.disturbed).fold(0.0, f64::max);
    if disturbed > CALM {
        notes.push(format!(
            "other programs had the processors for up to {:.0}% of the time, so rates are too low; times a packet are right",
            (disturbed * 100.0).min(100.0)
        ));
    }
    if settings.points > 0 {
        let short = subjects.iter().zip(&capacities).filter(|(_, c)| c.overload < 1.9 * c.peak);
        let short: Vec<&str> = short.map(|(s, _)| s.name.as_str()).collect();
        if !short.is_empty() {
            notes.push(format!(
                "the generator cannot send twice what is forwarded by {}",
                short.join(" and ")
            ));
        }
    }
    Ok(Results {
        figure: settings.figure,
        subjects,
        rounds: settings.rounds,
        trial: seconds,
        tolerance: settings.tolerance,
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

impl Settings {
    /// A note on the CPUs whose time is measured.
    fn about_processors(&self) -> Option<String> {
        if self.steer {
            return None;
        }
        let beside = self.routers.iter().filter(|r| r.works_beside_generator());
        let programs: Vec<&str> = beside.map(|r| r.name.as_str()).collect();
        Some(match (self.kernel, &programs[..]) {
            (KernelTask::Send, _) => "ns a packet are those of the process that sends; they include what the receiving host does for a \
                packet, on the same processor"
                .into(),
            (_, []) => "the kernel's router works on the generator's processor: its ns a packet include generating it; Castanet's \
                   are those of its process"
                .into(),
            (_, [all @ .., last]) => format!(
                "{} and {last} work on the generator's processor: their ns a packet include generating it; those of \
                 others are of the router's process",
                [&["the kernel's router"], all].concat().join(", ")
            ),
        })
    }
}

/// Measures at several offered rates up to `top`, and once without a rate limit (rate 0). Each round makes every
/// measurement once, and alternates between the routers.
fn sweep(world: &mut World, settings: &Settings, top: f64, seconds: f64) -> Result<Vec<Point>, String> {
    let n = settings.points;
    let mut rates: Vec<f64> = (1..=n).map(|i| top * i as f64 / n as f64).collect();
    rates.push(0.0);
    let routers = world.len();
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
    let (contenders, subjects) = (settings.contenders(), settings.subjects());
    for (who, (place, subject)) in subjects.iter().enumerate() {
        if let Some(contender) = contenders.get(*place).filter(|c| c.way.is_program()) {
            counters.push((who, subject, contender, world.count_runs(*place)?, Vec::new()));
        }
    }
    for _ in 0..settings.rounds.max(1) {
        for (who, _, _, counter, times) in &mut counters {
            let before = world::runs(counter)?;
            trial(world, *who, 0.0, seconds)?;
            let after = world::runs(counter)?;
            let runs = after.0.saturating_sub(before.0);
            times.push(after.1.saturating_sub(before.1) as f64 / runs.max(1) as f64);
        }
    }
    let times = |name: &str| counters.iter().find(|c| c.1.name == name).map(|c| c.4.as_slice());
    let compared = compare::all(&contenders, &subjects, times);
    let program = |(_, subject, contender, _, times): (usize, &Subject, &Contender, _, Vec<f64>)| Program {
        name: subject.name.clone(),
        time: Spread::of(times),
        length: contender.way.length(subject.traffic.length),
        stayed: None,
    };
    Ok((counters.into_iter().map(program).collect(), compared))
}

/// Finds the highest loss-free rate of each router by bisection, from 0 up to its rate in `most`. If nothing is lost when the
/// generator sends as fast as it can, that rate is the result.
fn search(world: &mut World, tolerance: f64, most: &[f64], seconds: f64) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for (who, most) in most.iter().enumerate() {
        let unlimited = passes(world, who, (0.0, seconds), tolerance)?;
        all.push((unlimited.is_none(), (0.0, *most), unlimited.unwrap_or_default()));
    }
    for _ in 0..STEPS {
        for (who, (_, (low, high), good)) in all.iter_mut().enumerate().filter(|(_, s)| s.0) {
            let rate = (*low + *high) / 2.0;
            match passes(world, who, (rate, seconds), tolerance)? {
                Some(offered) => (*low, *good) = (rate, offered),
                None => *high = rate,
            }
        }
    }
    Ok(all.into_iter().map(|(_, _, good)| good).collect())
}

/// The rate that was really offered, if a router passes at a rate: at least one of three trials loses no more than `tolerance`. The other
/// trials may fail because of other load on the machine. Disturbed trials are repeated, up to six trials in total.
fn passes(
    world: &mut World,
    who: usize,
    (rate, seconds): (f64, f64),
    tolerance: f64,
) -> Result<Option<f64>, String> {
    let mut calm = 0;
    for _ in 0..6 {
        let t = trial(world, who, rate, seconds)?;
        if t.lost <= tolerance {
            return Ok(Some(t.offered));
        }
        calm += usize::from(t.disturbed <= CALM);
        if calm == 3 {
            break;
        }
    }
    Ok(None)
}

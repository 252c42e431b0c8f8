// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what two workers lose by sharing elements, and predicts the throughput with more workers.
//!
//! `cases` lists the configurations, one for each way of sharing. `measure` runs each configuration on one and on two
//! workers in turn. [`model`] has the Universal Scalability Law and models of a lock. The models of a lock are fitted
//! to a sweep over the share of work under the lock, and checked at points of the sweep that are left out of the fit.
//! `predict` computes the throughput with more workers. `report` and `plot` show the results.

mod cases;
mod measure;
mod meter;
pub mod model;
mod plot;
mod predict;
pub mod report;
#[cfg(test)]
mod tests;

pub use cases::{Call, Case, Model};
pub use plot::svg;
pub use predict::{CORES, Prediction};

use crate::fig8::Spread;
use cases::{CROSS, RETURN};
use castanet_wire::{Ipv4Header, checksum};
use measure::{Round, quiet, rounds};
use model::{Machine, Meeting, Point, Work, error, fit_handover};
use std::time::Duration;

/// The shares of work under a lock, in percent, that the benchmark measures in order to fit the hand-over time of each
/// lock model.
const FITTED: [f64; 4] = [5.0, 15.0, 33.0, 60.0];
/// Further shares of work under a lock, in percent, at which the fitted models are checked.
const LEFT_OUT: [f64; 3] = [10.0, 25.0, 45.0];

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The total duration in seconds.
    pub seconds: f64,
    /// The number of rounds.
    pub rounds: usize,
    /// The machine for which throughput is predicted.
    pub machine: Machine,
    /// Configurations that `castanet new` writes, to be measured in addition to those of `cases`.
    pub shipped: Vec<Shipped>,
}

/// A configuration that `castanet new` writes, with memory in place of its devices.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// The configuration.
    pub case: Case,
    /// The names of the elements that two workers share or lock, as text for the report.
    pub sharing: String,
}

impl Shipped {
    /// Makes a case from a configuration. The configuration's sources must send the frames `$FRAMES0` and `$FRAMES1`,
    /// and the names of its meters must begin with `meter`.
    pub fn new(
        name: &str,
        text: String,
        frames: [Vec<Vec<u8>>; 2],
        calls: Vec<Call>,
        sharing: String,
    ) -> Shipped {
        let case = Case {
            name: name.into(),
            text,
            base: None,
            model: Model::Shared,
            calls,
            writes: Vec::new(),
            frames: frames.map(|f| crate::path::literal(&f)),
            target: None,
        };
        Shipped { case, sharing }
    }
}

/// A frame of Ethernet, IPv4 and UDP, of 60 bytes.
pub fn frame(to: [u8; 6], from: [u8; 6], source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let [source, destination] = [source, destination].map(u32::from_be_bytes);
    let mut header = Ipv4Header::new(17, source, destination, 46, 64);
    header.checksum.set(checksum::ipv4_header20_checksum(header.as_array()));
    let mut frame = [&to[..], &from, &[8, 0], &header.to_bytes(), &[0, 53, 0, 53, 0, 26, 0, 0]].concat();
    frame.resize(60, 0);
    frame
}

/// The results for one configuration.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the configuration.
    pub name: String,
    /// The model that predicts the throughput with more workers.
    pub model: Model,
    /// Nanoseconds of worker time per packet, with one worker and with two.
    pub ns: [Spread; 2],
    /// The increase of `ns` from one worker to two, in each round.
    pub extra: Spread,
    /// Packets per second, with one worker and with two.
    pub rate: [Spread; 2],
    /// Nanoseconds of processor time per packet, with one worker and with two.
    pub cpu: [Spread; 2],
    /// The throughput of two workers divided by twice that of one worker, in each round.
    pub left: Spread,
    /// Nanoseconds per packet of the base configuration, with one worker.
    pub base: Option<Spread>,
    /// The share of the time in which the workers waited for a processor.
    pub waited: Spread,
    /// The intended share of work under the lock; none if the case does not belong to the sweep over this share.
    pub target: Option<f64>,
}

impl Row {
    fn of(case: &Case, rounds: &[Round]) -> Row {
        let spread = |f: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(f));
        let base = rounds.iter().filter_map(|r| r.base.map(|s| s.ns));
        Row {
            name: case.name.clone(),
            model: case.model,
            ns: [spread(&|r| r.one.ns), spread(&|r| r.two.ns)],
            extra: spread(&|r| r.two.ns - r.one.ns),
            rate: [spread(&|r| r.one.rate), spread(&|r| r.two.rate)],
            cpu: [spread(&|r| r.one.cpu), spread(&|r| r.two.cpu)],
            left: spread(&|r| r.two.rate / (2.0 * r.one.rate)),
            base: case.base.as_ref().map(|_| Spread::of(base)),
            waited: spread(&|r| (r.one.waited + 2.0 * r.two.waited) / 3.0),
            target: case.target,
        }
    }

    /// The time per packet, split into the serial part (`under`, such as work under a lock) and the parallel part
    /// (`outside`).
    pub fn work(&self) -> Work {
        let [whole, _] = self.ns.map(|s| s.median);
        let base = self.base.map_or(whole, |b| b.median).min(whole);
        match self.model {
            Model::SerialBase => Work { outside: whole - base, under: base },
            _ => Work { outside: base, under: whole - base },
        }
    }

    fn point(&self) -> Point {
        let [_, two] = self.ns;
        Point { work: self.work(), cost: two.median }
    }
}

/// A model of the lock, fitted and checked.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The model.
    pub meeting: Meeting,
    /// The fitted hand-over time, in nanoseconds per packet.
    pub handover: f64,
    /// The error at the points of the fit, relative to the measurement (root mean square).
    pub fitted: f64,
    /// The root mean square of the relative errors at the points left out of the fit.
    pub left_out: f64,
}

/// All results.
#[derive(Clone, Debug)]
pub struct Results {
    /// The number of rounds.
    pub rounds: usize,
    /// The results for the configurations of `cases`, one for each way of sharing.
    pub kinds: Vec<Row>,
    /// The results of the sweep over the share of work under a lock, in increasing order of the share.
    pub sweep: Vec<Row>,
    /// The results for the configurations of `castanet new`, and the elements that their workers share.
    pub shipped: Vec<(Row, String)>,
    /// The cost of a buffer that another worker frees, in nanoseconds of processor time.
    pub freed_elsewhere: f64,
    /// The fitted models of the lock.
    pub fits: Vec<Fit>,
    /// The predictions.
    pub predictions: Vec<Prediction>,
    /// The machine for which throughput is predicted.
    pub machine: Machine,
}

impl Results {
    /// The model with the smallest error at the points left out of the fit.
    pub fn best(&self) -> Option<&Fit> {
        self.fits.iter().min_by(|a, b| a.left_out.total_cmp(&b.left_out))
    }
}

/// Chooses how much work is done under the lock and outside it, for the measurements at different shares of work under
/// the lock. Returns the number of steps under the lock, which is the same for all shares. Also returns a pair for each
/// share: the share in percent, and the number of elements outside the lock that gives this share.
fn sizes(length: Duration) -> Result<(u32, Vec<(f64, usize)>), String> {
    const STEPS: u32 = 64;
    const ELEMENTS: usize = 64;
    let time = |elements: usize, base: bool| {
        let case = cases::locked(STEPS, elements, None);
        let text = if base { case.base.as_deref() } else { None };
        let times = (0..3).map(|_| quiet(&case, text.unwrap_or(&case.text), 1, length).map(|s| s.ns));
        Ok::<_, String>(Spread::of(times.collect::<Result<Vec<_>, _>>()?).median)
    };
    let empty = time(0, true)?;
    let element = ((time(ELEMENTS, true)? - empty) / ELEMENTS as f64).max(0.1);
    let step = ((time(0, false)? - empty) / f64::from(STEPS)).max(0.01);
    // The intended time of the work under the lock, large enough for every share of the sweep. Without elements outside
    // the lock, this work takes about 64 percent of the whole time. The largest share of the sweep is 60 percent.
    let under = empty * 1.8;
    let steps = (under / step).ceil().min(1e4);
    let elements = |share: f64| ((under / share * 100.0 - under - empty) / element).round().max(0.0) as usize;
    let mut shares: Vec<f64> = FITTED.into_iter().chain(LEFT_OUT).collect();
    shares.sort_by(f64::total_cmp);
    Ok((steps as u32, shares.into_iter().map(|s| (s, elements(s))).collect()))
}

/// Runs all measurements, and calls `tell` with the name of each measurement before it starts.
///
/// # Errors
/// A configuration does not run.
pub fn run(settings: &Settings, mut tell: impl FnMut(&str)) -> Result<Results, String> {
    let kinds = cases::all();
    let phases = |c: &Case| 2 + usize::from(c.base.is_some());
    let count: usize = kinds.iter().map(phases).sum::<usize>()
        + (FITTED.len() + LEFT_OUT.len()) * 3
        + settings.shipped.len() * 2;
    // A phase is preceded by a warm-up of a quarter of its length. The calibration has nine phases.
    let all = (count * settings.rounds.max(1) + 9) as f64 * 1.25;
    let length = Duration::from_secs_f64((settings.seconds / all).max(0.002));
    let mut measure = |case: &Case| {
        tell(&case.name);
        Ok::<_, String>(Row::of(case, &rounds(case, settings.rounds, length)?))
    };
    let kinds = kinds.iter().map(&mut measure).collect::<Result<Vec<_>, _>>()?;
    let (steps, shares) = sizes(length)?;
    let sweep =
        shares.into_iter().map(|(share, elements)| cases::locked(steps, elements, Some(share / 100.0)));
    let sweep = sweep.map(|case| measure(&case)).collect::<Result<Vec<_>, _>>()?;
    let shipped = settings.shipped.iter().map(|s| Ok((measure(&s.case)?, s.sharing.clone())));
    let shipped = shipped.collect::<Result<Vec<_>, String>>()?;
    Ok(analyse(settings, kinds, sweep, shipped))
}

/// Fits the models of the lock, and predicts the throughput with more workers.
fn analyse(settings: &Settings, kinds: Vec<Row>, sweep: Vec<Row>, shipped: Vec<(Row, String)>) -> Results {
    let points = |fitted: bool| -> Vec<Point> {
        let is_fitted = |r: &&Row| {
            r.target.is_some_and(|t| FITTED.iter().any(|f| (f / 100.0 - t).abs() < 1e-6)) == fitted
        };
        sweep.iter().filter(is_fitted).map(Row::point).collect()
    };
    let (with, without) = (points(true), points(false));
    let fit = |meeting| {
        let handover = fit_handover(&with, meeting);
        Fit {
            meeting,
            handover,
            fitted: error(&with, meeting, handover),
            left_out: error(&without, meeting, handover),
        }
    };
    let extra = |name: &str| {
        let row = kinds.iter().find(|r| r.name == name);
        row.map_or(0.0, |r| {
            let [one, two] = r.cpu;
            two.median - one.median
        })
    };
    // In `CROSS`, a packet is handed over once, and the other worker frees its buffer. In `RETURN`, it is handed over
    // twice, and the worker that made it frees its buffer. So the extra cost of `CROSS`, minus half that of `RETURN`,
    // is the cost of freeing another worker's buffer.
    let freed_elsewhere = extra(CROSS) - extra(RETURN) / 2.0;
    let mut results = Results {
        rounds: settings.rounds.max(1),
        kinds,
        sweep,
        shipped,
        freed_elsewhere,
        fits: Meeting::ALL.map(fit).into(),
        predictions: Vec::new(),
        machine: settings.machine,
    };
    results.predictions = predict::all(&results);
    results
}

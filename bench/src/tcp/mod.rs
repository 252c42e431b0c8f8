// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of "A readable TCP in the Prolac protocol language" (SIGCOMM 1999, section 5) for the TCP of protocols/tcp, beside
//! smoltcp and the kernel.
//!
//! Modules, bottom up: `host` (a host with a connection), `ours` and `theirs` (the implementations), `echo` and `bulk` (exchanges
//! in memory), [`contestant`] (what is compared), [`link`] (exchanges between namespaces), [`report`] and [`svg`].

pub mod bulk;
pub mod contestant;
pub mod echo;
pub mod host;
pub mod link;
mod ours;
mod plot;
pub mod report;
mod theirs;

pub use plot::svg;

use crate::aspl::measure::{Cost, Quartiles};
use bulk::Transfer;
use contestant::{Contestant, Counter};
use echo::Exchange;
use host::MOST;
use std::time::Instant;

/// The bytes of data in the echoes of Figures 7 and 8. The first one is that of Figure 6.
pub const SIZES: [usize; 6] = [4, 64, 256, 512, 1024, MOST];
/// The packets that arrive before the receiver of a bulk transfer reads.
pub const BURSTS: [usize; 2] = [1, 32];
/// The repetitions of an echo in one turn.
const ECHOES: usize = 10;
/// The bytes of a bulk transfer in one turn.
const BYTES: usize = 4_000_000;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Figures 6, 7 and 8 in memory: processing time of a packet.
    Echo,
    /// Bulk transfers in memory.
    Bulk,
    /// Figure 6 and bulk transfers between namespaces.
    Link,
}

/// All parts, in the order of the report, with their names.
pub const PARTS: [(&str, Part); 3] = [("echo", Part::Echo), ("bulk", Part::Bulk), ("link", Part::Link)];

/// Options of the measurement.
pub struct Settings<'a> {
    /// The parts to measure.
    pub parts: Vec<Part>,
    /// The total duration in seconds, without that of counting instructions.
    pub seconds: f64,
    /// Counts instructions. `None`: they are not counted.
    pub counter: Option<Counter<'a>>,
    /// Options of the measurement between namespaces.
    pub link: link::Settings,
}

/// The cost of a packet of an echo.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    /// The bytes of data.
    pub size: usize,
    /// The costs of each contestant, in the order of [`Contestant::ALL`]: of input and of output.
    pub costs: Vec<[Cost; 2]>,
}

/// The cost of a packet with data of a bulk transfer.
#[derive(Clone, Debug, Default)]
pub struct Bulk {
    /// The packets that arrive before the receiver reads.
    pub burst: usize,
    /// The costs of each contestant, in the order of [`Contestant::ALL`].
    pub costs: Vec<Cost>,
    /// The bits per nanosecond of each contestant.
    pub rates: Vec<Quartiles>,
    /// The packets without data per packet with data, of each contestant.
    pub acknowledgements: Vec<f64>,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The echoes in memory, in the order of [`SIZES`].
    pub echoes: Vec<Echo>,
    /// The bulk transfers in memory, in the order of [`BURSTS`].
    pub bulk: Vec<Bulk>,
    /// The results between namespaces.
    pub link: Option<link::Results>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Echo {
    /// The cost of a packet: the mean of input and output, of which there are as many.
    pub fn packet(&self, contestant: usize) -> Cost {
        let Some([input, output]) = self.costs.get(contestant) else { return Cost::default() };
        Cost {
            turns: input.turns.iter().zip(&output.turns).map(|(a, b)| (a + b) / 2.0).collect(),
            instructions: input.instructions.zip(output.instructions).map(|(a, b)| (a + b) / 2.0),
        }
    }
}

/// Lets all subjects take turns for `seconds`, at least three times. Each time around, another one begins.
fn alternate<T>(
    subjects: &mut [T],
    seconds: f64,
    mut turn: impl FnMut(usize, &mut T) -> Result<(), String>,
) -> Result<(), String> {
    let (started, mut turns) = (Instant::now(), 0);
    while turns < 3 || started.elapsed().as_secs_f64() < seconds {
        for i in 0..subjects.len() {
            let next = (i + turns) % subjects.len();
            if let Some(subject) = subjects.get_mut(next) {
                turn(next, subject)?;
            }
        }
        turns += 1;
    }
    Ok(())
}

/// Measures echoes of one size.
///
/// # Errors
/// A contestant does not exchange data as it should.
pub fn echo(size: usize, seconds: f64, counter: Option<Counter<'_>>) -> Result<Echo, String> {
    let subjects: Result<Vec<Box<dyn Exchange>>, String> =
        Contestant::ALL.into_iter().map(|c| c.echo(size)).collect();
    let mut costs = vec![<[Cost; 2]>::default(); Contestant::ALL.len()];
    alternate(&mut subjects?, seconds, |i, exchange| {
        let ns = exchange.exchange(ECHOES)?;
        for (cost, ns) in costs.get_mut(i).into_iter().flatten().zip(ns) {
            cost.turns.push(ns);
        }
        Ok(())
    })?;
    if let Some(counter) = counter {
        for (contestant, costs) in Contestant::ALL.into_iter().zip(&mut costs) {
            let counts = counter.echo(contestant, size)?;
            costs.iter_mut().zip(counts).for_each(|(cost, n)| cost.instructions = Some(n));
        }
    }
    Ok(Echo { size, costs })
}

/// Measures bulk transfers.
///
/// # Errors
/// A contestant does not exchange data as it should.
pub fn bulk(burst: usize, seconds: f64, counter: Option<Counter<'_>>) -> Result<Bulk, String> {
    let subjects: Result<Vec<Box<dyn Transfer>>, String> =
        Contestant::ALL.into_iter().map(|c| c.bulk(burst)).collect();
    let mut all = vec![(Cost::default(), Vec::new(), 0.0); Contestant::ALL.len()];
    alternate(&mut subjects?, seconds, |i, transfer| {
        let moved = transfer.transfer(BYTES)?;
        if let Some((cost, rates, acknowledgements)) = all.get_mut(i) {
            cost.turns.push(moved.ns / moved.segments);
            rates.push(8.0 * moved.bytes / moved.ns);
            *acknowledgements = moved.acknowledgements / moved.segments;
        }
        Ok(())
    })?;
    let mut result = Bulk { burst, ..Bulk::default() };
    for (contestant, (mut cost, rates, acknowledgements)) in Contestant::ALL.into_iter().zip(all) {
        if let Some(counter) = counter {
            cost.instructions = Some(counter.bulk(contestant, burst)?);
        }
        result.costs.push(cost);
        result.rates.push(Quartiles::of(rates));
        result.acknowledgements.push(acknowledgements);
    }
    Ok(result)
}

/// Runs all measurements.
///
/// # Errors
/// A contestant does not exchange data as it should, or the machine lacks what the measurement between namespaces needs.
pub fn run_all(settings: &Settings<'_>) -> Result<Results, String> {
    let mut results = Results::default();
    let share = settings.seconds / settings.parts.len().max(1) as f64;
    if settings.parts.contains(&Part::Echo) {
        for size in SIZES {
            results.echoes.push(echo(size, share / SIZES.len() as f64, settings.counter)?);
        }
    }
    if settings.parts.contains(&Part::Bulk) {
        for burst in BURSTS {
            results.bulk.push(bulk(burst, share / BURSTS.len() as f64, settings.counter)?);
        }
    }
    if settings.parts.contains(&Part::Link) {
        let link = link::run(&settings.link, share)?;
        results.notes.extend(link.notes.iter().cloned());
        results.link = Some(link);
    }
    Ok(results)
}

#[cfg(test)]
mod tests;

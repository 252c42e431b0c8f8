// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves of the papers: what configurations of conf/ do over a range of loads, beside what they are meant to do.
//!
//! Each point is a run of the very file in conf/, in simulated time ([`simulated`]) and so exact, or
//! between real hosts ([`on_hosts`]). [`definition`] says what is run and what is ideal, [`report`] and [`svg`] show it.

pub mod definition;
pub mod hosts;
mod plot;
mod red;
pub mod report;
mod simulation;
mod world;

pub use definition::{ALL, Definition, named};
pub use hosts::{Hosts, fitting, on_hosts};
pub use plot::svg;
pub use simulation::simulated;

use std::path::PathBuf;

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The castanet command.
    pub program: PathBuf,
    /// How many loads.
    pub points: usize,
    /// The greatest load.
    pub to: f64,
    /// The most packets of a batch.
    pub batch: usize,
    /// Seed of random numbers.
    pub seed: u64,
}

/// What was seen of a series at one load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The load.
    pub load: f64,
    /// What it is drawn over: the load itself, or a quantity that follows from it.
    pub x: f64,
    /// What was measured.
    pub y: f64,
}

/// Everything measured.
#[derive(Clone, Debug)]
pub struct Results {
    /// What was measured.
    pub what: &'static Definition,
    /// How, for people.
    pub how: String,
    /// By series, in the order of the definition, with rising loads.
    pub series: Vec<Vec<Sample>>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Results {
    /// All series with what they are, file by file.
    pub fn iter(&self) -> impl Iterator<Item = (&'static definition::Series, &[Sample])> {
        self.what.series().zip(self.series.iter().map(Vec::as_slice))
    }
}

/// Loads in the middle of as many equal parts: steps of the ideal curves, which stand at round numbers, fall between them.
fn loads(points: usize, to: f64) -> impl Iterator<Item = f64> {
    let points = points.max(1);
    (0..points).map(move |i| (i as f64 + 0.5) * to / points as f64)
}

#[cfg(test)]
mod tests;

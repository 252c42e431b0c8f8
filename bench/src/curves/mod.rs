// SPDX-License-Identifier: MIT OR Apache-2.0
//! Curves of the papers: the behaviour of configurations in conf/ over a range of loads, compared with the
//! ideal.
//!
//! Each point is a run of a file in conf/. [`simulated`] runs them in simulated time, with exact results.
//! [`on_hosts`] runs them between real hosts. [`definition`] defines configurations and ideals; [`report`] and
//! [`svg`] present the results.

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

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The castanet command.
    pub program: PathBuf,
    /// The number of loads.
    pub points: usize,
    /// The greatest load.
    pub to: f64,
    /// The maximum batch size.
    pub batch: usize,
    /// The random seed.
    pub seed: u64,
}

/// A measured point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The load.
    pub load: f64,
    /// The horizontal coordinate: the load itself, or a quantity that depends on it.
    pub x: f64,
    /// The vertical coordinate: the measured value.
    pub y: f64,
}

/// The results.
#[derive(Clone, Debug)]
pub struct Results {
    /// The figure.
    pub what: &'static Definition,
    /// How the curves were measured, in words.
    pub how: String,
    /// The samples of each series, in the order of the definition and with increasing loads.
    pub series: Vec<Vec<Sample>>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Results {
    /// All series with their definitions, file by file.
    pub fn iter(&self) -> impl Iterator<Item = (&'static definition::Series, &[Sample])> {
        self.what.series().zip(self.series.iter().map(Vec::as_slice))
    }
}

/// The loads of the points: the midpoints of equal intervals. The ideal curves have their steps at round numbers, so
/// each step lies between two points.
fn loads(points: usize, to: f64) -> impl Iterator<Item = f64> {
    let points = points.max(1);
    (0..points).map(move |i| (i as f64 + 0.5) * to / points as f64)
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP streams between two hosts across a router: the kernel's router, and Castanet's with each of its drivers. The hosts have the
//! kernel's TCP. Each trial measures all routers, and begins with another one than the last.
//!
//! Modules: `world` (hosts and processes) and [`report`]. [`svg`] draws the rates.

pub mod report;
mod world;

use crate::aspl::measure::Quartiles;
use crate::bars::{self, Bar};
use crate::chart;
use crate::tcp::link::ends::Request;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use world::World;

/// The round trips of a trial.
const TRIPS: usize = 300;
/// The duration of a stream.
const TIME: Duration = Duration::from_millis(500);

/// The work that the devices of hosts and router leave to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offloads {
    /// Checksums and segmentation, as by default.
    Defaults,
    /// Hosts complete their checksums and send no super-packets, as METHOD XDP needs.
    Completed,
    /// Nothing, on all devices.
    Off,
}

impl Offloads {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Offloads::Defaults => "defaults",
            Offloads::Completed => "completed by the hosts",
            Offloads::Off => "off",
        }
    }

    /// The arguments of `ethtool -K DEVICE`. A veth device receives frames that XDP has redirected only if GRO is on.
    fn arguments(self) -> Option<&'static str> {
        match self {
            Offloads::Defaults => None,
            Offloads::Completed => Some("tx off txvlan off gro on"),
            Offloads::Off => Some("tx off rx off sg off tso off gso off gro off"),
        }
    }
}

/// A router to measure.
#[derive(Clone, Debug)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// Its configuration, with the devices `in` and `out` and the addresses of [`crate::veth::interfaces`]; `None` for the kernel.
    pub configuration: Option<String>,
    /// Whether it runs in the kernel as far as possible.
    pub in_kernel: bool,
    /// The offloads of all devices.
    pub offloads: Offloads,
}

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of this program.
    pub program: PathBuf,
    /// The subcommand, as words, that performs a part of the measurement: it must call [`crate::veth::part::run`].
    pub part: Vec<String>,
    /// The routers; the others are compared with the first one.
    pub routers: Vec<Router>,
    /// The duration in seconds; at least three trials run, even if they take longer.
    pub seconds: f64,
}

/// The results of a router.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// The offloads of all devices.
    pub offloads: Offloads,
    /// The rates of streams, in Gb/s.
    pub rate: Quartiles,
    /// The ratio of the rate to that of the first router in the same trial.
    pub ratio: Quartiles,
    /// The microseconds of a round trip of 4 bytes.
    pub latency: Quartiles,
}

/// The results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The number of trials.
    pub trials: usize,
    /// The routers, in the order of the settings.
    pub routers: Vec<Measured>,
}

/// Measures all routers.
///
/// # Errors
/// The machine lacks a required feature or permission, or the data does not come through.
pub fn run(settings: &Settings) -> Result<Results, String> {
    let mut world = World::new(settings)?;
    let n = settings.routers.len();
    let (started, mut trials) = (Instant::now(), 0);
    let mut all = vec![(Vec::new(), Vec::new()); n];
    while trials < 3 || started.elapsed().as_secs_f64() < settings.seconds {
        for i in 0..n {
            let router = (i + trials) % n;
            let rate = world.ask(router, Request::Send(TIME))?;
            let trip = world.ask(router, Request::Echo(TRIPS))?;
            if let Some((rates, trips)) = all.get_mut(router) {
                rates.push(rate / 1e9);
                trips.push(trip / 1e3);
            }
        }
        trials += 1;
    }
    let first = all.first().map(|(rates, _)| rates.clone()).unwrap_or_default();
    let measured = settings.routers.iter().zip(all).map(|(router, (rates, trips))| Measured {
        name: router.name.clone(),
        offloads: router.offloads,
        ratio: Quartiles::of(rates.iter().zip(&first).map(|(a, b)| a / b.max(1e-9))),
        rate: Quartiles::of(rates),
        latency: Quartiles::of(trips),
    });
    Ok(Results { trials, routers: measured.collect() })
}

/// Draws the rates.
pub fn svg(r: &Results) -> String {
    let labels: Vec<String> =
        r.routers.iter().map(|m| format!("{}, {}", m.name, m.offloads.name())).collect();
    let bars: Vec<Bar<'_>> = r
        .routers
        .iter()
        .zip(&labels)
        .enumerate()
        .map(|(i, (m, label))| {
            let says = format!("{:.1} ({:.1} to {:.1})", m.rate.median, m.rate.lower, m.rate.upper);
            (label.as_str(), m.rate.median, says, if i == 0 { "#777777" } else { "#2f6f8f" })
        })
        .collect();
    let mut body = String::new();
    let end = bars::draw(&mut body, 20.0, "TCP across the routers: Gb/s, by driver and offloads", &bars);
    chart::open("TCP across the routers", bars::WIDTH, end) + &body + chart::CLOSE
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the Figure 8 path with the hand-written forwarder (the monolith), and measures the cost of a queue.

use crate::frames::Traffic;
use crate::path::{self, GATEWAYS, Mode, PATH, QUEUE_PATH};
use castanet_element::Clock;
use castanet_runtime::Router;

/// The number of packets that each source sends in a round.
pub const PACKETS: u64 = 4096;
/// The number of trial rounds. Their duration determines how many rounds fit into the available time.
const TRIAL: u64 = 5;

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The total duration in seconds.
    pub seconds: f64,
    /// The batch sizes to measure.
    pub batches: Vec<usize>,
    /// Whether the routers are optimised as they are loaded.
    pub optimize: bool,
}

/// The distribution of a quantity over many rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Computes the distribution of some values; zeros if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let at = |i: usize| all.get(i).copied().unwrap_or_default();
        let n = all.len();
        let median = if n % 2 == 1 { at(n / 2) } else { (at(n / 2) + at((n / 2).wrapping_sub(1))) / 2.0 };
        Spread { median, min: at(0), max: at(n.wrapping_sub(1)) }
    }
}

/// Instructions per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instructions {
    /// Instructions per packet of the configuration.
    pub castanet: f64,
    /// Instructions per packet of the monolith.
    pub monolith: f64,
}

/// The results for the path at one batch size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The traffic pattern.
    pub traffic: Traffic,
    /// The batch size.
    pub batch: usize,
    /// The number of rounds measured.
    pub rounds: usize,
    /// Nanoseconds per packet for the configuration.
    pub castanet: Spread,
    /// Nanoseconds per packet for the monolith.
    pub monolith: Spread,
    /// The time of the configuration divided by that of the monolith, in each round.
    pub ratio: Spread,
    /// Instructions per packet, if counted.
    pub instructions: Option<Instructions>,
}

/// The results for a Queue with an Unqueue at one batch size.
#[derive(Clone, Debug)]
pub struct QueueRow {
    /// The batch size.
    pub batch: usize,
    /// The number of rounds measured.
    pub rounds: usize,
    /// Nanoseconds per packet from a source to a sink.
    pub without: Spread,
    /// Nanoseconds per packet from a source through a queue to a sink.
    pub with: Spread,
    /// The difference between `with` and `without`, in each round.
    pub difference: Spread,
}

/// All results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The results for the Figure 8 path.
    pub rows: Vec<Row>,
    /// The results for the queue.
    pub queue: Vec<QueueRow>,
}

/// Builds the router of the path. Its [`Rounds`](crate::rounds::Rounds) element runs the contestants that `contestants`
/// names, and records their times.
pub(crate) fn router(contestants: &str, traffic: Traffic, mode: Mode, rounds: u64) -> Result<Router, String> {
    let (name, batch) = (traffic.name(), mode.batch);
    let text = format!(
        "{PATH}\nrounds :: Rounds({contestants}, ROUNDS {rounds}, TRAFFIC {name}, PACKETS {PACKETS}, BATCH {batch});\n"
    );
    let mut router = path::router(&text, &path::defines(traffic, batch, PACKETS), mode, &[], Clock::real())?;
    for (i, gateways) in GATEWAYS.into_iter().enumerate() {
        for g in gateways {
            path::insert(&mut router, i, g)?;
        }
    }
    Ok(router)
}

fn queue_router(mode: Mode, rounds: u64) -> Result<Router, String> {
    let text = format!("{QUEUE_PATH}\nrounds :: Rounds(plain queued, ROUNDS {rounds});\n");
    let defines =
        [("LIMIT", 2 * PACKETS), ("BURST", mode.batch as u64)].map(|(n, v)| (n.to_string(), v.to_string()));
    path::router(&text, &defines.into(), mode, &[], Clock::real())
}

/// Runs a router to its end. Returns one pair for each round: the nanoseconds per packet of the first and of the second
/// contestant of its `Rounds`.
fn run(mut router: Router) -> Result<Vec<(f64, f64)>, String> {
    router.run().map_err(|e| e.to_string())?;
    let rounds = router.find("rounds");
    let times = router.read(rounds, "times", "").map_err(|e| e.to_string())?;
    let row = |line: &str| {
        let mut words = line.split(' ').map(|w| w.parse::<f64>().map(|ns| ns / (2 * PACKETS) as f64).ok());
        Some((words.next()??, words.next()??))
    };
    times.lines().map(row).collect::<Option<_>>().ok_or_else(|| "a round is missing".to_string())
}

/// Runs as many rounds as fit into the available time.
fn measure(make: impl Fn(u64) -> Result<Router, String>, seconds: f64) -> Result<Vec<(f64, f64)>, String> {
    let trial = run(make(TRIAL)?)?;
    let packet = Spread::of(trial.iter().map(|(a, b)| a + b)).median;
    let round = packet.max(1.0) * (2 * PACKETS) as f64 * 1e-9;
    let rounds = (seconds / round).clamp(TRIAL as f64, 1e6);
    run(make(rounds as u64)?)
}

/// Runs all measurements, and calls `tell` for each row when it is complete.
///
/// # Errors
/// A configuration does not run.
pub fn run_all(settings: &Settings, mut tell: impl FnMut(&Row)) -> Result<Results, String> {
    let mut results = Results::default();
    let mode = |batch| Mode { batch, optimize: settings.optimize };
    let parts = settings.batches.len().max(1) * (Traffic::ALL.len() + 1);
    // At most 50 s. After a minute, the ARP tables would send requests to renew their entries, and no host would
    // answer them.
    let seconds = (settings.seconds / parts as f64).min(50.0);
    for traffic in Traffic::ALL {
        for &batch in &settings.batches {
            let rounds = measure(|n| router("source0+source1 monolith", traffic, mode(batch), n), seconds)?;
            let row = Row {
                traffic,
                batch,
                rounds: rounds.len(),
                castanet: Spread::of(rounds.iter().map(|r| r.0)),
                monolith: Spread::of(rounds.iter().map(|r| r.1)),
                ratio: Spread::of(rounds.iter().map(|r| r.0 / r.1)),
                instructions: None,
            };
            tell(&row);
            results.rows.push(row);
        }
    }
    for &batch in &settings.batches {
        let rounds = measure(|n| queue_router(mode(batch), n), seconds)?;
        results.queue.push(QueueRow {
            batch,
            rounds: rounds.len(),
            without: Spread::of(rounds.iter().map(|r| r.0)),
            with: Spread::of(rounds.iter().map(|r| r.1)),
            difference: Spread::of(rounds.iter().map(|r| r.1 - r.0)),
        });
    }
    Ok(results)
}

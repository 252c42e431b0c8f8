// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures configurations alternately, in time and in instructions.

use super::router::{self, Loader, MEASURED};
use crate::fig8::{PACKETS, Spread};
use crate::frames::{Traffic, frames};
use crate::instructions::{Contestant, Run, collected};
use crate::monolith::Monolith;
use crate::path::Mode;
use crate::rounds::thread_time;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of rounds of one turn of a configuration. The median counts.
const INNER: u64 = 4;
/// The rounds of the two runs under callgrind. The difference does not include the start of the program.
const COUNTED: [u64; 2] = [1, 4];

/// A program or configuration that is measured.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A configuration or archive, and whether it is optimised as it is loaded.
    Configuration(Vec<u8>, bool),
    /// The hand-written forwarder.
    Monolith,
}

/// The distribution of a quantity over the turns. A single turn that other programs disturbed does not show in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values is smaller.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// A quarter of the values is larger.
    pub upper: f64,
}

impl Quartiles {
    /// Computes the distribution of some values; zeros if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Quartiles {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let at = |quarter: usize| {
            all.get((all.len().saturating_sub(1) * quarter + 2) / 4).copied().unwrap_or_default()
        };
        Quartiles { lower: at(1), median: Spread::of(all.iter().copied()).median, upper: at(3) }
    }

    /// The median, and the quartiles in parentheses, with so many digits after the point.
    pub fn text(self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$} to {:.decimals$})", self.median, self.lower, self.upper)
    }

    /// All three values.
    pub fn json(self) -> serde_json::Value {
        serde_json::json!({ "lower": self.lower, "median": self.median, "upper": self.upper })
    }
}

/// The cost of a packet.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// Nanoseconds in each turn.
    pub turns: Vec<f64>,
    /// Instructions, if counted.
    pub instructions: Option<f64>,
}

impl Cost {
    /// The additional cost compared with `other`, which was measured in the same turns.
    pub fn minus(&self, other: &Cost) -> Cost {
        Cost {
            turns: self.turns.iter().zip(&other.turns).map(|(a, b)| a - b).collect(),
            instructions: self.instructions.zip(other.instructions).map(|(a, b)| a - b),
        }
    }
    /// The nanoseconds.
    pub fn ns(&self) -> Quartiles {
        Quartiles::of(self.turns.iter().copied())
    }
    /// The cost divided by `other`, which was measured in the same turns: of nanoseconds, and of instructions.
    pub fn ratio(&self, other: &Cost) -> (Quartiles, Option<f64>) {
        let turns = self.turns.iter().zip(&other.turns).filter(|(_, b)| **b != 0.0).map(|(a, b)| a / b);
        let instructions = self.instructions.zip(other.instructions).filter(|(_, b)| *b != 0.0);
        (Quartiles::of(turns), instructions.map(|(a, b)| a / b))
    }
}

/// One turn of the hand-written forwarder: nanoseconds per packet.
fn monolith(batch: usize) -> f64 {
    let (f0, f1) = (frames(Traffic::One, 0), frames(Traffic::One, 1));
    let mut m = Monolith::new([&f0, &f1], false, Traffic::One.colors());
    let mut round = || {
        let started = thread_time();
        (0..PACKETS.div_ceil(batch as u64)).for_each(|_| m.turn(batch));
        (thread_time() - started) as f64 / (2 * PACKETS) as f64
    };
    // A warm-up.
    round();
    Spread::of((0..INNER).map(|_| round())).median
}

/// Returns the configurations with the statements that measure them.
fn prepared(subjects: &[Subject]) -> Result<Vec<Subject>, String> {
    let one = |subject: &Subject| match subject {
        Subject::Configuration(bytes, optimize) => {
            Ok(Subject::Configuration(router::with_text(bytes, MEASURED)?, *optimize))
        }
        Subject::Monolith => Ok(Subject::Monolith),
    };
    subjects.iter().map(one).collect()
}

fn turn(subject: &Subject, batch: usize, code: Option<&Loader>) -> Result<f64, String> {
    match subject {
        Subject::Monolith => Ok(monolith(batch)),
        &Subject::Configuration(ref bytes, optimize) => {
            Ok(Spread::of(router::run(bytes, Mode { batch, optimize }, INNER, code)?).median)
        }
    }
}

/// Measures the time of all subjects for `seconds`. They take turns; each time around, another one begins.
///
/// # Errors
/// A configuration does not run.
pub fn times(
    subjects: &[Subject],
    batch: usize,
    seconds: f64,
    code: Option<&Loader>,
) -> Result<Vec<Cost>, String> {
    let subjects = prepared(subjects)?;
    let mut costs = vec![Cost::default(); subjects.len()];
    let (started, mut turns) = (Instant::now(), 0);
    while turns < 3 || started.elapsed().as_secs_f64() < seconds {
        let mut around = vec![0.0; subjects.len()];
        for i in 0..subjects.len() {
            let next = (i + turns) % subjects.len();
            if let (Some(subject), Some(ns)) = (subjects.get(next), around.get_mut(next)) {
                *ns = turn(subject, batch, code)?;
            }
        }
        costs.iter_mut().zip(around).for_each(|(cost, ns)| cost.turns.push(ns));
        turns += 1;
    }
    Ok(costs)
}

/// A run of a configuration, for callgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    mode: Mode,
    rounds: u64,
    file: PathBuf,
}

impl Counted {
    /// Formats the run as `BATCH,OPTIMIZE,ROUNDS,FILE`.
    fn text(&self) -> String {
        let Mode { batch, optimize } = self.mode;
        format!("{batch},{optimize},{},{}", self.rounds, self.file.display())
    }
    /// Parses a text that `text` returned.
    pub fn parse(text: &str) -> Option<Counted> {
        let (batch, rest) = text.split_once(',')?;
        let (optimize, rest) = rest.split_once(',')?;
        let (rounds, file) = rest.split_once(',')?;
        let batch = batch.parse().ok().filter(|b| (1..=256).contains(b))?;
        let mode = Mode { batch, optimize: optimize.parse().ok()? };
        Some(Counted { mode, rounds: rounds.parse().ok()?, file: file.into() })
    }
    /// Executes the run.
    ///
    /// # Errors
    /// The file cannot be read, or its configuration does not run.
    pub fn run(&self, code: Option<&Loader>) -> Result<(), String> {
        let bytes = std::fs::read(&self.file).map_err(|e| format!("{}: {e}", self.file.display()))?;
        router::run(&bytes, self.mode, self.rounds, code).map(drop)
    }
}

/// Counts the instructions per packet of a configuration, which sends `packets` packets in each of its `$ROUNDS` rounds.
/// `program` is this program; with `arguments` and the text of a [`Counted`], it must execute that run.
///
/// # Errors
/// callgrind fails, or the configuration does not run.
pub(crate) fn count(
    configuration: &[u8],
    mode: Mode,
    packets: u64,
    program: &Path,
    arguments: &[&str],
) -> Result<f64, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
    let file = folder.path().join("configuration");
    std::fs::write(&file, configuration).map_err(|e| format!("{}: {e}", file.display()))?;
    per_packet(packets, |rounds| {
        let run = Counted { mode, rounds, file: file.clone() }.text();
        collected(program, arguments.iter().copied().chain([run.as_str()]))
    })
}

/// The instructions per packet, from those of a short and of a long run with `packets` packets in each round.
fn per_packet(packets: u64, total: impl Fn(u64) -> Result<u64, String>) -> Result<f64, String> {
    let [short, long] = COUNTED;
    let difference = total(long)?.saturating_sub(total(short)?);
    Ok(difference as f64 / ((long - short) * packets) as f64)
}

/// Counts the instructions of each subject. `program` is this program; with `arguments` and the text of a [`Counted`], it
/// must execute that run.
///
/// # Errors
/// callgrind fails, or a configuration does not run.
pub fn instructions(
    subjects: &[Subject],
    batch: usize,
    program: &Path,
    arguments: &[&str],
) -> Result<Vec<f64>, String> {
    let one = |subject: Subject| match subject {
        Subject::Configuration(bytes, optimize) => {
            count(&bytes, Mode { batch, optimize }, 2 * PACKETS, program, arguments)
        }
        Subject::Monolith => per_packet(2 * PACKETS, |rounds| {
            let contestant = Contestant::Monolith;
            let run = Run { contestant, traffic: Traffic::One, mode: Mode::plain(batch), rounds };
            collected(program, ["bench", "fig8", "--count", &run.text()])
        }),
    };
    prepared(subjects)?.into_iter().map(one).collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts instructions per packet with callgrind. The program is run twice, the second time with more rounds.
//! The difference is the cost of the additional rounds, without startup and shutdown.

use crate::fig8::{self, Instructions, PACKETS};
use crate::frames::{Traffic, frames};
use crate::monolith::Monolith;
use crate::path::Mode;
use std::path::Path;
use std::process::{Command, Stdio};

/// The programs to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// The configuration.
    Castanet,
    /// The hand-written forwarder.
    Monolith,
}

impl Contestant {
    fn name(self) -> &'static str {
        match self {
            Contestant::Castanet => "castanet",
            Contestant::Monolith => "monolith",
        }
    }
}

/// A run whose instructions are counted.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The program to run.
    pub contestant: Contestant,
    /// The traffic pattern.
    pub traffic: Traffic,
    /// The batch size, and whether the configuration is optimised as it is loaded.
    pub mode: Mode,
    /// The number of rounds.
    pub rounds: u64,
}

impl Run {
    /// Formats the run as `CONTESTANT,TRAFFIC,BATCH,OPTIMIZE,ROUNDS`, the argument for the subprocess.
    pub fn text(&self) -> String {
        let Mode { batch, optimize } = self.mode;
        format!("{},{},{batch},{optimize},{}", self.contestant.name(), self.traffic.name(), self.rounds)
    }
    /// Parses a text that [`Run::text`] returned.
    pub fn parse(text: &str) -> Option<Run> {
        let mut words = text.split(',');
        let contestant = match words.next()? {
            "castanet" => Contestant::Castanet,
            "monolith" => Contestant::Monolith,
            _ => return None,
        };
        let traffic = Traffic::named(words.next()?)?;
        let batch = words.next()?.parse().ok().filter(|b| (1..=256).contains(b))?;
        let mode = Mode { batch, optimize: words.next()?.parse().ok()? };
        let rounds = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Run { contestant, traffic, mode, rounds })
    }

    /// Executes the run.
    ///
    /// # Errors
    /// The configuration does not run.
    pub fn run(&self) -> Result<(), String> {
        match self.contestant {
            Contestant::Castanet => {
                let mut router = fig8::router("source0+source1", self.traffic, self.mode, self.rounds)?;
                router.run().map_err(|e| e.to_string())
            }
            Contestant::Monolith => {
                let (f0, f1) = (frames(self.traffic, 0), frames(self.traffic, 1));
                let mut m = Monolith::new([&f0, &f1], self.traffic == Traffic::Four, self.traffic.colors());
                for _ in 0..(self.rounds + 1) * PACKETS.div_ceil(self.mode.batch as u64) {
                    m.turn(self.mode.batch);
                }
                Ok(())
            }
        }
    }
}

/// Whether valgrind is installed.
pub fn available() -> bool {
    let mut version = Command::new("valgrind");
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|s| s.success())
}

/// Counts instructions for one traffic pattern and batch size. Starts `program` with `arguments` and [`Run::text`]; the
/// program must then call [`Run::run`].
///
/// # Errors
/// callgrind or the program fails.
pub fn count(
    program: &Path,
    arguments: &[&str],
    traffic: Traffic,
    mode: Mode,
) -> Result<Instructions, String> {
    const SHORT: u64 = 1;
    const LONG: u64 = 4;
    let packet = |contestant| {
        let total = |rounds| {
            let run = Run { contestant, traffic, mode, rounds }.text();
            collected(program, arguments.iter().copied().chain([run.as_str()]))
        };
        let difference = total(LONG)?.saturating_sub(total(SHORT)?);
        Ok::<f64, String>(difference as f64 / ((LONG - SHORT) * 2 * PACKETS) as f64)
    };
    Ok(Instructions { castanet: packet(Contestant::Castanet)?, monolith: packet(Contestant::Monolith)? })
}

/// Returns the number of instructions of a program that callgrind runs.
///
/// # Errors
/// callgrind or the program fails.
pub(crate) fn collected<'a>(
    program: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<u64, String> {
    collected_of(program, arguments, &[])
}

/// As [`collected`], with further options of callgrind that say what is counted.
///
/// # Errors
/// callgrind or the program fails.
pub(crate) fn collected_of<'a>(
    program: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
    options: &[&str],
) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).args(options);
    valgrind.arg(program).args(arguments);
    let out = valgrind.stdin(Stdio::null()).output().map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&out.stderr);
    let number = text.lines().find_map(|l| l.split_once("Collected :")?.1.trim().parse().ok());
    match number {
        Some(n) if out.status.success() => Ok(n),
        _ => Err(format!("valgrind did not count instructions: {}", text.lines().last().unwrap_or_default())),
    }
}

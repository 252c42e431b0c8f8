// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measuring element. It alternately times the hand-written forwarder (the monolith) and sources in the element's
//! own router.

use crate::frames::{Traffic, frames};
use crate::monolith::Monolith;
use castanet_element::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;

/// The CPU time of this thread, in nanoseconds.
pub(crate) fn thread_time() -> i64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}

/// Runs contestants alternately, `ROUNDS` times, and records how long each took.
///
/// A contestant is either the word `monolith`, for the hand-written forwarder, or the names of MemSources with
/// `STOP true`, joined by `+`. To run sources, the element resets their counts. The run is over when each source has
/// asked the driver to stop. When the router starts, all sources run together as a warm-up. The element handles the
/// router's stop requests: it records the time, and starts the next contestant. So everything happens on one thread
/// with one packet pool, and only the work of the run loop is timed.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: MemSource(LIMIT 1000, STOP true) -> Discard;
/// b :: MemSource(LIMIT 1000, STOP true) -> Queue -> Unqueue(32) -> Discard;
/// r :: Rounds(a b, ROUNDS 10);
/// ```
#[derive(Class)]
#[class(name = "Rounds", ports = "0/0", processing = "a/a", packets = "any/any", workers = exclusive, build, lifecycle, handlers)]
#[class(effects(stops, calls))]
pub struct Rounds {
    args: Args,
    contestants: Vec<Contestant>,
    monolith: Option<Monolith>,
    /// The number of sources of the current run that have not yet asked the driver to stop.
    awaited: usize,
    /// The index of the current contestant; `None` during the warm-up.
    running: Option<usize>,
    started: i64,
    left: u64,
    times: Vec<i64>,
}

/// Arguments of Rounds.
#[derive(Args)]
pub struct Args {
    /// What to measure, separated by blanks: `monolith`, or names of MemSources joined by `+`.
    contestants: String,
    /// The number of rounds.
    #[arg(keyword, default = 1)]
    rounds: u64,
    /// The traffic pattern of the monolith: one or four.
    #[arg(keyword, default = "one".to_string())]
    traffic: String,
    /// The number of packets that each of the monolith's two sources sends in a round.
    #[arg(keyword, default = 1000)]
    packets: u64,
    /// The batch size of the monolith.
    #[arg(keyword, default = 32)]
    batch: u32,
}

enum Contestant {
    Monolith,
    Sources(Vec<u32>),
}

impl Build for Rounds {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let traffic = Traffic::named(&args.traffic).ok_or("TRAFFIC: expected 'one' or 'four'")?;
        let (mut contestants, mut all, mut monolith) = (Vec::new(), HashSet::new(), None);
        for word in args.contestants.split_whitespace() {
            if word == "monolith" {
                let (f0, f1) = (frames(traffic, 0), frames(traffic, 1));
                monolith = Some(Monolith::new([&f0, &f1], traffic == Traffic::Four, traffic.colors()));
                contestants.push(Contestant::Monolith);
                continue;
            }
            let find = |name: &str| {
                let e = ElementRef::parse(name, &cx.arg_cx())?;
                u32::try_from(e.0).map_err(|_| format!("no element named '{name}'"))
            };
            let sources = word.split('+').map(find).collect::<Result<Vec<_>, _>>()?;
            all.extend(sources.iter().copied());
            contestants.push(Contestant::Sources(sources));
        }
        if contestants.is_empty() {
            return Err("CONTESTANTS: at least one is needed".into());
        }
        if args.batch == 0 {
            return Err("BATCH: must be at least 1".into());
        }
        if !cx.claim_driver() {
            return Err("another element drives the stop of the router already".into());
        }
        let (left, times) = (args.rounds, Vec::new());
        Ok(Rounds { args, contestants, monolith, awaited: all.len(), running: None, started: 0, left, times })
    }
}

impl Rounds {
    /// Runs the monolith, and records its time.
    fn run_monolith(&mut self) {
        let Some(m) = &mut self.monolith else { return };
        let batch = self.args.batch as usize;
        let turns = self.args.packets.div_ceil(u64::from(self.args.batch));
        let started = thread_time();
        for _ in 0..turns {
            m.turn(batch);
        }
        self.times.push(thread_time() - started);
    }

    /// Starts the next contestant that consists of sources: resets their counts, after which the run loop runs them. If
    /// the monolith (the hand-written program) comes before these sources, first runs the monolith to its end. Returns
    /// false when all rounds are over, or after an error.
    fn start(&mut self, cx: &mut Cx<'_>) -> bool {
        let mut next = self.running.map_or(0, |r| r + 1);
        loop {
            if next >= self.contestants.len() {
                next = 0;
                self.left = self.left.saturating_sub(1);
            }
            if self.left == 0 {
                return false;
            }
            match self.contestants.get(next) {
                Some(Contestant::Sources(sources)) => {
                    for &s in sources {
                        if let Err(e) = cx.write_handler(Some(s), "reset", "") {
                            cx.message(&format!("{}: {e}", cx.declaration()));
                            return false;
                        }
                    }
                    self.awaited = sources.len();
                    self.running = Some(next);
                    self.started = thread_time();
                    return true;
                }
                Some(Contestant::Monolith) => self.run_monolith(),
                None => return false,
            }
            next += 1;
        }
    }
}

impl Element for Rounds {
    fn drive(&mut self, cx: &mut Cx<'_>) -> Drive {
        let now = thread_time();
        self.awaited = self.awaited.saturating_sub(1);
        if self.awaited > 0 {
            return Drive::Continue;
        }
        if self.running.is_some() {
            self.times.push(now - self.started);
        } else if self.monolith.is_some() {
            self.run_monolith();
            self.times.clear();
        }
        if self.start(cx) { Drive::Continue } else { Drive::Stop }
    }
}

#[handlers]
impl Rounds {
    /// One line per round: the nanoseconds that each contestant took.
    #[read]
    fn times(&self) -> Table {
        let line = |round: &[i64]| round.iter().map(i64::to_string).collect::<Vec<_>>().join(" ") + "\n";
        Table(self.times.chunks(self.contestants.len().max(1)).map(line).collect())
    }
}

impl Lifecycle for Rounds {
    fn initialise(&mut self, _: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.times.reserve(
            usize::try_from(self.left).unwrap_or(0).saturating_mul(self.contestants.len()).min(1 << 20),
        );
        Ok(())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot swaps, one per second. Most configurations are good. Some have errors, and some name a device or file that does
//! not exist.

use crate::configurations::{self, Expected};
use crate::control::Client;
use crate::schedule::Dice;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The results of the swaps of one router.
#[derive(Debug, Default)]
pub struct Swaps {
    /// The number of swaps that were accepted as expected.
    pub accepted: u64,
    /// The number of swaps that were refused as expected, because the text has an error.
    pub bad: u64,
    /// The number of swaps that were refused as expected, because a device or file does not exist.
    pub failing: u64,
    /// Good configurations that were refused. The fields are the time of the request and the time of the reply, in
    /// seconds after the start, and the message.
    pub refused: Vec<(u64, u64, String)>,
    /// Descriptions of wrong or missing replies, and of wrong running configurations.
    pub wrong: Vec<String>,
    /// How often a trace file was removed to free disk space.
    pub freed: u64,
    /// The duration of the slowest swap.
    pub slowest: Duration,
}

impl Swaps {
    /// The number of swaps, except those whose reply was wrong or missing.
    pub fn tried(&self) -> u64 {
        self.accepted + self.bad + self.failing + self.refused.len() as u64
    }
}

/// The router whose configuration is swapped.
pub struct Target {
    /// The name of the router.
    pub name: &'static str,
    /// The file of the router's control socket.
    pub socket: PathBuf,
    /// The first configuration of the router.
    pub first: String,
    /// The process id of the router. The test reaches the traces on the router's disk through `/proc/ID/root`.
    pub process: u32,
}

/// Requests one swap per second until `end`.
pub fn run(target: &Target, seed: u64, start: Instant, end: Instant) -> Swaps {
    let mut swaps = Swaps::default();
    let mut dice = Dice::new(seed, target.name);
    let mut client = Client::new(&target.socket);
    let mut current = target.first.clone();
    for n in 0.. {
        let due = start + Duration::from_secs(n as u64) + Duration::from_millis(dice.below(900) as u64);
        if due >= end {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let (text, expected) = configurations::next(&target.first, n, &mut dice);
        let at = start.elapsed().as_secs();
        let began = Instant::now();
        let once = client.as_mut().map_err(|e| io::Error::other(e.to_string())).and_then(|c| {
            let reply = c.swap(&text)?;
            Ok((reply, c.read("config")?.1))
        });
        swaps.slowest = swaps.slowest.max(began.elapsed());
        match once {
            Ok((reply, running)) => {
                match (reply.code, expected) {
                    (200, Expected::Accepted) => swaps.accepted += 1,
                    (200, _) => swaps.wrong.push(format!("{}: accepted: {expected:?}", target.name)),
                    (_, Expected::Bad) => swaps.bad += 1,
                    (_, Expected::Failing) => swaps.failing += 1,
                    (_, Expected::Accepted) => {
                        swaps.refused.push((at, start.elapsed().as_secs(), reply.text));
                    }
                }
                if reply.code == 200 {
                    current = text;
                }
                if running.trim() != current.trim() {
                    swaps.wrong.push(format!("{}: another configuration runs (second {at})", target.name));
                    current = running;
                }
            }
            Err(e) => {
                swaps.wrong.push(format!("{}: no reply: {e} (second {at})", target.name));
                client = Client::new(&target.socket);
            }
        }
        if let Some(trace) = configurations::finished_trace(n) {
            // Frees disk space. Only the router with the trace has this file.
            let removed = std::fs::remove_file(format!("/proc/{}/root{trace}", target.process));
            swaps.freed += u64::from(removed.is_ok());
        }
    }
    swaps
}

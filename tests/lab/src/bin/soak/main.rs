// SPDX-License-Identifier: MIT OR Apache-2.0
//! The soak test: a network of five routers under load and attack for a number of minutes.
//!
//! `soak MINUTES CASTANET [SEED]` creates the network. While traffic crosses it, the test causes disturbances, swaps
//! configurations and reads handlers. At the end it prints each check with the measured values and `ok`, `MISS` or
//! `SKIP`. The exit code is 1 if there is a `MISS`.
//!
//! - [`network`]: hosts, links and routers; [`configurations`]: what the routers run.
//! - [`server`], [`traffic`]: the traffic, from separate processes on the hosts; [`bytes`]: its contents.
//! - [`schedule`], [`disturbances`], [`clock`]: the disturbances and their times.
//! - [`swaps`], [`readers`], [`control`]: clients of the control sockets.
//! - [`final_counts`], [`checks`], [`table`]: the checks at the end.
#![forbid(unsafe_code)]

mod bytes;
mod checks;
mod clock;
mod configurations;
mod control;
mod disturbances;
mod final_counts;
mod network;
mod readers;
mod run;
mod schedule;
mod server;
mod swaps;
mod table;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;

/// The longest run, in minutes.
const LONGEST: u64 = 24 * 60;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().map_err(|e| format!("'{word}': {e}"));
    let numbers = |words: &[&str]| words.iter().map(|w| number(w)).collect::<Result<Vec<u64>, String>>();
    let done = match words[..] {
        ["serve"] => server::serve().map(|()| true),
        [role @ ("connect" | "streams" | "datagrams"), ref arguments @ ..] => numbers(arguments)
            .and_then(|n| match (role, &n[..]) {
                ("connect", &[start, seconds, rate, seed]) => traffic::connect(start, seconds, rate, seed),
                ("streams", &[start, seconds, count, rate]) => traffic::streams(start, seconds, count, rate),
                ("datagrams", &[start, seconds, rate, seed]) => {
                    traffic::datagrams(start, seconds, rate, seed)
                }
                _ => Err(format!("{role}: wrong number of arguments")),
            })
            .map(|()| true),
        [minutes, castanet] => number(minutes).and_then(|m| soak(m, castanet, 1)),
        [minutes, castanet, seed] => {
            number(minutes).and_then(|m| Ok((m, number(seed)?))).and_then(|(m, seed)| soak(m, castanet, seed))
        }
        _ => Err("usage: soak MINUTES CASTANET [SEED]".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("soak: {e}");
            ExitCode::FAILURE
        }
    }
}

fn soak(minutes: u64, castanet: &str, seed: u64) -> Result<bool, String> {
    if !(1..=LONGEST).contains(&minutes) {
        return Err(format!("{minutes} minutes are not between 1 and {LONGEST}"));
    }
    let castanet = PathBuf::from(castanet).canonicalize().map_err(|e| format!("{castanet}: {e}"))?;
    // The lab needs a path that is valid as long as the process runs.
    run::run(minutes, Box::leak(castanet.into_boxed_path()), seed)
}

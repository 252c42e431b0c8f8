// SPDX-License-Identifier: MIT OR Apache-2.0
//! The soak: a network of five routers under fire for an hour, or as many minutes as are asked for.
//!
//! `soak MINUTES CASTANET [SEED]` makes the network, lets traffic cross it, disturbs it, swaps configurations and
//! reads handlers all the time; in the end it prints what was to be shown, the figures, and `ok` or `MISS`. The exit
//! code is 1 if anything was missed.
//!
//! - [`network`]: hosts, links and routers; [`configurations`]: what the routers run.
//! - [`server`], [`traffic`]: the traffic, in processes of its own on the hosts; [`bytes`]: what it consists of.
//! - [`schedule`], [`disturbances`], [`clock`]: what happens when.
//! - [`swaps`], [`readers`], [`control`]: clients of the control sockets.
//! - [`final_counts`], [`checks`], [`table`]: what is shown in the end.
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
    // The lab keeps the path as long as the process runs.
    run::run(minutes, Box::leak(castanet.into_boxed_path()), seed)
}

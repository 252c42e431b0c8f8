// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs random routers of all classes with extreme arguments: `random-routers [ROUTERS [PACKETS [SEED]]]`. The default
//! is 10,000 routers, about 100,000 packets for each, and seed 1,000,000. The seed of each router is one more than that
//! of the router before, so that a single router can be run again. Prints totals of the routers and their packets.
//! Exits with 1 at the first panic, if a ledger does not balance, or if a router does not end.

use castanet_tests::random_routers::{Totals, count_panics, one};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The seed of the router that runs.
static SEED: AtomicU64 = AtomicU64::new(0);
/// The time after which a router that still runs counts as hanging. All routers end after a bounded number of turns.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ends the process if one router runs longer than [`PATIENCE`].
fn watch() {
    loop {
        let before = SEED.load(Ordering::Relaxed);
        std::thread::sleep(PATIENCE);
        if SEED.load(Ordering::Relaxed) == before {
            eprintln!("seed {before}: the router does not end");
            std::process::exit(1);
        }
    }
}

/// Changes to an empty working directory, in which elements write their files. Dropping the returned value removes the
/// directory.
fn leave() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::env::set_current_dir(folder.path())?;
    Ok(folder)
}

fn main() -> ExitCode {
    let mut numbers: [u64; 3] = [10_000, 100_000, 1_000_000];
    for (number, text) in numbers.iter_mut().zip(std::env::args().skip(1)) {
        match text.parse() {
            Ok(n) => *number = n,
            Err(e) => {
                eprintln!("random-routers: '{text}': {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    let [routers, packets, seed] = numbers;
    // Elements print to standard output, and may write files whose names are random.
    let _folder = match leave() {
        Ok(folder) => folder,
        Err(e) => {
            eprintln!("random-routers: {e}");
            return ExitCode::FAILURE;
        }
    };
    count_panics();
    std::thread::spawn(watch);
    let mut totals = Totals::default();
    for n in 0..routers {
        let seed = seed.wrapping_add(n);
        SEED.store(seed, Ordering::Relaxed);
        if let Err(e) = one(seed, packets, &mut totals) {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
        if n % 500 == 499 {
            eprintln!("{} of {routers}: {totals:?}", n + 1);
        }
    }
    eprintln!("{totals:?}");
    ExitCode::SUCCESS
}

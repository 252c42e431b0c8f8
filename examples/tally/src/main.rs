// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a configuration with the classes of this crate, then prints the counts of the element `tally`:
//! `cargo run -p castanet-tally -- examples/tally/tally.click`.
#![forbid(unsafe_code)]

mod router;

use castanet_runtime::Options;
use std::process::ExitCode;

fn run(file: &str) -> Result<String, String> {
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    let mut router = router::router(file, &text, Options::default())?;
    router.run().map_err(|e| e.to_string())?;
    let tally = router.find("tally");
    if tally.is_none() {
        return Err(format!("{file}: there is no element 'tally'"));
    }
    router.read(tally, "tally", "").map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: castanet-tally FILE");
        return ExitCode::from(2);
    };
    match run(&file) {
        Ok(tally) => {
            print!("{tally}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{}", e.trim_end());
            ExitCode::FAILURE
        }
    }
}

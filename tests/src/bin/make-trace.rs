// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the traces of conf/traces: `make-trace [FOLDER [SEED]]`.
use std::path::PathBuf;
use std::process::ExitCode;

use castanet_tests::trace;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf/traces");
    let folder = arguments.next().map_or_else(|| PathBuf::from(kept), PathBuf::from);
    let seed = match arguments.next().map(|text| text.to_string_lossy().parse()) {
        None => trace::SEED,
        Some(Ok(seed)) => seed,
        Some(Err(error)) => {
            eprintln!("make-trace: the seed is not a number: {error}");
            return ExitCode::FAILURE;
        }
    };
    let traces = trace::ip_router(seed);
    if let Err(error) = trace::write(&traces, &folder) {
        eprintln!("make-trace: {error}");
        return ExitCode::FAILURE;
    }
    for (interface, frames) in traces.interfaces.iter().enumerate() {
        let bytes: usize = frames.iter().map(|frame| frame.data.len() + 16).sum();
        println!("{}: {} frames, {bytes} bytes", trace::file_name(interface), frames.len());
    }
    ExitCode::SUCCESS
}

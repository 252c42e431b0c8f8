// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `castanet` command, with all classes.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    castanet_cli::main()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new`: writes configurations to start from.

mod ip_router;

use crate::load::{complain, write_out};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// `castanet new`.
#[derive(Args)]
pub struct New {
    /// What to write.
    #[command(subcommand)]
    what: What,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
}

/// What can be written.
#[derive(Subcommand)]
enum What {
    /// An IP router between any number of devices.
    #[command(long_about = ip_router::ABOUT, after_help = ip_router::EXAMPLES)]
    IpRouter(ip_router::IpRouter),
}

/// The configuration of an IP router between these devices with these addresses.
pub fn ip_router(interfaces: &[(&str, &str)]) -> Result<String, String> {
    ip_router::IpRouter::between(interfaces)?.configuration().map_err(|errors| errors.join("\n"))
}

/// Writes a configuration.
pub fn main(args: &New) -> ExitCode {
    let text = match &args.what {
        What::IpRouter(router) => router.configuration(),
    };
    // What cannot be made is a wrong command line; what cannot be written is not.
    match text.map(|text| write_out(args.output.as_deref(), &text)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(e)) => {
            complain(&e);
            ExitCode::FAILURE
        }
        Err(errors) => {
            errors.iter().for_each(|e| complain(e));
            ExitCode::from(2)
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS profile`: what the elements of a running router cost.

use super::{Failure, seconds, value_out};
use crate::load::write_out;
use crate::profile::Profile;
use castanet_control::Client;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `castanet ctl ADDRESS profile`.
#[derive(Args)]
pub struct Measure {
    /// How long to measure, in seconds. The router runs on, at nearly its own speed.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub seconds: Duration,
    /// Also draw a flame graph.
    #[arg(long, value_name = "FILE.svg")]
    pub flame: Option<PathBuf>,
}

/// Measures, and prints the table.
pub fn profile(client: &mut Client, m: &Measure, json: bool) -> Result<(), Failure> {
    client.write("profile", b"true")?;
    std::thread::sleep(m.seconds);
    let text = client.read_text("profile", "")?;
    client.write("profile", b"false")?;
    let profile = Profile::parse(&text);
    if let Some(file) = &m.flame {
        write_out(Some(file), &profile.flame())?;
    }
    if json { value_out(&profile.json()) } else { Ok(write_out(None, &profile.text())?) }
}

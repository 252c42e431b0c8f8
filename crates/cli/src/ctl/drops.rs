// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS drops`: what a running router drops and why, and where its packets and its time are.

use super::{Failure, seconds, value_out};
use crate::load::write_out;
use crate::observe::{Handlers as _, Reading, devices, text};
use castanet_control::Client;
use clap::Args;
use std::time::Duration;

/// `castanet ctl ADDRESS drops`.
#[derive(Args)]
pub struct Drops {
    /// Seconds between the two readings from which rates and loads are computed.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
}

/// Reads twice, and prints the tables.
pub fn drops(client: &mut Client, d: &Drops, json: bool) -> Result<(), Failure> {
    let devices = devices(&client.elements()?);
    let before = Reading::of(client, &devices)?;
    std::thread::sleep(d.interval);
    let now = Reading::of(client, &devices)?;
    if json {
        let mut value = now.json(Some(&before));
        value["seconds"] = now.seconds_since(&before).into();
        return value_out(&value);
    }
    Ok(write_out(None, &text(&now, Some(&before)))?)
}

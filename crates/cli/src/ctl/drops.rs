// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet ctl ADDRESS drops`: what a running router drops and why, and where its packets and its time are.

use super::kinds::Kinds;
use super::list::elements;
use super::{Failure, seconds, value_out};
use crate::load::write_out;
use crate::observe::{Reading, text};
use castanet_control::Client;
use castanet_control::client::ClientError;
use clap::Args;
use std::time::Duration;

/// `castanet ctl ADDRESS drops`.
#[derive(Args)]
pub struct Drops {
    /// Seconds between the two readings from which rates and loads are computed.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
}

/// Returns the elements that know how many packets the kernel dropped before the router read them.
pub fn devices(client: &mut Client) -> Result<Vec<String>, ClientError> {
    let mut known = Kinds::new();
    let mut out = Vec::new();
    for element in elements(client)? {
        if known.of(client, &format!("{element}.kernel_drops"))?.is_some() {
            out.push(element);
        }
    }
    Ok(out)
}

/// Reads twice, and prints the tables.
pub fn drops(client: &mut Client, d: &Drops, json: bool) -> Result<(), Failure> {
    let devices = devices(client)?;
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

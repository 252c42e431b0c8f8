// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet new`: writes configurations to start from.

mod bridge;
mod firewall;
mod ip_router;
mod nat;
mod parts;

use crate::load::{Source, complain, load, write_out};
use castanet_lang::{Diagnostic, Sources, Unknown};
use clap::{Args, Subcommand};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

/// `castanet new`.
#[derive(Args)]
pub struct New {
    #[command(subcommand)]
    what: What,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
}

/// The kinds of configurations.
#[derive(Subcommand)]
enum What {
    /// An IP router between any number of devices.
    #[command(long_about = ip_router::ABOUT, after_help = ip_router::EXAMPLES)]
    IpRouter(ip_router::IpRouter),
    /// A NAT gateway: the hosts of a network share one address.
    #[command(long_about = nat::ABOUT, after_help = nat::EXAMPLES)]
    Nat(nat::Nat),
    /// A transparent firewall: rules for incoming and outgoing packets.
    #[command(long_about = firewall::ABOUT, after_help = firewall::EXAMPLES)]
    Firewall(firewall::Firewall),
    /// An Ethernet switch that takes part in the spanning tree protocol.
    #[command(long_about = bridge::ABOUT, after_help = bridge::EXAMPLES)]
    Bridge(bridge::Bridge),
}

/// Returns the configuration of an IP router between devices with these addresses. With `shield` the kernel
/// does not see the frames of these devices.
pub fn ip_router(interfaces: &[(&str, &str)], shield: bool) -> Result<String, String> {
    ip_router::IpRouter::between(interfaces, shield)?.configuration().map_err(|errors| errors.join("\n"))
}

/// Returns the configuration of a NAT gateway between two devices with these addresses.
pub fn nat(inside: (&str, &str), outside: (&str, &str), gateway: Ipv4Addr) -> Result<String, String> {
    nat::Nat::between(inside, outside, gateway)?.configuration().map_err(|errors| errors.join("\n"))
}

/// Returns the configuration of an Ethernet switch between devices, whose spanning tree opens its ports within seconds.
pub fn bridge(devices: &[&str]) -> Result<String, String> {
    bridge::Bridge::between(devices).configuration().map_err(|errors| errors.join("\n"))
}

/// Writes a configuration.
pub fn main(args: &New) -> ExitCode {
    let text = match &args.what {
        What::IpRouter(router) => router.configuration(),
        What::Nat(nat) => nat.configuration(),
        What::Firewall(firewall) => firewall.configuration(),
        What::Bridge(bridge) => bridge.configuration(),
    };
    // Contradictory arguments are an error in the command line: exit code 2. A failed write gives exit code 1.
    match text.map(|text| write_out(args.output.as_deref(), &formatted(text))) {
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

/// Returns a configuration in the layout of `castanet fmt`.
fn formatted(text: String) -> String {
    let mut sources = Sources::new();
    let file = sources.add("new", text.as_str());
    castanet_lang::format::format(&mut sources, file).unwrap_or(text)
}

/// Checks a configuration without access to devices. Returns the number of elements, and the errors.
pub(crate) fn checked(text: &str) -> (usize, Vec<String>) {
    let source = Source::text("new", text, Vec::new());
    let loaded = load(&source, None, Unknown::Error);
    let n = loaded.graph.len();
    let mut diagnostics = loaded.diagnostics;
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let options = castanet_runtime::Options::default();
        diagnostics.extend(castanet_runtime::check(loaded.graph, loaded.classes.clone(), &options));
    }
    (n, diagnostics.iter().map(|d| d.message.clone()).collect())
}

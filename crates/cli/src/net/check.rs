// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet net check`: finds forwarding loops, black holes and mismatched frames without running the network.

use super::run::host;
use crate::combine::Routers;
use crate::load::{show, write_out};
use castanet_net::options::HostOption;
use castanet_net::{Options, check};
use clap::Args;
use std::collections::HashSet;

/// Introductory text of `--help`.
pub const ABOUT: &str = "Finds forwarding loops, black holes and mismatched frames in a network of several routers, without running it.

Destinations are divided into classes that no route and no filter distinguishes, and one packet of each class is followed through all \
routers, from each device where it may enter. A loop is reported with its path and the routes that form it. A black hole is a network of \
a host that packets from another host do not reach; hosts stand where `castanet net run` puts them. Frames are mismatched if a router \
expects other headers than arrive at its device.

Nothing is known of a packet but its destination: where a filter tests something else, all its outputs are followed. Packets whose \
addresses change on the way (NAT, tunnels) are not followed further. Routes that handlers change while a router runs are not seen.";

/// Closing text of `--help`.
pub const EXAMPLES: &str = "Examples:
  castanet net check net.click
  castanet net check A=a.click B=b.click A.eth1==B.eth0";

/// `castanet net check`.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    routers: Routers,
    /// The address of the host at a device.
    #[arg(long, value_name = "DEVICE=ADDRESS/LENGTH[,GATEWAY]", value_parser = host)]
    host: Vec<HostOption>,
}

/// Checks the network. Returns whether nothing was found.
///
/// # Errors
/// The errors in the links or the options; none if all errors have been printed.
pub fn main(args: &Check) -> Result<bool, Vec<String>> {
    let loaded = super::load(&args.routers)?;
    let options = Options { hosts: args.host.clone(), ..Options::default() };
    let checked = check(&loaded.graph, &loaded.topology, &options).map_err(|e| vec![e.to_string()])?;
    show(&loaded.sources, &checked.diagnostics, args.routers.json);
    let good = checked.diagnostics.is_empty();
    if good && !args.routers.json {
        let routers: HashSet<&str> = loaded.topology.devices.iter().map(|d| d.router.as_str()).collect();
        let (routers, links, hosts) = (routers.len(), loaded.topology.links.len(), checked.hosts.len());
        let text = format!(
            "no loops, no black holes, no mismatched frames (routers: {routers}, links: {links}, hosts: {hosts}, classes of \
             destinations: {})\n",
            checked.found.classes
        );
        write_out(None, &text).map_err(|e| vec![e])?;
    }
    Ok(good)
}

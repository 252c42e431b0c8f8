// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a network without running it: finds forwarding loops, black holes, and links whose ends expect different
//! frames (ASPLOS 2002, section 7.2).
//!
//! Destinations are divided into classes that no router distinguishes. One packet of each class is followed through the
//! combined configuration, from each device where it may enter the network. Nothing is known of the packet but its
//! destination, so it may take several ways.
//!
//! Modules, bottom up: [`tables`] (routes and classifiers), [`packet`] (what is known about a packet), [`walk`] (its ways
//! through one router), [`hops`] (from device to device), [`search`] (loops and losses), [`diagnostics`] (messages).

pub mod diagnostics;
pub mod hops;
pub mod packet;
pub mod search;
pub mod tables;
pub mod walk;

use crate::host::{Host, hosts};
use crate::topology::Topology;
use crate::{NetError, Options};
use castanet_graph::Graph;
use castanet_lang::Diagnostic;
use hops::Hops;
use std::collections::HashSet;

/// The result of a check.
pub struct Checked {
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What was found.
    pub found: search::Found,
    /// The hosts that were assumed.
    pub hosts: Vec<Host>,
    /// The links whose frames have no Ethernet header.
    pub raw_links: HashSet<usize>,
}

/// Checks a network with the hosts that a simulation would have.
///
/// # Errors
/// The options name a host that is not there.
pub fn check(graph: &Graph, topology: &Topology, options: &Options) -> Result<Checked, NetError> {
    let hosts = hosts(topology, options)?;
    let known = tables::known(graph, &topology.names);
    let mut hops = Hops::new(graph, topology, &known);
    let found = search::search(graph, topology, &known, &hosts, &mut hops);
    let diagnostics = diagnostics::all(graph, topology, &known, &hosts, &hops, &found);
    let raw = hops.formats.iter().filter(|(_, at)| at.iter().all(|&at| at == 0)).map(|(&e, _)| e);
    let raw_links = raw.collect();
    Ok(Checked { diagnostics, found, hosts, raw_links })
}

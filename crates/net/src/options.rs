// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users may set for a simulation.

use castanet_spec::Prefix;
use std::net::Ipv4Addr;

/// The settings of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The latency of links, and of single links by the name of the link or of a device (`A.eth0`). Texts are arguments
    /// of NetLink.
    pub latency: Vec<(Option<String>, String)>,
    /// The bandwidth of links, likewise.
    pub bandwidth: Vec<(Option<String>, String)>,
    /// Hosts with an address of their own: the device that the host is connected to, its address and its gateway.
    pub hosts: Vec<HostOption>,
    /// The pings: the host that sends, and the host or address that is to answer.
    pub pings: Vec<(String, String)>,
    /// Whether each host pings all others.
    pub ping_all: bool,
    /// How many requests each ping sends.
    pub count: u32,
    /// The time between requests, in nanoseconds.
    pub interval: u64,
    /// Captures that hosts send: the host, and the name of the file.
    pub captures: Vec<(String, String)>,
    /// How long the network runs, in nanoseconds. By default, until three seconds after the last request.
    pub time: Option<u64>,
}

/// The addresses of a host.
#[derive(Clone, Debug)]
pub struct HostOption {
    /// The device of the router that the host is connected to, as in `A.eth0`.
    pub at: String,
    /// The host's address and network.
    pub prefix: Prefix,
    /// The gateway. By default, the router that the host is connected to.
    pub gateway: Option<Ipv4Addr>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            latency: Vec::new(),
            bandwidth: Vec::new(),
            hosts: Vec::new(),
            pings: Vec::new(),
            ping_all: false,
            count: 3,
            interval: 1_000_000_000,
            captures: Vec::new(),
            time: None,
        }
    }
}

impl Options {
    /// Returns how long the network runs, in nanoseconds.
    pub fn duration(&self) -> u64 {
        let requests = self.interval.saturating_mul(u64::from(self.count) + 1);
        self.time.unwrap_or_else(|| requests.saturating_add(3_000_000_000))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP access to a router. It is read-only: `/metrics` has the metrics for Prometheus.

mod answer;
pub mod listen;
mod network;
mod server;

use answer::Hosts;
use clap::Args;
use listen::{Listen, resolve};
use network::Network;
pub use server::{Scrape, Server};

/// Where to serve HTTP, and to whom.
#[derive(Args, Clone, Debug, Default)]
pub struct Http {
    /// Serve the metrics of the router by HTTP at this address: http://HOST:PORT/metrics. HOST is a loopback address,
    /// unless --http-from names the clients.
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<Listen>,
    /// Also serve HTTP clients of this network, for example 192.0.2.0/24. May be repeated.
    #[arg(long = "http-from", value_name = "NETWORK", requires = "http")]
    pub from: Vec<Network>,
    /// Also accept HTTP requests that name this host in their URL. May be repeated.
    #[arg(long = "http-host", value_name = "NAME", requires = "http")]
    pub hosts: Vec<String>,
}

impl Http {
    /// Starts the server, if there is an address. Prints a URL on standard error if the port was chosen by the kernel.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(&self, scrape: Scrape) -> Result<Option<Server>, String> {
        let Some(listen) = &self.http else { return Ok(None) };
        let addresses = resolve(listen, !self.from.is_empty())?;
        let hosts = Hosts::new(&listen.host, &self.hosts);
        let server = Server::start(&addresses, hosts, self.from.clone(), scrape)
            .map_err(|e| format!("--http {listen}: {}", crate::load::reason(&e)))?;
        if listen.port == 0 {
            crate::load::complain(&format!("listening on http://{}/metrics", server.address()));
        }
        Ok(Some(server))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! HTTP access to a router: a page, the API that it uses, and `/metrics` for Prometheus.
//!
//! - `listen`, `network`: where it is served, and to whom
//! - `gate`: which requests are answered
//! - `work`, `events`: what takes long, and what is repeated
//! - `respond`: the answer to a request
//! - `server`: connections

mod events;
mod gate;
pub mod listen;
mod network;
mod respond;
mod server;
mod work;

use crate::api::{Api, Context, Router};
use castanet_control::Token;
use clap::Args;
use gate::{Gate, Hosts};
use listen::{Listen, resolve};
use network::Network;
use respond::State;
pub use server::Server;

/// Where to serve HTTP, and to whom.
#[derive(Args, Clone, Debug, Default)]
pub struct Http {
    /// Serve a page that shows the router, and its metrics, by HTTP at this address: http://HOST:PORT/ and
    /// http://HOST:PORT/metrics. HOST is a loopback address, unless --http-from names the clients.
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<Listen>,
    /// Also serve HTTP clients of this network, for example 192.0.2.0/24. May be repeated.
    #[arg(long = "http-from", value_name = "NETWORK", requires = "http")]
    pub from: Vec<Network>,
    /// Also accept HTTP requests that name this host in their URL. May be repeated.
    #[arg(long = "http-host", value_name = "NAME", requires = "http")]
    pub hosts: Vec<String>,
    /// Let HTTP clients that have the token change the router. The token is random; a link with it is printed at the
    /// start. Whoever has the link may write handlers, and with -R replace the configuration.
    #[arg(long = "http-write", requires = "http")]
    pub write: bool,
}

/// Returns a random token as hexadecimal digits.
fn random() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| format!("--http-write: no random numbers: {e}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

impl Http {
    /// Starts the server, if there is an address. Prints a URL on standard error if it has the token, or if the port was
    /// chosen by the kernel.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(&self, router: Router, context: Context) -> Result<Option<Server>, String> {
        let Some(listen) = &self.http else { return Ok(None) };
        let addresses = resolve(listen, !self.from.is_empty())?;
        let secret = if self.write { Some(random()?) } else { None };
        let token = secret.as_deref().map(str::parse::<Token>).transpose().map_err(|e| e.to_string())?;
        let gate = Gate { hosts: Hosts::new(&listen.host, &self.hosts), token };
        let state = State::new(gate, Api { router, context, writable: self.write });
        let server = Server::start(&addresses, self.from.clone(), state)
            .map_err(|e| format!("--http {listen}: {}", crate::load::reason(&e)))?;
        let listen = Listen { port: server.address().port(), ..listen.clone() };
        match secret {
            Some(token) => crate::load::complain(&format!("listening on http://{listen}/#token={token}")),
            None if self.http.as_ref().is_some_and(|l| l.port == 0) => {
                crate::load::complain(&format!("listening on http://{listen}/"));
            }
            None => {}
        }
        Ok(Some(server))
    }
}

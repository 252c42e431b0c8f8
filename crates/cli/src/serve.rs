// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet serve`: HTTP access to a running router, over its control socket.

use crate::api::{Context, Far};
use crate::classes::BuiltIn;
use crate::control::FromClients;
use crate::ctl::{Connection, Failure};
use crate::http::Http;
use clap::Args;
use std::process::ExitCode;
use std::sync::Arc;

/// `castanet serve`.
#[derive(Args)]
#[command(mut_arg("http", |http| http.required(true)))]
#[command(after_help = "Example:\n  castanet run -u router.sock router.click &\n  \
    castanet serve router.sock --http 127.0.0.1:9090\n\n\
    Exit codes: 1 the address cannot be used, 2 the command line was wrong, 3 no connection to the router.")]
pub struct Serve {
    #[command(flatten)]
    pub connection: Connection,
    #[command(flatten)]
    pub http: Http,
}

/// Serves until it is killed. Each reading makes a connection of its own, so that the router may be restarted meanwhile.
pub fn main(a: &Serve) -> ExitCode {
    crate::ctl::exit(serve(a))
}

fn serve(a: &Serve) -> Result<(), Failure> {
    // A wrong address of the router is an error now, not in the first request.
    drop(a.connection.open()?);
    let context = Context {
        available: BuiltIn::all().available(None),
        defines: Vec::new(),
        allowed: FromClients::default(),
        workers: 1,
    };
    if let Some(server) = a.http.open(Arc::new(Far(a.connection.clone())), context)? {
        server.wait();
    }
    Ok(())
}

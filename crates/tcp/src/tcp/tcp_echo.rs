// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPEcho: sends back what it receives.

use super::attach::{AttachArgs, attach};
use crate::application::{Application, Session, Tally};
use crate::engine::Stream;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Sends back all data of TCP connections (RFC 862).
///
/// The connections belong to the TCPStack that STACK names. When the peer has ended its data, so does the echo. While the
/// peer does not take its data back, no more is read, so its window closes.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: TCPStack(10.0.0.1) -> b :: TCPStack(10.0.0.2) -> a;
/// TCPEcho(b, PORT 7);
/// s :: TCPSource(a, CONNECT 10.0.0.2:7, LIMIT 5000);
/// DriverManager(wait 5s, print s.received, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPEcho", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, build)]
pub struct TcpEcho {
    args: Args,
    #[counts]
    tally: Tally,
}

/// Arguments of TCPEcho.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    attach: AttachArgs,
}

struct Echo;

impl Application for Echo {
    fn run(&self, _: &mut Session, stream: &mut Stream<'_>) {
        stream.echo();
        if stream.is_at_end() {
            stream.close();
        }
    }
}

impl Build for TcpEcho {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let tally = attach(&args.attach, Arc::new(Echo), cx);
        Ok(TcpEcho { args, tally })
    }
}

impl Element for TcpEcho {}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPDiscard: reads and forgets.

use super::attach::{AttachArgs, attach};
use crate::application::{Application, Session, Tally};
use crate::engine::Stream;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Reads all data of TCP connections and forgets it (RFC 863).
///
/// The connections belong to the TCPStack that STACK names. When the peer has ended its data, the connection is closed.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: TCPStack(10.0.0.1) -> b :: TCPStack(10.0.0.2) -> a;
/// d :: TCPDiscard(b, PORT 9);
/// TCPSource(a, CONNECT 10.0.0.2:9, LIMIT 5000);
/// DriverManager(wait 5s, print d.received, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPDiscard", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, build)]
pub struct TcpDiscard {
    args: Args,
    #[counts]
    tally: Tally,
}

/// Arguments of TCPDiscard.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    attach: AttachArgs,
}

struct Discarding;

impl Application for Discarding {
    fn run(&self, _: &mut Session, stream: &mut Stream<'_>) {
        stream.consume(usize::MAX);
        if stream.is_at_end() {
            stream.close();
        }
    }
}

impl Build for TcpDiscard {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let tally = attach(&args.attach, Arc::new(Discarding), cx);
        Ok(TcpDiscard { args, tally })
    }
}

impl Element for TcpDiscard {}

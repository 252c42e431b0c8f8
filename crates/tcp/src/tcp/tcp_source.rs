// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPSource: writes as much as the peer takes.

use super::attach::{AttachArgs, attach};
use super::pattern;
use crate::application::{Application, Session, Tally};
use crate::engine::Stream;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Writes LIMIT bytes to each TCP connection, as fast as the peer takes them, and closes it then.
///
/// The connections belong to the TCPStack that STACK names. The byte at position n of a connection is n modulo 251, which
/// TCPSink checks. What the peer sends is read and forgotten.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: TCPStack(10.0.0.1) -> b :: TCPStack(10.0.0.2) -> a;
/// TCPSource(b, PORT 19, LIMIT 100000);
/// s :: TCPSink(a, CONNECT 10.0.0.2:19);
/// DriverManager(wait 5s, print s.received, print s.wrong, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPSource", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, build)]
pub struct TcpSource {
    args: Args,
    #[counts]
    tally: Tally,
}

/// Arguments of TCPSource.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    attach: AttachArgs,
    /// How many bytes to write to a connection; negative for no limit.
    #[arg(keyword, default = -1)]
    limit: i64,
}

struct Writing {
    limit: u64,
}

impl Application for Writing {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        stream.consume(usize::MAX);
        if stream.is_connected() {
            loop {
                let left = usize::try_from(self.limit.saturating_sub(session.written)).unwrap_or(usize::MAX);
                let bytes = pattern(session.written, left);
                let written = stream.write(bytes);
                session.written += written as u64;
                if bytes.is_empty() || written < bytes.len() {
                    break;
                }
            }
        }
        if stream.is_connected() && session.written >= self.limit {
            stream.close();
        }
    }
}

impl Build for TcpSource {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let limit = u64::try_from(args.limit).unwrap_or(u64::MAX);
        let tally = attach(&args.attach, Arc::new(Writing { limit }), cx);
        Ok(TcpSource { args, tally })
    }
}

impl Element for TcpSource {}

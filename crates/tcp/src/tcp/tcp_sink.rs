// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPSink: reads what TCPSource writes, and checks it.

use super::attach::{AttachArgs, attach};
use super::pattern;
use crate::application::{Application, Session, Tally};
use crate::engine::Stream;
use castanet_element::prelude::*;
use std::sync::Arc;

/// Reads all data of TCP connections, and counts the bytes that differ from those that TCPSource writes.
///
/// The connections belong to the TCPStack that STACK names. When the peer has ended its data, the connection is closed.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: TCPStack(10.0.0.1) -> b :: TCPStack(10.0.0.2) -> a;
/// s :: TCPSink(b, PORT 5001);
/// TCPSource(a, CONNECT 10.0.0.2:5001, LIMIT 100000);
/// DriverManager(wait 5s, print s.received, print s.wrong, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPSink", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, build)]
pub struct TcpSink {
    args: Args,
    #[counts]
    tally: Tally,
    /// Bytes that differ from those of TCPSource.
    #[count(unit = "bytes")]
    wrong: SharedCount,
}

/// Arguments of TCPSink.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    attach: AttachArgs,
}

struct Checking {
    wrong: SharedCount,
}

impl Application for Checking {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        let (first, second) = stream.data();
        let mut at = session.read;
        for mut data in [first, second] {
            while !data.is_empty() {
                let right = pattern(at, data.len());
                let (now, later) = data.split_at(right.len().min(data.len()));
                if now != right {
                    let wrong = now.iter().zip(right).filter(|(is, should)| is != should).count();
                    self.wrong.add(wrong as u64);
                }
                at += now.len() as u64;
                data = later;
            }
        }
        session.read += stream.consume(usize::MAX) as u64;
        if stream.is_at_end() {
            stream.close();
        }
    }
}

impl Build for TcpSink {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let wrong = SharedCount::default();
        let tally = attach(&args.attach, Arc::new(Checking { wrong: wrong.clone() }), cx);
        Ok(TcpSink { args, tally, wrong })
    }
}

impl Element for TcpSink {}

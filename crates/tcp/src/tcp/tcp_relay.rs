// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCPRelay: joins TCP connections to local sockets.

use super::attach::{AttachArgs, attach};
use crate::application::{Application, Session, Tally};
use crate::engine::Stream;
use crate::local::{Local, Moved, Place};
use castanet_element::prelude::*;
use std::sync::Arc;

/// Joins each TCP connection to a local socket: programs of this machine serve the connections of a TCPStack.
///
/// For each connection of the TCPStack that STACK names, the element connects to the socket TO: `ADDR:PORT`, or the file of
/// a Unix socket. What arrives on one side is written to the other, and so is the end of the data. If the socket cannot be
/// connected or breaks off, the connection is reset; if the connection ends, the socket is closed. While one side takes
/// no data, none is read from the other. A hot swap keeps connections and sockets.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// a :: TCPStack(10.0.0.1) -> b :: TCPStack(10.0.0.2) -> a;
/// TCPRelay(b, PORT 80, TO 127.0.0.1:8080);
/// TCPSource(a, LIMIT 100);
/// DriverManager(print b.listeners, stop);
/// ```
#[derive(Class)]
#[class(name = "TCPRelay", ports = "0/0", processing = "a/a", flow = "x/x", packets = "/")]
#[class(workers = exclusive, build)]
pub struct TcpRelay {
    args: Args,
    #[counts]
    tally: Tally,
    /// Connections that were reset because the local socket could not be connected, or broke off.
    #[count(unit = "connections")]
    failed: SharedCount,
}

/// Arguments of TCPRelay.
#[derive(Args)]
pub struct Args {
    #[arg(flatten)]
    attach: AttachArgs,
    /// The local socket: `ADDR:PORT`, or the file of a Unix socket.
    #[arg(keyword)]
    to: To,
}

/// The argument TO.
#[derive(Clone, Debug)]
pub struct To(Place);

impl ArgValue for To {
    const TYPE: &'static str = "ip:port or filename";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<To, ValueError> {
        match super::values::Endpoint::parse(text, cx) {
            Ok(to) => Ok(To(Place::Tcp(to.0))),
            Err(e) if !text.contains('/') => Err(e),
            Err(_) => Filename::parse(text, cx).map(|f| To(Place::Unix(f.0))),
        }
    }
}

struct Relaying {
    to: Place,
    failed: SharedCount,
}

impl Relaying {
    fn relay(&self, session: &mut Session, stream: &mut Stream<'_>) -> Option<()> {
        let local = match &mut session.local {
            Some(local) => local,
            none => none.insert(Box::new(stream.connect_local(&self.to).ok()?)),
        };
        to_local(local, stream)?;
        from_local(local, stream)
    }
}

/// Writes what the peer has sent to the socket. None if the socket has failed.
fn to_local(local: &mut Local, stream: &mut Stream<'_>) -> Option<()> {
    while stream.available() > 0 {
        match local.write(stream.data().0) {
            Moved::Bytes(n) => stream.consume(n),
            Moved::Failed => return None,
            Moved::Nothing | Moved::End => break,
        };
    }
    if stream.is_at_end() {
        local.end();
    }
    Some(())
}

/// Writes what the socket has to the peer. None if the socket has failed.
fn from_local(local: &mut Local, stream: &mut Stream<'_>) -> Option<()> {
    let mut buffer = [0; 16_384];
    loop {
        let room = stream.room().min(buffer.len());
        if room == 0 {
            return Some(());
        }
        match local.read(buffer.get_mut(..room)?) {
            Moved::Bytes(n) => stream.write(buffer.get(..n)?),
            Moved::Nothing => return Some(()),
            Moved::Failed => return None,
            Moved::End => {
                stream.close();
                return Some(());
            }
        };
    }
}

impl Application for Relaying {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        if stream.is_connected() && self.relay(session, stream).is_none() {
            self.failed.add(1);
            stream.abort();
        }
    }
}

impl Build for TcpRelay {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let failed = SharedCount::default();
        let relaying = Relaying { to: args.to.0.clone(), failed: failed.clone() };
        let tally = attach(&args.attach, Arc::new(relaying), cx);
        Ok(TcpRelay { args, tally, failed })
    }
}

impl Element for TcpRelay {}

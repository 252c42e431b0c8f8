// SPDX-License-Identifier: MIT OR Apache-2.0
//! Socket: exchanges packets with other programs through TCP, UDP and Unix sockets.

mod plan;
#[cfg(test)]
mod swap;
#[cfg(test)]
mod tests;
mod traffic;

use super::socket_pump::{Buffers, Pump, Reception};
use super::socket_tables::{Table, Tables};
use castanet_element::prelude::*;
use castanet_io::socket::{Datagrams, Listener, Options, SocketError, Stream};
pub use plan::PortArg;
use plan::{Plan, SocketKind};
use std::time::Duration;

/// Receives packets from another program, or sends packets to one.
///
/// TYPE is `TCP` or `UDP`, with an address and a port, or `UNIX` (a stream) or `UNIX_DGRAM`, with a file. A client
/// connects to that address or file, from its local address if one is given. A server listens on it. A stream has no
/// packet boundaries: received data is emitted in pieces of at most SNAPLEN bytes, and sent packets are joined. A
/// datagram is one packet, cut to SNAPLEN bytes if it is longer.
///
/// A stream server serves one client at a time, and accepts the next one when that client has gone. A peer that has
/// closed its sending direction still receives the packets that wait for it. A datagram server sends to the host from
/// which it last received. With ALLOW but no DENY, only hosts in the table ALLOW are admitted. With DENY, hosts in the
/// table DENY are refused, unless they are also in the table ALLOW. Connections and datagrams of refused hosts are
/// dropped.
///
/// Packets stay upstream while the kernel has no free buffer, and while the element is still connecting to a server.
/// With a push input, up to 1024 packets wait in the element instead. While there is no peer, pushed packets are
/// dropped, and nothing is pulled. The first failure is reported, or, with VERBOSE, every failure. An element that
/// loses its connection to a server does not connect again.
///
/// # Ports
/// Input 0 (optional): packets to send. Output 0 (optional): packets received.
///
/// # Example
/// ```click
/// Socket(UNIX_DGRAM, example.sock, CLIENT false) -> Print(got) -> Discard;
/// InfiniteSource(DATA "hello", LIMIT 3) -> Socket(UNIX_DGRAM, example.sock);
/// DriverManager(wait 0.01);
/// ```
#[derive(Class)]
#[class(ledger(enters, holds), ends(Consumed))]
#[class(
    name = "Socket", offload = none,
    aliases("FromSocket", "ToSocket"),
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    packets = "any/any unmarked"
)]
#[class(takes_state = "the open socket with its connection, what waits")]
#[class(workers = exclusive, task, effects(prints), build, lifecycle, handlers, host(Sockets))]
#[class(drops(Consumed, QueueFull, WriteFailed, NotConnected, Stopped))]
pub struct Socket {
    args: Args,
    plan: Plan,
    options: Options,
    tables: Tables,
    listener: Option<Listener>,
    link: Link,
    /// Whether the element was initialised. Only then does an absent socket mean that the connection was lost.
    begun: bool,
    #[counts]
    pump: Pump,
    /// Connections that were established.
    #[count(unit = "connections")]
    connections: Count,
    /// Connections that failed: the other end broke them off, or they were never established.
    #[count(unit = "failures")]
    failures: Count,
    /// Connections and datagrams that were refused because of ALLOW and DENY.
    #[count(unit = "packets")]
    refused: Count,
}

/// The state of a socket.
#[derive(Debug)]
enum Link {
    /// No connection and no datagram socket.
    None,
    /// A connection that is not established yet.
    Connecting(Stream),
    /// An established connection.
    Stream(Stream),
    /// A half-closed connection: the other end has stopped sending, but still receives.
    Ending(Stream),
    /// A datagram socket.
    Datagrams(Datagrams),
}

/// Arguments of Socket.
#[derive(Args)]
pub struct Args {
    /// `TCP`, `UDP`, `UNIX` or `UNIX_DGRAM`.
    #[arg(name = "TYPE")]
    kind: SocketKind,
    /// The address, or for Unix sockets the file.
    #[arg(alias = "FILENAME")]
    addr: String,
    /// The port, or for Unix sockets the local file of a client.
    #[arg(alias = "LOCAL_FILENAME")]
    port: Option<String>,
    /// The address that a client connects from.
    local_addr: Option<String>,
    /// The port that a client connects from.
    local_port: Option<PortArg>,
    /// Whether every connection and every failure is reported.
    #[arg(keyword, default = false)]
    verbose: bool,
    #[arg(flatten)]
    reception: Reception,
    /// Whether received packets have timestamps.
    #[arg(keyword, default = true)]
    timestamp: bool,
    #[arg(flatten)]
    buffers: Buffers,
    /// Whether TCP sends small pieces of data immediately (TCP_NODELAY): 0 or 1.
    #[arg(keyword, default = 1)]
    nodelay: i32,
    /// Whether the socket connects to the address, instead of listening on it; by default true if there is no output.
    #[arg(keyword, show = "true without outputs")]
    client: Option<bool>,
    /// Accepted for old configurations and ignored; the kernel always opens the socket.
    #[arg(keyword, default = false)]
    proper: bool,
    /// The route table of hosts that are admitted.
    #[arg(keyword)]
    allow: Option<Table>,
    /// The route table of hosts that are refused.
    #[arg(keyword)]
    deny: Option<Table>,
}

impl Build for Socket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let client = args.client.unwrap_or(cx.outputs == 0);
        let shape = args.reception.shape(args.timestamp, false);
        if args.proper {
            cx.warn(ArgError::warning(
                "PROPER: there is no such service here; the system is asked",
                0..usize::MAX,
            ));
        }
        Ok(Socket {
            plan: Plan::of(&args, client, &cx.arg_cx())?,
            options: args.buffers.options(args.nodelay != 0),
            tables: Tables { allow: args.allow, deny: args.deny },
            listener: None,
            link: Link::None,
            begun: false,
            pump: Pump::build(shape, cx),
            connections: Count::default(),
            failures: Count::default(),
            refused: Count::default(),
            args,
        })
    }
}

/// How long initialisation waits for a connection. If the server refuses the connection in this time,
/// initialisation fails.
const PATIENCE: Duration = Duration::from_millis(500);

#[handlers]
impl Socket {
    /// Whether a connection is established or, for datagrams, a socket is open.
    #[read]
    fn connected(&self) -> bool {
        !matches!(self.link, Link::None | Link::Connecting(_))
    }
}

impl Lifecycle for Socket {
    fn held(&self) -> u64 {
        self.pump.held()
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.begun = true;
        if cx.inherits() {
            self.pump.initialise(cx);
            return Ok(());
        }
        let Plan { kind, place, local, client } = &self.plan;
        let (local, text) = (local.as_ref(), ElementError::refused::<SocketError>);
        match (kind.is_stream(), *client) {
            (true, true) => {
                let stream = Stream::connect(place, local, &self.options).map_err(text)?;
                match stream.finish(PATIENCE) {
                    Ok(true) => {
                        self.connections.add(1);
                        self.link = Link::Stream(stream);
                    }
                    Ok(false) => self.link = Link::Connecting(stream),
                    Err(e) => return Err(ElementError::system(format!("cannot connect to {place}"))(e)),
                }
            }
            (true, false) => self.listener = Some(Listener::new(place, &self.options).map_err(text)?),
            (false, true) => {
                self.link = Link::Datagrams(Datagrams::connect(place, local, &self.options).map_err(text)?);
            }
            (false, false) => {
                self.link = Link::Datagrams(Datagrams::bind(place, &self.options).map_err(text)?);
            }
        }
        self.pump.initialise(cx);
        Ok(())
    }
    /// Returns the key by which a hot swap finds the socket. Buffer sizes are not part of the key: an open socket is
    /// taken over even if the new configuration gives other sizes, and keeps its old sizes.
    fn holds(&self) -> Option<String> {
        let Plan { kind, place, local, client } = &self.plan;
        // A client that has lost its connection has no socket to take over, so the next router connects again.
        if self.begun && *client && matches!(self.link, Link::None) {
            return None;
        }
        Some(format!("socket {kind:?} {place:?} {local:?} {client}"))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if old.listener.is_some() || !matches!(old.link, Link::None) {
            self.listener = old.listener.take();
            self.link = std::mem::replace(&mut old.link, Link::None);
            self.pump.take(&mut old.pump, cx);
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        match &mut self.link {
            Link::Stream(s) | Link::Ending(s) => {
                self.pump.finish(Some(s), cx);
                s.end();
            }
            Link::Datagrams(d) => self.pump.finish(Some(d), cx),
            Link::None | Link::Connecting(_) => self.pump.finish(None::<&mut Stream>, cx),
        }
        // Close the connection and the listener, and remove the files of Unix sockets.
        (self.link, self.listener) = (Link::None, None);
        Ok(())
    }
    /// Returns no effects. The element prints messages only about connections, never about single packets, so
    /// packets may be processed in batches.
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

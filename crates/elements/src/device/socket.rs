// SPDX-License-Identifier: MIT OR Apache-2.0
//! Socket: packets from and to other programs, by TCP, UDP and Unix sockets.

mod plan;
#[cfg(test)]
mod swap;
#[cfg(test)]
mod tests;
mod traffic;

use super::socket_pump::{Pump, Shape, options};
use super::socket_tables::{Table, Tables};
use castanet_element::prelude::*;
use castanet_io::socket::{Datagrams, Listener, Options, SocketError, Stream};
pub use plan::PortArg;
use plan::{Kind, Plan};
use std::time::Duration;

/// Receives packets from another program, or sends packets to one.
///
/// TYPE is `TCP` or `UDP`, with an address and a port, or `UNIX` (a stream) or `UNIX_DGRAM`, with a file. A client connects to that place,
/// from the local one if it is given; a server waits there. On a stream there are no packets: what arrives leaves in pieces of at most
/// SNAPLEN bytes, and what is sent is strung together. A datagram is one packet, and one that is longer than SNAPLEN is cut.
///
/// A stream server talks to one client at a time; the next is accepted when that one has gone. A client that says it will send no
/// more still gets what waits for it. A datagram server sends to the host that sent last. Hosts that ALLOW and DENY keep out are turned
/// away and their datagrams dropped; a host in both tables is let in, and with ALLOW alone only its hosts are.
///
/// Packets for which the system has no room stay upstream, or for a push input wait here, up to 1024; so they do while a client
/// still connects. What is pushed while there is no peer is dropped, and nothing is pulled. A failure is reported once, or
/// each time with `VERBOSE`. A client that lost its connection does not make a new one.
///
/// # Ports
/// Input 0 (optional): what is sent. Output 0 (optional): what is received.
///
/// # Example
/// ```click
/// Socket(UNIX_DGRAM, example.sock, CLIENT false) -> Print(got) -> Discard;
/// InfiniteSource(DATA "hello", LIMIT 3) -> Socket(UNIX_DGRAM, example.sock);
/// DriverManager(wait 0.01);
/// ```
#[derive(Class)]
#[class(books(enters, holds), ends(Consumed))]
#[class(
    name = "Socket", offload = none,
    aliases("FromSocket", "ToSocket"),
    ports = "0-1/0-1",
    processing = "a/h",
    flow = "x/y",
    packets = "any/any"
)]
#[class(takes_state = "the open socket with its connection, what waits")]
#[class(workers = exclusive, task, effects(prints), build, lifecycle, handlers)]
#[class(drops(Consumed, QueueFull, WriteFailed, NotConnected, Stopped))]
pub struct Socket {
    args: Args,
    plan: Plan,
    options: Options,
    tables: Tables,
    listener: Option<Listener>,
    link: Link,
    /// Whether it was initialised.
    begun: bool,
    #[counts]
    pump: Pump,
    /// Connections that were made.
    #[count(unit = "connections")]
    connections: Count,
    /// Connections that the other end broke off, and those that could not be made.
    #[count(unit = "failures")]
    failures: Count,
    /// Connections and datagrams of hosts that are kept out.
    #[count(unit = "packets")]
    refused: Count,
}

/// The state of a socket.
#[derive(Debug)]
enum Link {
    /// No connection and no socket for datagrams.
    None,
    /// A connection that is being made.
    Connecting(Stream),
    /// A connection.
    Stream(Stream),
    /// A connection whose other end sends no more.
    Ending(Stream),
    /// Datagrams.
    Datagrams(Datagrams),
}

/// Arguments of Socket.
#[derive(Args)]
pub struct Args {
    /// `TCP`, `UDP`, `UNIX` or `UNIX_DGRAM`.
    #[arg(name = "TYPE")]
    kind: Kind,
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
    /// Whether connections and failures are reported, each of them.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// The most bytes of a packet that is received.
    #[arg(keyword, default = 2048)]
    snaplen: u32,
    /// Bytes before the data of packets that are received.
    #[arg(keyword, default = castanet_packet::DEFAULT_HEADROOM as u32, show = "28")]
    headroom: u32,
    /// Whether packets that are received are stamped with the time.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Bytes that the system keeps until they are received; -1 for its default.
    #[arg(keyword, default = -1)]
    rcvbuf: i32,
    /// Bytes that the system keeps until they are sent; -1 for its default.
    #[arg(keyword, default = -1)]
    sndbuf: i32,
    /// Whether TCP sends small pieces at once: 0 or 1.
    #[arg(keyword, default = 1)]
    nodelay: i32,
    /// Whether it connects to the place, else it waits there; true when there is no output.
    #[arg(keyword, show = "true without outputs")]
    client: Option<bool>,
    /// Whether to ask a Proper service for the socket; there is none, so the system is asked.
    #[arg(keyword, default = false)]
    proper: bool,
    /// Hosts that are let in: a route table.
    #[arg(keyword)]
    allow: Option<Table>,
    /// Hosts that are kept out: a route table.
    #[arg(keyword)]
    deny: Option<Table>,
}

impl Build for Socket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let client = args.client.unwrap_or(cx.outputs == 0);
        let shape =
            Shape { snaplen: args.snaplen, headroom: args.headroom, timestamp: args.timestamp, ip: false };
        if args.proper {
            cx.warn(ArgError::warning(
                "PROPER: there is no such service here; the system is asked",
                0..usize::MAX,
            ));
        }
        Ok(Socket {
            plan: Plan::of(&args, client, &cx.arg_cx())?,
            options: options(args.rcvbuf, args.sndbuf, args.nodelay != 0),
            tables: Tables { allow: args.allow, deny: args.deny },
            listener: None,
            link: Link::None,
            begun: false,
            pump: Pump::build(shape, cx)?,
            connections: Count::default(),
            failures: Count::default(),
            refused: Count::default(),
            args,
        })
    }
}

/// How long initialisation waits for a connection, so that a place where no server listens is an error of the configuration.
const PATIENCE: Duration = Duration::from_millis(500);

#[handlers]
impl Socket {
    /// Whether there is a connection or, for datagrams, a socket.
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
    /// Its buffers' sizes are no part of it: those of a socket that is open stay as they are.
    fn holds(&self) -> Option<String> {
        let Plan { kind, place, local, client } = &self.plan;
        // A client that has lost its connection holds nothing, so that the next router makes a new one.
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
        // Closes them, and removes their files.
        (self.link, self.listener) = (Link::None, None);
        Ok(())
    }
    /// Reports of connections are no reason to run packet by packet.
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

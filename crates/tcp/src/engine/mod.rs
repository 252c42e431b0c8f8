// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many connections: each has a TCB of the compiled TCP. The engine finds the connection of a segment by addresses and
//! ports, runs applications, and lets time pass. It knows nothing of elements; packets go in and out.

mod call;
mod calls;
mod connection;
mod connections;
mod counts;
mod errors;
mod flow;
mod host;
mod input;
pub mod invariants;
mod memory;
mod outbox;
mod ring;
mod route;
mod sequence;
mod service;
mod settle;
mod stream;
mod swap;
#[cfg(test)]
mod tests;
mod time;

pub use calls::{Shown, is_host};
pub use connection::End;
pub use counts::EngineCounts;
pub use errors::IcmpError;
pub use flow::Flow;
pub use input::IpNotes;
pub use route::{Arrived, Route};
pub use stream::Stream;

use crate::application::Registered;
use crate::protocol::{Cx, Packets, Ptr, State, Tcb, TcpInterface, tcp_interface};
use call::{Call, LARGEST_HEADER, SEGMENT};
use castanet_element::packet::Packet;
use castanet_element::{Counts, Secret};
use castanet_wire::tcp::TcpHeader;
use connection::Connection;
use connections::Connections;
use flow::Seeded;
use host::Host;
use memory::Memory;
use sequence::Sequence;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of this host.
    pub addresses: Vec<Ipv4Addr>,
    /// The most connections.
    pub connections: usize,
    /// The most connections that peers have begun and not completed. Further ones get SYN cookies.
    pub backlog: usize,
    /// The most bytes of data of all connections.
    pub memory: usize,
    /// The largest receive buffer and send buffer of a connection, in bytes.
    pub rcvbuf: usize,
    /// See `rcvbuf`.
    pub sndbuf: usize,
    /// The time to live of IP packets.
    pub ttl: u8,
    /// The Differentiated Services codepoint of new connections (RFC 2474).
    pub dscp: u8,
    /// The silence after which a peer is asked whether it is alive, in seconds; 0 for never.
    pub keep_alive: u32,
    /// The time that data may wait for its acknowledgement, in seconds; 0 for no limit.
    pub user_timeout: u32,
    /// Data does not wait for the acknowledgement of the data before it: Nagle's algorithm is off.
    pub no_delay: bool,
    /// Segments are not fragmented; they become smaller where a path needs it (RFC 1191).
    pub path_mtu: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Ecn,
    /// Segments may be joined to super-packets, whose checksums are partial ones.
    pub super_packets: bool,
}

/// When a connection uses explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Never.
    Off,
    /// If the peer offers it.
    #[default]
    Accept,
    /// If the peer offers it, and this end offers it too.
    Offer,
}

/// Why a call of the user has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The port has a listener.
    #[error("the port has a listener already")]
    InUse,
    /// The stack has as many connections as it may have.
    #[error("the stack has as many connections as it may have")]
    Full,
    /// All ports for connections to this peer are in use.
    #[error("all ports for connections to this peer are in use")]
    NoPort,
    /// There is no such connection or listener.
    #[error("no such connection or listener")]
    Missing,
    /// The stack has no address, or not this one.
    #[error("the stack has no such address")]
    NoAddress,
    /// The peer is not a single host.
    #[error("no connection can be opened to this address")]
    NoHost,
}

/// A port that is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The application, by its index.
    pub application: usize,
    /// Whether a handler has added it, and not the configuration.
    pub added: bool,
}

/// Many connections.
#[derive(Counts)]
pub struct Engine {
    /// The objects of the compiled TCP.
    state: State,
    interface: Ptr<TcpInterface>,
    host: Host,
    connections: Connections,
    flows: HashMap<Flow, Ptr<Tcb>, Seeded>,
    /// The connection that was looked up last.
    last_found: Cell<Option<(Flow, Ptr<Tcb>)>>,
    listeners: BTreeMap<u16, Listener>,
    applications: Vec<Registered>,
    half_open: usize,
    /// Until when SYN cookies may come back, in nanoseconds.
    cookies_until: i64,
    /// The connections that wait for slow timeouts, and for fast ones.
    ticking: Vec<Ptr<Tcb>>,
    delaying: Vec<Ptr<Tcb>>,
    /// Connections in TIME-WAIT may give way to new ones; these are the oldest first.
    waiting: VecDeque<Flow>,
    /// The number of slow timeouts so far.
    ticks: u64,
    /// When the next slow timeout is due, and the next fast one, in nanoseconds.
    slow_due: i64,
    fast_due: i64,
    ports_tried: u32,
    #[counts]
    counts: EngineCounts,
}

impl Engine {
    /// An engine without connections.
    pub fn new(settings: Settings, secret: Secret) -> Engine {
        let sequence = Sequence::new(secret);
        let flows = HashMap::with_hasher(Seeded(sequence.table_seed()));
        let host = Host::new(settings, sequence);
        let mut engine = Engine {
            state: State::default(),
            interface: Ptr::new(0),
            host,
            connections: Connections::default(),
            flows,
            last_found: Cell::new(None),
            listeners: BTreeMap::new(),
            applications: Vec::new(),
            half_open: 0,
            cookies_until: i64::MIN,
            ticking: Vec::new(),
            delaying: Vec::new(),
            waiting: VecDeque::new(),
            ticks: 0,
            slow_due: time::SLOW,
            fast_due: time::FAST,
            ports_tried: 0,
            counts: EngineCounts::default(),
        };
        engine.interface = engine.call(Ptr::new(0), |cx, _| tcp_interface::create(cx));
        engine
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.host.settings
    }
    /// The counts.
    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }
    /// The number of connections.
    pub fn size(&self) -> usize {
        self.flows.len()
    }
    /// The number of connections that peers have begun and not completed.
    pub fn half_open(&self) -> usize {
        self.half_open
    }
    /// The bytes of data of all connections.
    pub fn memory(&self) -> usize {
        self.host.memory.used()
    }
    /// Takes the next packet to be sent.
    pub fn packet(&mut self) -> Option<Packet> {
        self.host.out.get_mut().take()
    }
    /// Takes the packets to be sent, in their order. Those that are not taken are dropped.
    pub fn packets(&mut self) -> std::collections::vec_deque::Drain<'_, Packet> {
        self.host.out.get_mut().take_all()
    }
    /// Takes the number of segments for which there was no buffer.
    pub fn take_unsent(&mut self) -> u64 {
        self.host.unsent.take()
    }

    /// Calls the TCP about a connection, if there is one with this TCB.
    fn call<R>(&mut self, tcb: Ptr<Tcb>, f: impl FnOnce(&Cx<'_, Call<'_>>, &TcpInterface) -> R) -> R {
        let mut written = [0; LARGEST_HEADER];
        let written = Cell::from_mut(&mut written);
        let call = Call::new(&self.host, self.connections.get(tcb), (0, &[]), written);
        enter(&self.state, self.interface, &call, [&[], written.as_array_of_cells()], f)
    }
    /// Passes a segment to the TCP. Its header is complete.
    fn pass(&mut self, tcb: Ptr<Tcb>, segment: &mut [u8]) {
        let mut written = [0; LARGEST_HEADER];
        let written = Cell::from_mut(&mut written);
        let (size, header) = (segment.len() as u32, header_length(segment));
        let (header, data) = segment.split_at_mut_checked(header).unwrap_or_default();
        let call = Call::new(&self.host, self.connections.get(tcb), (header.len(), data), written);
        let packets = [Cell::from_mut(header).as_slice_of_cells(), &written.as_array_of_cells()[..]];
        enter(&self.state, self.interface, &call, packets, |cx, this| match self.host.noted.flags.get() {
            0 => tcp_interface::input(cx, this, tcb, SEGMENT, size),
            noted => tcp_interface::input_noted(cx, this, tcb, SEGMENT, size, noted),
        });
    }
    /// Passes a segment that belongs to no connection to the TCP.
    fn pass_stray(&mut self, flow: Flow, segment: &mut [u8]) {
        let mut written = [0; LARGEST_HEADER];
        let written = Cell::from_mut(&mut written);
        let size = segment.len() as u32;
        let call = Call::stray(&self.host, flow, written);
        let packets = [Cell::from_mut(segment).as_slice_of_cells(), &written.as_array_of_cells()[..]];
        enter(&self.state, self.interface, &call, packets, |cx, this| {
            tcp_interface::stray(cx, this, SEGMENT, size);
        });
    }
    fn tcb(&self, tcb: Ptr<Tcb>) -> &Tcb {
        self.state.tcb.at(tcb)
    }
}

/// Enters the compiled TCP.
#[inline]
fn enter<R>(
    state: &State,
    interface: Ptr<TcpInterface>,
    call: &Call<'_>,
    packets: [&[Cell<u8>]; 2],
    f: impl FnOnce(&Cx<'_, Call<'_>>, &TcpInterface) -> R,
) -> R {
    let cx = Cx { host: call, state, packets: Packets::new(packets) };
    f(&cx, cx.tcp_interface(interface))
}

/// The length of the header of a segment.
fn header_length(segment: &[u8]) -> usize {
    TcpHeader::from_prefix(segment).map_or(0, |h| h.header_len())
}

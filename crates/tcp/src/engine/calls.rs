// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls from outside: listen, connect, close, and what the connections are.

use super::{CallError, Connection, Engine, Flow, Listener, Route, Stream};
use crate::application::Registered;
use crate::local::Poller;
use crate::protocol::{Ptr, s, tcp_interface};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A connection, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The addresses and ports.
    pub flow: Flow,
    /// The state, by its name in RFC 9293.
    pub state: &'static str,
    /// The name of the application.
    pub application: String,
    /// The bytes that were not acknowledged.
    pub send: usize,
    /// The bytes that were not read.
    pub receive: usize,
}

impl Engine {
    /// Sets the applications. Connections and listeners name them by their indices in this list.
    pub fn set_applications(&mut self, applications: Vec<Registered>) {
        self.applications = applications;
    }
    /// The applications.
    pub fn applications(&self) -> &[Registered] {
        &self.applications
    }
    /// Lets an application listen on a port.
    pub fn listen(&mut self, port: u16, listener: Listener) -> Result<(), CallError> {
        if self.listeners.contains_key(&port) {
            return Err(CallError::InUse);
        }
        self.listeners.insert(port, listener);
        Ok(())
    }
    /// Ends listening on a port. Its connections stay.
    pub fn unlisten(&mut self, port: u16) -> Result<(), CallError> {
        self.listeners.remove(&port).map(|_| ()).ok_or(CallError::Missing)
    }
    /// The ports that are listened on.
    pub fn listeners(&self) -> impl Iterator<Item = (u16, Listener)> {
        self.listeners.iter().map(|(port, l)| (*port, *l))
    }

    /// Opens a connection for an application, from the first address or from `local`, which is one of the addresses, and from a
    /// port that is free.
    pub fn connect(
        &mut self,
        local: Option<Ipv4Addr>,
        remote: SocketAddrV4,
        application: usize,
        now: i64,
    ) -> Result<Flow, CallError> {
        self.connect_along(Route::DIRECT, local, remote, application, now)
    }
    /// The same, along a source route to the peer.
    pub fn connect_along(
        &mut self,
        route: Route,
        local: Option<Ipv4Addr>,
        remote: SocketAddrV4,
        application: usize,
        now: i64,
    ) -> Result<Flow, CallError> {
        self.set_time(now);
        if !is_host(*remote.ip()) {
            return Err(CallError::NoHost);
        }
        let addresses = &self.host.settings.addresses;
        let ip = local.or(addresses.first().copied()).filter(|ip| addresses.contains(ip));
        let ip = ip.ok_or(CallError::NoAddress)?;
        if !self.has_place() {
            return Err(CallError::Full);
        }
        let from = SocketAddrV4::new(ip, 0);
        self.ports_tried = self.ports_tried.wrapping_add(1);
        let flows = self
            .host
            .sequence
            .ports(from, remote, self.ports_tried)
            .map(|port| Flow { local: SocketAddrV4::new(ip, port), remote });
        let free = flows.into_iter().find(|f| !self.flows.contains_key(f)).ok_or(CallError::NoPort)?;
        let mut connection = Connection::new(free, application, false, self.ticks);
        connection.take_route(route);
        let tcb = self.add(connection);
        self.call(tcb, |cx, this| {
            if !route.is_direct() {
                tcp_interface::use_route(cx, this, tcb, route.options().len() as u32);
            }
            tcp_interface::connect(cx, this, tcb)
        });
        self.settle(tcb);
        Ok(free)
    }
    /// Calls `f` with the stream of a connection, beside its application.
    pub fn with_stream(
        &mut self,
        flow: Flow,
        now: i64,
        f: impl FnOnce(&mut Stream<'_>),
    ) -> Result<(), CallError> {
        self.set_time(now);
        let tcb = self.find(flow).ok_or(CallError::Missing)?;
        self.wake(tcb);
        let done = self.with_stream_of(tcb, |_, _, stream| f(stream)).ok_or(CallError::Missing)?;
        self.carry_out(tcb, done);
        self.settle(tcb);
        Ok(())
    }

    /// A descriptor that is readable while a local socket is ready. None if there was no local socket.
    pub fn local_descriptor(&self) -> Option<Arc<OwnedFd>> {
        self.host.poller.get().map(|p| p.descriptor().clone())
    }
    /// Runs the applications of connections whose local sockets are ready. Returns whether there were any.
    pub fn run_local(&mut self, now: i64) -> bool {
        self.set_time(now);
        let ready = self.host.poller.get().map(Poller::ready).unwrap_or_default();
        for number in &ready {
            let tcb = Ptr::new(*number);
            if let Some(c) = self.connections.get(tcb) {
                c.stirred = true;
                self.wake(tcb);
                self.settle(tcb);
            }
        }
        !ready.is_empty()
    }

    /// The next sequence number that a connection expects, and the highest one that it has sent.
    pub fn numbers(&self, flow: Flow) -> Option<(u32, u32)> {
        let t = self.tcb(self.find(flow)?);
        Some((t.rcv_next.get(), t.snd_max.get()))
    }

    /// All connections, in the order of their flows.
    pub fn connections(&self) -> Vec<Shown> {
        let each = self.connections.tcbs().into_iter().filter_map(|tcb| {
            let state = name(self.tcb(tcb).state.get());
            let application = |c: &Connection| {
                self.applications.get(c.application).map_or(String::new(), |a| a.name.clone())
            };
            self.connections.peek(tcb).map(|c| Shown {
                flow: c.flow,
                state,
                application: application(c),
                send: c.send.len(),
                receive: c.receive.len(),
            })
        });
        let mut all: Vec<Shown> = each.collect();
        all.sort_by_key(|c| c.flow);
        all
    }
}

/// Whether an address can be that of a peer, or of a host on the way to it.
pub fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_multicast() || address.is_broadcast() || address.is_unspecified())
}

/// The name of a state in RFC 9293, section 3.3.2.
fn name(state: i32) -> &'static str {
    match state {
        s::LISTEN => "LISTEN",
        s::SYN_SENT => "SYN-SENT",
        s::SYN_RECEIVED => "SYN-RECEIVED",
        s::ESTABLISHED => "ESTABLISHED",
        s::FIN_WAIT_1 => "FIN-WAIT-1",
        s::FIN_WAIT_2 => "FIN-WAIT-2",
        s::CLOSE_WAIT => "CLOSE-WAIT",
        s::CLOSING => "CLOSING",
        s::LAST_ACK => "LAST-ACK",
        s::TIME_WAIT => "TIME-WAIT",
        _ => "CLOSED",
    }
}

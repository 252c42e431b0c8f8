// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host keeps of a connection: its data, and what the TCP has told.

use super::ring::Ring;
use super::service::Service;
use super::{Flow, Memory, Route};

/// Why a connection has ended: the constants of the module `End`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both ends have closed.
    Finished,
    /// The peer has reset it, or this end has.
    Reset,
    /// The peer did not accept it.
    Refused,
    /// The peer did not answer.
    Timeout,
    /// The peer did not answer, and an ICMP error said that it cannot be reached.
    Unreachable,
}

impl End {
    pub(super) fn of(code: i32) -> End {
        match code {
            0 => End::Finished,
            2 => End::Refused,
            3 => End::Timeout,
            4 => End::Unreachable,
            _ => End::Reset,
        }
    }
}

/// A connection, as the host of the TCP sees it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) flow: Flow,
    /// The application, by its index.
    pub(super) application: usize,
    /// Bytes that the application has written and the peer has not acknowledged.
    pub(super) send: Ring,
    /// Bytes that the application has not read.
    pub(super) receive: Ring,
    /// Data that came too early.
    held: Vec<Option<Box<[u8]>>>,
    pub(super) connected: bool,
    /// It was counted as opened.
    pub(super) counted: bool,
    /// It is in TIME-WAIT.
    pub(super) waits: bool,
    /// The peer has sent its last byte.
    pub(super) at_end: bool,
    /// The application has closed.
    pub(super) closed: bool,
    /// It has closed, but the peer had done so before, and there was data to be read. The TCP learns of it when the data was read,
    /// because the connection may end soon afterwards.
    pub(super) closes_later: bool,
    pub(super) ended: Option<End>,
    /// The peer has not answered for so long that the application should know.
    pub(super) unanswered: bool,
    /// The bytes from the first one that was not read to the end of the urgent data.
    pub(super) urgent: usize,
    /// There is urgent data that was not counted.
    pub(super) alarmed: bool,
    /// The service of its packets.
    pub(super) service: Service,
    /// Their source route, if they have one.
    pub(super) route: Option<Box<Route>>,
    /// Something has happened that the application has not seen.
    pub(super) stirred: bool,
    /// The application wanted to write more than there was memory for.
    pub(super) starved: bool,
    /// It was opened by the peer, and is not established.
    pub(super) half_open: bool,
    /// It is in the list of connections that get slow timeouts, or fast ones.
    pub(super) ticks: bool,
    pub(super) delays: bool,
    /// The number of slow timeouts of the engine at which it last got one, or could have.
    pub(super) seen: u64,
}

impl Connection {
    pub(super) fn new(flow: Flow, application: usize, half_open: bool, seen: u64) -> Connection {
        Connection {
            flow,
            application,
            send: Ring::default(),
            receive: Ring::default(),
            held: Vec::new(),
            connected: false,
            counted: false,
            waits: false,
            at_end: false,
            closed: false,
            closes_later: false,
            ended: None,
            unanswered: false,
            urgent: 0,
            alarmed: false,
            service: Service::default(),
            route: None,
            stirred: false,
            starved: false,
            half_open,
            ticks: false,
            delays: false,
            seen,
        }
    }

    /// Sends packets along a route from now on.
    pub(super) fn take_route(&mut self, route: Route) {
        self.route = (!route.is_direct()).then(|| Box::new(route));
        self.service = self.service.with_route(!route.is_direct());
    }
    /// Keeps data that came too early. Returns its number.
    pub(super) fn hold(&mut self, data: Box<[u8]>) -> usize {
        match self.held.iter().position(Option::is_none) {
            Some(free) => {
                self.held[free] = Some(data);
                free
            }
            None => {
                self.held.push(Some(data));
                self.held.len() - 1
            }
        }
    }
    /// Takes kept data out.
    pub(super) fn take_held(&mut self, number: usize) -> Box<[u8]> {
        let taken = self.held.get_mut(number).and_then(Option::take).unwrap_or_default();
        if self.held.iter().all(Option::is_none) {
            self.held = Vec::new();
        }
        taken
    }
    /// The bytes of all its data.
    pub(super) fn size(&self) -> usize {
        self.send.len() + self.receive.len() + self.held.iter().flatten().map(|h| h.len()).sum::<usize>()
    }
    /// Forgets all data.
    pub(super) fn clear(&mut self, memory: &Memory) {
        memory.give_back(self.size());
        (self.send, self.receive, self.held) = Default::default();
    }
}

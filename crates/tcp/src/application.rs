// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applications: what reads from connections and writes to them.

use crate::engine::{Route, Stream};
use crate::local::Local;
use castanet_element::{Counts, SharedCount};
use parking_lot::Mutex;
use std::net::SocketAddrV4;
use std::sync::Arc;

/// The behaviour of an application. The stack calls it, on the worker of the stack, so it must not block.
pub trait Application: Send + Sync {
    /// Called when something has happened to a connection: it was established, data arrived, there is room for data
    /// again, the peer has no more data, has announced urgent data, or does not answer, not even the SYN. Reads and writes as
    /// much as possible.
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>);
}

/// The state that an application keeps for a connection. A hot swap moves it.
#[derive(Debug, Default)]
pub struct Session {
    /// The bytes that the application has written so far.
    pub written: u64,
    /// The bytes that the application has read so far.
    pub read: u64,
    /// The local socket of a relayed connection.
    pub local: Option<Box<Local>>,
}

/// Counts of an application.
#[derive(Clone, Counts, Debug, Default)]
pub struct Tally {
    /// Connections that were established.
    #[count(unit = "connections")]
    pub opened: SharedCount,
    /// Times that peers have announced urgent data.
    #[count(unit = "times")]
    pub urgent: SharedCount,
    /// Bytes that the application has read.
    #[count(unit = "bytes")]
    pub received: SharedCount,
    /// Bytes that the application has written.
    #[count(unit = "bytes")]
    pub sent: SharedCount,
}

/// An application that an element has registered with a stack.
#[derive(Clone)]
pub struct Registered {
    /// The full name of the element.
    pub name: String,
    /// The number of the element.
    pub element: u32,
    /// The behaviour.
    pub application: Arc<dyn Application>,
    /// The counts.
    pub tally: Tally,
    /// The ports that the application listens on from the start.
    pub ports: Vec<u16>,
    /// The connections that the application opens at the start.
    pub peers: Vec<Peer>,
}

/// The other end of a connection that an application opens, and the source route to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address and port.
    pub end: SocketAddrV4,
    /// The route.
    pub route: Route,
}

/// The applications of a stack. Elements register them while the router is built, in any order.
#[derive(Default)]
pub struct Applications(Mutex<Vec<Registered>>);

impl Applications {
    /// Registers an application.
    pub fn add(&self, application: Registered) {
        self.0.lock().push(application);
    }
    /// All applications, in the order of their elements.
    pub fn all(&self) -> Vec<Registered> {
        let mut all = self.0.lock().clone();
        all.sort_by_key(|r| r.element);
        all
    }
}

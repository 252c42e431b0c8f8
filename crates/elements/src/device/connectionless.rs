// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of McastSocket and RawSocket: a socket without connections.

use super::socket_pump::{Pump, Shape};
use castanet_element::prelude::*;
use castanet_element::spec::{CountSpec, HandlerSpec};
use castanet_element::{CountVisitor, Handlers};
use castanet_io::socket::{Endpoint, SocketError};

/// The arguments of a class that uses a socket without connections.
pub trait SocketArgs: castanet_spec::Args {
    /// The socket.
    type Socket: Endpoint;
    /// The addresses and ports of the socket.
    type Place;
    /// The shape of received packets.
    fn shape(&self) -> Shape;
    /// Finds the addresses and ports of the socket. The arguments may give them by name.
    fn place(&self, cx: &ArgCx<'_>) -> Result<Self::Place, ConfigError>;
    /// Opens the socket. The two flags of `ways` select whether the socket receives, and whether it sends.
    fn open(&self, place: &Self::Place, ways: (bool, bool)) -> Result<Self::Socket, SocketError>;
    /// Returns the key by which a hot swap finds the socket.
    fn key(&self, place: &Self::Place, ways: (bool, bool)) -> String;
}

/// Receives packets from a socket without connections, and sends packets to it. `A` is the type of the class's
/// arguments.
pub struct Connectionless<A: SocketArgs> {
    args: A,
    place: A::Place,
    /// Whether the socket receives, and whether it sends.
    ways: (bool, bool),
    socket: Option<A::Socket>,
    pump: Pump,
}

impl<A: SocketArgs> Lifecycle for Connectionless<A> {
    fn held(&self) -> u64 {
        self.pump.held()
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !cx.inherits() {
            let socket = self.args.open(&self.place, self.ways);
            self.socket = Some(socket.map_err(ElementError::refused)?);
        }
        self.pump.initialise(cx);
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        Some(self.args.key(&self.place, self.ways))
    }
    fn take_over(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if old.socket.is_some() {
            self.socket = old.socket.take();
            self.pump.take(&mut old.pump, cx);
        }
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.pump.finish(self.socket.take().as_mut(), cx);
        Ok(())
    }
    /// Returns no outside effects, so packets may move in batches. The element prints only one message, about its
    /// first failure, and the order of this message and others does not matter.
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

impl<A: SocketArgs> Element for Connectionless<A> {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.pump.store(batch, cx);
        match &mut self.socket {
            Some(s) => drop(self.pump.send_stored(s, false, cx)),
            None => self.pump.clear(Reason::NotConnected, cx),
        }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        match &mut self.socket {
            Some(s) => self.pump.turn(s, cx),
            None => Turn::Sleep,
        }
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}

impl<A: SocketArgs> Handlers for Connectionless<A> {}

/// Passes on the counts of the pump. `#[derive(Counts)]` cannot do this, because it does not accept fields marked
/// `#[counts]` in a generic type.
impl<A: SocketArgs> Counts for Connectionless<A> {
    const COUNTS: &'static [CountSpec] = Pump::COUNTS;
    const COUNT_HANDLERS: &'static [HandlerSpec] = Pump::COUNT_HANDLERS;
    fn own_counts(&mut self, visit: &mut CountVisitor<'_>) {
        self.pump.own_counts(visit);
    }
    fn read_count(&self, handler: &str) -> Option<String> {
        self.pump.read_count(handler)
    }
}

impl<A: SocketArgs> Engine for Connectionless<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let place = args.place(&cx.arg_cx())?;
        let pump = Pump::build(args.shape(), cx);
        let ways = (cx.outputs > 0, cx.inputs > 0);
        Ok(Connectionless { args, place, ways, socket: None, pump })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

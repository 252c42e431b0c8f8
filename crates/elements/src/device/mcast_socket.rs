// SPDX-License-Identifier: MIT OR Apache-2.0
//! McastSocket: receives and sends UDP datagrams of a multicast group.

use super::socket::PortArg;
use super::socket_pump::{Buffers, Pump, Reception};
use castanet_element::prelude::*;
use castanet_io::socket::Multicast;
use castanet_wire::ipv4::{is_multicast, protocol::UDP};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Receives the datagrams of a multicast group, and sends datagrams to it (RFC 1112).
///
/// With SOURCEIP, datagrams that the element itself has sent are ignored when they come back. A packet is the data of
/// one datagram, without headers. While the host has no free buffer, packets stay upstream; with a push input, up to
/// 1024 packets wait in the element. Packets that the host refuses are dropped, and the first refusal is reported.
///
/// # Ports
/// Input 0 (optional): datagrams to send. Output 0 (optional): datagrams received.
///
/// # Example
/// ```click
/// McastSocket(239.255.0.9, 50009, 127.0.0.1) -> Print(heard) -> Discard;
/// InfiniteSource(DATA "hello", LIMIT 2) -> McastSocket(239.255.0.9, 50009, 127.0.0.1);
/// DriverManager(wait 0.01);
/// ```
#[derive(Class)]
#[class(ledger(enters, holds), ends(Consumed))]
#[class(name = "McastSocket", offload = none, ports = "0-1/0-1", processing = "a/h", flow = "x/y", packets = "any/any")]
#[class(takes_state = "the open socket, what waits")]
#[class(workers = exclusive, task, effects(prints), build, lifecycle)]
#[class(drops(Consumed, QueueFull, WriteFailed, NotConnected, Stopped))]
pub struct McastSocket {
    args: Args,
    group: SocketAddrV4,
    source: SocketAddrV4,
    ways: (bool, bool),
    socket: Option<Multicast>,
    #[counts]
    pump: Pump,
}

/// Arguments of McastSocket.
#[derive(Args)]
pub struct Args {
    /// The address of the group.
    mcastip: Ipv4Addr,
    /// The port of the group.
    mcastport: PortArg,
    /// The address of the interface to use; by default the kernel chooses.
    #[arg(default = Ipv4Addr::UNSPECIFIED, show = "0.0.0.0")]
    sourceip: Ipv4Addr,
    /// The port to send from; 0 for any.
    #[arg(default = PortArg::default(), show = "0")]
    sourceport: PortArg,
    #[arg(flatten)]
    reception: Reception,
    /// Whether received packets have timestamps.
    #[arg(keyword, default = true)]
    timestamp: bool,
    #[arg(flatten)]
    buffers: Buffers,
    /// Whether this host also receives what it sends.
    #[arg(name = "LOOP", keyword, default = true)]
    loopback: bool,
}

impl Build for McastSocket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if !is_multicast(args.mcastip.to_bits()) {
            return Err(format!("MCASTIP: {} is no multicast address (224.0.0.0/4)", args.mcastip).into());
        }
        let names = cx.arg_cx();
        let port = args.mcastport.number(UDP, &names).map_err(|e| format!("MCASTPORT: {e}"))?;
        let source = args.sourceport.number(UDP, &names).map_err(|e| format!("SOURCEPORT: {e}"))?;
        let shape = args.reception.shape(args.timestamp, false);
        Ok(McastSocket {
            pump: Pump::build(shape, cx)?,
            group: SocketAddrV4::new(args.mcastip, port),
            source: SocketAddrV4::new(args.sourceip, source),
            ways: (cx.outputs > 0, cx.inputs > 0),
            socket: None,
            args,
        })
    }
}

impl Lifecycle for McastSocket {
    fn held(&self) -> u64 {
        self.pump.held()
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !cx.inherits() {
            let options = self.args.buffers.options(false);
            let socket = Multicast::new(self.group, self.source, self.ways, self.args.loopback, &options);
            self.socket = Some(socket.map_err(ElementError::refused)?);
        }
        self.pump.initialise(cx);
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        let Args { loopback, buffers, .. } = &self.args;
        Some(format!("group {} {} {:?} {loopback} {buffers:?}", self.group, self.source, self.ways))
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
    /// Returns no effects. The element prints only one message, about its first failure, so packets may be processed
    /// in batches.
    fn effects(&self, _: Effects) -> Effects {
        Effects::empty()
    }
}

impl Element for McastSocket {
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

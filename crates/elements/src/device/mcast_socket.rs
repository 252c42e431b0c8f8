// SPDX-License-Identifier: MIT OR Apache-2.0
//! McastSocket: receives and sends UDP datagrams of a multicast group.

use super::connectionless::{Connectionless, SocketArgs};
use super::socket::PortArg;
use super::socket_pump::{Buffers, Reception, Shape};
use castanet_element::prelude::*;
use castanet_io::socket::{Multicast, SocketError};
use castanet_wire::ipv4::{is_multicast, protocol::UDP};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Receives the datagrams of a multicast group, and sends datagrams to it (RFC 1112).
///
/// With SOURCEIP, datagrams that the element itself has sent are ignored when they come back. A packet is the data of
/// one datagram, without headers. While the host has no free buffer, packets wait. With a pull input, they wait
/// upstream. With a push input, up to 1024 packets wait in the element. Packets that the host refuses are dropped, and
/// the first refusal is reported.
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
#[class(name = "McastSocket", offload = none, ports = "0-1/0-1", processing = "a/h", flow = "x/y", packets = "any/any unmarked")]
#[class(takes_state = "the open socket, what waits")]
#[class(workers = exclusive, task, effects(prints), host(Sockets))]
#[class(drops(Consumed, QueueFull, WriteFailed, NotConnected, Stopped))]
pub struct McastSocket {
    #[engine(element)]
    socket: Connectionless<Args>,
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

impl SocketArgs for Args {
    type Socket = Multicast;
    /// The group, and the address and port to send from.
    type Place = (SocketAddrV4, SocketAddrV4);
    fn shape(&self) -> Shape {
        self.reception.shape(self.timestamp, false)
    }
    fn place(&self, cx: &ArgCx<'_>) -> Result<Self::Place, ConfigError> {
        if !is_multicast(self.mcastip.to_bits()) {
            return Err(format!("MCASTIP: {} is no multicast address (224.0.0.0/4)", self.mcastip).into());
        }
        let port = self.mcastport.number(UDP, cx).map_err(|e| format!("MCASTPORT: {e}"))?;
        let source = self.sourceport.number(UDP, cx).map_err(|e| format!("SOURCEPORT: {e}"))?;
        Ok((SocketAddrV4::new(self.mcastip, port), SocketAddrV4::new(self.sourceip, source)))
    }
    fn open(&self, &(group, source): &Self::Place, ways: (bool, bool)) -> Result<Multicast, SocketError> {
        Multicast::new(group, source, ways, self.loopback, &self.buffers.options(false))
    }
    fn key(&self, (group, source): &Self::Place, ways: (bool, bool)) -> String {
        let Args { loopback, buffers, .. } = self;
        format!("group {group} {source} {ways:?} {loopback} {buffers:?}")
    }
}

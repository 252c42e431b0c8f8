// SPDX-License-Identifier: MIT OR Apache-2.0
//! RawSocket: receives and sends IP packets of one protocol through the host's own IP layer.

use super::connectionless::{Connectionless, SocketArgs};
use super::socket::PortArg;
use super::socket_pump::{Reception, Shape};
use crate::ip::ip_proto::IpProto;
use castanet_element::prelude::*;
use castanet_io::socket::{Options, RawIp, SocketError};

/// Receives and sends IP packets of one protocol through a raw socket of the host (raw(7)).
///
/// Received packets are emitted as the host gets them: they start with the IP header, which is marked, and the
/// destination address annotation is set. The host's own network stack also processes them. Packets to send must start
/// with their IP header. The host corrects length and checksum, and uses its own routes. Packets for which the host has
/// no free buffer stay upstream. Packets that it refuses are dropped, and the first refusal is reported. If PORT is
/// given (TCP and UDP only), only packets to that port are received, and the host does not answer UDP packets to that
/// port with ICMP errors (port unreachable). The element needs the right to open raw sockets.
///
/// # Ports
/// Input 0 (optional): IP packets to send. Output 0 (optional): IP packets received.
///
/// # Example
/// ```click
/// RawSocket(icmp) -> IPPrint(heard) -> Discard;
/// InfiniteSource(DATA \<4500001c 00010000 40010000 7f000001 7f000001 0000ffff 00000000>, LIMIT 2)
///     -> Queue -> RawSocket(icmp);
/// DriverManager(wait 0.01);
/// ```
#[derive(Class)]
#[class(ledger(enters, holds), ends(Consumed))]
#[class(
    name = "RawSocket", offload = none,
    aliases("FromRawSocket", "ToRawSocket"),
    ports = "0-1/0-1",
    processing = "l/h",
    flow = "x/y",
    packets = "ip at 0/ip"
)]
#[class(takes_state = "the open socket, what waits")]
#[class(workers = exclusive, task, effects(prints), host(RawSocket))]
#[class(drops(Consumed, WriteFailed, Stopped))]
pub struct RawSocket {
    #[engine(element)]
    socket: Connectionless<Args>,
}

/// Arguments of RawSocket.
#[derive(Args)]
pub struct Args {
    /// The protocol, by name or number.
    #[arg(name = "TYPE")]
    kind: IpProto,
    /// The destination port of the packets to receive; 0 for all ports.
    #[arg(default = PortArg::default(), show = "0")]
    port: PortArg,
    #[arg(flatten)]
    reception: Reception,
}

impl SocketArgs for Args {
    type Socket = RawIp;
    /// The destination port of the packets to receive; 0 for all ports.
    type Place = u16;
    fn shape(&self) -> Shape {
        self.reception.shape(true, true)
    }
    fn place(&self, cx: &ArgCx<'_>) -> Result<u16, ConfigError> {
        Ok(self.port.number(self.kind.0, cx).map_err(|e| format!("PORT: {e}"))?)
    }
    fn open(&self, &port: &u16, ways: (bool, bool)) -> Result<RawIp, SocketError> {
        RawIp::new(self.kind.0, Some(port), ways, &Options::default())
    }
    fn key(&self, port: &u16, ways: (bool, bool)) -> String {
        format!("raw {} {port} {ways:?}", self.kind.0)
    }
}

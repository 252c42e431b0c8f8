// SPDX-License-Identifier: MIT OR Apache-2.0
//! RawSocket: receives and sends IP packets of one protocol through the host's own IP layer.

use super::socket::PortArg;
use super::socket_pump::{Pump, Reception};
use crate::ip::ip_proto::IpProto;
use castanet_element::prelude::*;
use castanet_io::socket::{Options, RawIp};

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
    packets = "ip/ip"
)]
#[class(takes_state = "the open socket, what waits")]
#[class(workers = exclusive, task, effects(prints), build, lifecycle)]
#[class(drops(Consumed, WriteFailed, Stopped))]
pub struct RawSocket {
    args: Args,
    port: u16,
    ways: (bool, bool),
    socket: Option<RawIp>,
    #[counts]
    pump: Pump,
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

impl Build for RawSocket {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let shape = args.reception.shape(true, true);
        let port = args.port.number(args.kind.0, &cx.arg_cx()).map_err(|e| format!("PORT: {e}"))?;
        let ways = (cx.outputs > 0, cx.inputs > 0);
        Ok(RawSocket { pump: Pump::build(shape, cx)?, args, port, ways, socket: None })
    }
}

impl Lifecycle for RawSocket {
    fn held(&self) -> u64 {
        self.pump.held()
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if !cx.inherits() {
            let socket = RawIp::new(self.args.kind.0, Some(self.port), self.ways, &Options::default());
            self.socket = Some(socket.map_err(ElementError::refused)?);
        }
        self.pump.initialise(cx);
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        Some(format!("raw {} {} {:?}", self.args.kind.0, self.port, self.ways))
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

impl Element for RawSocket {
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts with Castanet's TCP, compiled with inlining and without.

use super::host::{End, Host, Options, PORT};
use castanet_element::packet::Packet;
use castanet_element::{Secret, Seed};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::{TcpHeader, checksum_ok};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// Declares a host with the engine of a crate.
macro_rules! host {
    ($(#[$attribute:meta])* $name:ident, $tcp:ident) => {
        $(#[$attribute])*
        pub struct $name {
            engine: $tcp::engine::Engine,
            flow: Option<$tcp::engine::Flow>,
            address: Ipv4Addr,
        }

        impl $tcp::application::Application for Outside<$name> {
            fn run(&self, _: &mut $tcp::application::Session, _: &mut $tcp::engine::Stream<'_>) {}
        }

        impl $name {
            /// Lets time pass, if the TCP waits for it.
            fn pass(&mut self, now: i64) {
                if self.engine.next_timeout().is_some_and(|at| at <= now) {
                    self.engine.pass_time(now);
                }
            }
            fn with<R: Default>(&mut self, now: i64, f: impl FnOnce(&mut $tcp::engine::Stream<'_>) -> R) -> R {
                let mut result = R::default();
                self.pass(now);
                if let Some(flow) = self.flow {
                    // Without a connection nothing is exchanged, which the measurement finds out.
                    let _ = self.engine.with_stream(flow, now, |s| result = f(s));
                }
                result
            }
        }

        impl Host for $name {
            type Packet = Packet;

            fn new(end: End, options: Options, now: i64) -> Self {
                let [address, peer] = end.addresses();
                let settings = $tcp::engine::Settings {
                    addresses: vec![address],
                    connections: 1000,
                    backlog: 10,
                    memory: 100_000_000,
                    rcvbuf: options.buffer,
                    sndbuf: options.buffer,
                    ttl: 64,
                    dscp: 0,
                    keep_alive: 0,
                    user_timeout: 0,
                    no_delay: false,
                    path_mtu: false,
                    ecn: $tcp::engine::Ecn::Accept,
                    super_packets: false,
                };
                let secret = Secret::of(Seed::Fixed(u64::from(address.to_bits())), "tcp");
                let mut engine = $tcp::engine::Engine::new(settings, secret);
                engine.pass_time(now);
                engine.set_applications(vec![$tcp::application::Registered {
                    name: "outside".into(),
                    element: 0,
                    application: Arc::new(Outside::<$name>::default()),
                    tally: $tcp::application::Tally::default(),
                    ports: Vec::new(),
                    peers: Vec::new(),
                }]);
                let flow = match end {
                    End::Client => engine.connect(None, SocketAddrV4::new(peer, PORT), 0, now).ok(),
                    End::Server => {
                        let listener = $tcp::engine::Listener { application: 0, added: false };
                        // The engine is new, so the port is free.
                        let _ = engine.listen(PORT, listener);
                        None
                    }
                };
                $name { engine, flow, address }
            }
            /// As the element TCPStack does, behind CheckIPHeader.
            fn input(&mut self, mut packet: Packet, now: i64) {
                self.pass(now);
                let data = packet.data_mut();
                let Ok(ip) = Ipv4Header::checked(data, true).copied() else { return };
                let (src, dst) = (ip.src.get(), ip.dst.get());
                if ip.protocol != protocol::TCP || ip.is_fragment() || dst != self.address.to_bits() {
                    return;
                }
                let range = ip.header_len()..usize::from(ip.total_len.get());
                let Some(segment) = data.get_mut(range).filter(|s| checksum_ok(src, dst, s)) else { return };
                let Some(header) = TcpHeader::from_prefix(segment) else { return };
                let flow = $tcp::engine::Flow {
                    local: SocketAddrV4::new(Ipv4Addr::from_bits(dst), header.dst_port.get()),
                    remote: SocketAddrV4::new(Ipv4Addr::from_bits(src), header.src_port.get()),
                };
                self.flow = Some(flow);
                // A segment that is dropped is missing afterwards, which the measurement finds out.
                let _ = self.engine.input(flow, segment, now);
            }
            fn send(&mut self, data: &[u8], now: i64) -> usize {
                self.with(now, |s| {
                    s.consume(s.available());
                    s.write(data)
                })
            }
            fn echo(&mut self, now: i64) {
                self.with(now, |s| s.echo());
            }
            fn discard(&mut self, now: i64) -> usize {
                self.with(now, |s| s.consume(s.available()))
            }
            fn take(&mut self) -> Option<Packet> {
                self.engine.packet()
            }
            fn bytes(packet: &Packet) -> &[u8] {
                packet.data()
            }
        }
    };
}

/// An application that does nothing: the host itself reads and writes.
struct Outside<H>(std::marker::PhantomData<fn(H)>);

impl<H> Default for Outside<H> {
    fn default() -> Self {
        Outside(std::marker::PhantomData)
    }
}

host!(
    /// A host with Castanet's TCP.
    Castanet,
    castanet_tcp
);
host!(
    /// A host with Castanet's TCP compiled without inlining.
    Plain,
    castanet_tcp_plain
);

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with Castanet's TCP, as it is compiled.

use super::host::{ADDRESSES, Ending, Host, PORT};
use super::schedule;
use super::user::Socket;
use castanet_element::packet::Packet;
use castanet_element::{Secret, Seed};
use castanet_tcp::application::{Application, Registered, Session, Tally};
use castanet_tcp::engine::{
    Arrived, Engine, Flow, IcmpError, IpNotes, Listener, Settings, Stream, invariants,
};
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::{TcpHeader, checksum_ok};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// The application does nothing: the test reads and writes.
struct Outside;

impl Application for Outside {
    fn run(&self, _: &mut Session, _: &mut Stream<'_>) {}
}

pub struct Ours {
    end: usize,
    engine: Engine,
    flow: Option<Flow>,
    opened: bool,
    /// How far its clock is ahead of that of the network.
    ahead: i64,
}

impl Ours {
    /// An end of an exchange. `opened_to` is the other end's port, if that is known and this end's numbers are to wrap;
    /// `opened_at` is when this end's numbers are chosen.
    pub fn new(end: usize, seed: u64, plan: &schedule::End, opened_at: i64, opened_to: Option<u16>) -> Ours {
        let mut host = Ours::at(end, seed, plan, 0);
        // A cookie is a sequence number that cannot be chosen.
        if let Some(before) = plan.before_wrap.filter(|_| !plan.cookies) {
            let mut probe = Ours::at(end, seed, plan, 0);
            let first = probe.first_number(opened_at, opened_to);
            // The numbers follow a clock of four microseconds.
            host.ahead = i64::from(before.wrapping_add(1).wrapping_neg().wrapping_sub(first)) * 4_000;
        }
        host
    }
    fn at(end: usize, seed: u64, plan: &schedule::End, ahead: i64) -> Ours {
        let settings = Settings {
            addresses: vec![ADDRESSES[end]],
            connections: 4,
            backlog: if plan.cookies { 0 } else { 4 },
            memory: 1 << 20,
            rcvbuf: plan.receive_buffer,
            sndbuf: plan.send_buffer,
            ttl: 64,
            dscp: 0,
            keep_alive: plan.keep_alive,
            user_timeout: 0,
            no_delay: plan.no_delay,
            path_mtu: plan.path_mtu,
            ecn: plan.ecn,
            super_packets: false,
        };
        let secret = Secret::of(Seed::Fixed(2 * seed + end as u64), "tcp");
        let mut engine = Engine::new(settings, secret);
        engine.set_applications(vec![Registered {
            name: "outside".into(),
            element: 0,
            application: Arc::new(Outside),
            tally: Tally::default(),
            ports: Vec::new(),
            peers: Vec::new(),
        }]);
        engine.listen(PORT, Listener { application: 0, added: false }).unwrap();
        Ours { end, engine, flow: None, opened: false, ahead }
    }
    /// The initial sequence number at a time, of a connection that this end opens, or of one from this port.
    fn first_number(&mut self, now: i64, from: Option<u16>) -> u32 {
        let flow = match from {
            None => {
                self.open(now);
                self.flow.unwrap()
            }
            Some(port) => {
                let flow = self.flow_with(PORT, port);
                let mut syn = [0; TcpHeader::LEN];
                (syn[12], syn[13]) = (5 << 4, 2);
                self.engine.input(flow, &mut syn, now).unwrap();
                flow
            }
        };
        self.engine.numbers(flow).unwrap().1.wrapping_sub(1)
    }
    fn flow_with(&self, local: u16, remote: u16) -> Flow {
        let [own, other] = [ADDRESSES[self.end], ADDRESSES[1 - self.end]];
        Flow { local: SocketAddrV4::new(own, local), remote: SocketAddrV4::new(other, remote) }
    }
}

impl Host for Ours {
    fn open(&mut self, now: i64) -> [u16; 2] {
        let peer = SocketAddrV4::new(ADDRESSES[1 - self.end], PORT);
        let flow = self.engine.connect(None, peer, 0, now + self.ahead).unwrap();
        (self.flow, self.opened) = (Some(flow), true);
        [flow.local.port(), flow.remote.port()]
    }
    /// As the element TCPStack does, behind CheckIPHeader.
    fn input(&mut self, packet: &[u8], now: i64) {
        let Ok(ip) = Ipv4Header::checked(packet, true).copied() else { return };
        let now = now + self.ahead;
        let mut rest = packet[ip.header_len()..usize::from(ip.total_len.get())].to_vec();
        if ip.protocol == protocol::ICMP {
            let error = IcmpError::read(&rest).unwrap();
            // Why an error has no effect does not matter here.
            let _ = self.engine.icmp_error(&error, now);
        } else if checksum_ok(ip.src.get(), ip.dst.get(), &rest) {
            let header = TcpHeader::from_prefix(&rest).unwrap();
            let address = Ipv4Addr::from_bits;
            let flow = Flow {
                local: SocketAddrV4::new(address(ip.dst.get()), header.dst_port.get()),
                remote: SocketAddrV4::new(address(ip.src.get()), header.src_port.get()),
            };
            self.flow.get_or_insert(flow);
            let notes = IpNotes { marked: ip.ecn() == 3, route: Arrived::Directly };
            let taken = match notes.marked {
                true => self.engine.input_noted(flow, &mut rest, now, &notes),
                false => self.engine.input(flow, &mut rest, now),
            };
            assert_eq!(taken, Ok(()));
        }
    }
    fn pass_time(&mut self, now: i64) {
        self.engine.pass_time(now + self.ahead);
    }
    fn next_timeout(&mut self, _: i64) -> Option<i64> {
        self.engine.next_timeout().map(|at| at - self.ahead)
    }
    fn packets(&mut self) -> Vec<Vec<u8>> {
        self.engine.packets().map(|p: Packet| p.data().to_vec()).collect()
    }
    fn with(&mut self, now: i64, f: &mut dyn FnMut(&mut dyn Socket)) -> bool {
        let now = now + self.ahead;
        self.flow.is_some_and(|flow| self.engine.with_stream(flow, now, |s| f(s)).is_ok())
    }
    fn state(&mut self) -> &'static str {
        let connections = self.engine.connections();
        assert!(connections.len() <= 1, "{connections:?}");
        let none = if self.opened || self.ending().is_some() { "CLOSED" } else { "LISTEN" };
        connections.first().map_or(none, |c| c.state)
    }
    fn ending(&self) -> Option<Ending> {
        let c = self.engine.counts();
        let [finished, reset] = [&c.finished, &c.reset].map(|n| n.get());
        let failed = c.refused.get() + c.timed_out.get() + c.unreachable.get();
        match (finished, reset, failed) {
            (0, 0, 0) => None,
            (1, 0, 0) => Some(Ending::Finished),
            (0, 1, 0) => Some(Ending::Reset),
            _ => Some(Ending::Failed),
        }
    }
    fn is_waiting(&mut self) -> bool {
        let c = self.engine.connections();
        matches!(&c[..], [c] if c.send == 0 && ["ESTABLISHED", "FIN-WAIT-2"].contains(&c.state))
    }
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let c = self.engine.counts();
        vec![
            ("opened by a cookie", c.cookies_accepted.get()),
            ("received with a mark", c.marked.get()),
            ("unanswered", c.unanswered.get()),
        ]
    }
    fn check(&mut self) {
        invariants::check(&self.engine);
    }
    fn check_end(&mut self) {
        self.check();
        let e = &self.engine;
        assert_eq!((e.size(), e.memory(), e.half_open()), (0, 0, 0), "{:?}", e.connections());
        assert_eq!(e.next_timeout(), None, "nothing is waited for");
    }
}

impl Socket for Stream<'_> {
    fn is_connected(&self) -> bool {
        Stream::is_connected(self)
    }
    fn available(&self) -> usize {
        Stream::available(self)
    }
    fn is_at_end(&self) -> bool {
        Stream::is_at_end(self)
    }
    fn read(&mut self, most: usize) -> Vec<u8> {
        let (first, second) = self.data();
        let mut data = [first, second].concat();
        data.truncate(most);
        self.consume(data.len());
        data
    }
    fn write(&mut self, data: &[u8]) -> usize {
        Stream::write(self, data)
    }
    fn close(&mut self) {
        Stream::close(self);
    }
    fn abort(&mut self) {
        Stream::abort(self);
    }
}

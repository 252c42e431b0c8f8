// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines that exchange packets over a simulated network.
#![allow(clippy::unwrap_used, clippy::needless_range_loop)]

mod defence;
mod ecn;
mod errors;
mod exchange;
mod noise;
mod route;
mod super_packets;
mod user;

use super::{Arrived, Ecn, Engine, Flow, IcmpError, IpNotes, Listener, Route, Settings};
use crate::application::{Application, Registered, Session, Tally};
use crate::engine::Stream;
use castanet_element::packet::Packet;
use castanet_element::spec::Reason;
use castanet_element::{Random, Secret, Seed};
use castanet_wire::icmp::IcmpHeader;
use castanet_wire::ipv4::{Ipv4Header, protocol};
use castanet_wire::tcp::{self, TcpHeader};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// What an application writes, and what it has read.
#[derive(Default)]
struct Data {
    write: Vec<u8>,
    read: Vec<u8>,
}

/// Writes its data, reads what comes, and closes.
#[derive(Clone, Default)]
struct User(Arc<Mutex<Data>>);

impl Application for User {
    fn run(&self, session: &mut Session, stream: &mut Stream<'_>) {
        let mut data = self.0.lock();
        let (first, second) = stream.data();
        let read = [first, second].concat();
        data.read.extend(&read);
        stream.consume(read.len());
        if stream.is_connected() {
            session.written += stream.write(&data.write[session.written as usize..]) as u64;
        }
        if stream.is_connected() && session.written as usize == data.write.len() {
            stream.close();
        }
    }
}

fn address(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + n as u8)
}

fn settings(n: usize) -> Settings {
    Settings {
        addresses: vec![address(n)],
        connections: 1000,
        backlog: 10,
        memory: 10_000_000,
        rcvbuf: 100_000,
        sndbuf: 100_000,
        ttl: 64,
        dscp: 0,
        keep_alive: 0,
        user_timeout: 300,
        no_delay: false,
        path_mtu: false,
        ecn: Ecn::Accept,
        super_packets: false,
    }
}

/// An engine whose port 80 has this application.
fn engine(n: usize, settings: Settings, application: impl Application + 'static) -> Engine {
    let mut e = Engine::new(settings, Secret::of(Seed::Fixed(n as u64), "tcp"));
    e.set_applications(vec![Registered {
        name: "user".into(),
        element: 0,
        application: Arc::new(application),
        tally: Tally::default(),
        ports: vec![],
        peers: vec![],
    }]);
    e.listen(80, Listener { application: 0, added: false }).unwrap();
    e
}

/// Gives an IP packet to an engine.
fn give(e: &mut Engine, packet: &[u8], now: i64) -> Result<(), Reason> {
    let ip = *Ipv4Header::checked(packet, true).unwrap();
    if ip.protocol == protocol::ICMP {
        let error = IcmpError::read(&packet[ip.header_len()..]).ok_or(Reason::NotAnswered)?;
        return e.icmp_error(&error, now);
    }
    let mut segment = packet[ip.header_len()..usize::from(ip.total_len.get())].to_vec();
    if !tcp::checksum_ok(ip.src.get(), ip.dst.get(), &segment) {
        return Err(Reason::BadTransport);
    }
    let header = *TcpHeader::from_prefix(&segment).unwrap();
    let end = |ip: u32, port: u16| SocketAddrV4::new(Ipv4Addr::from_bits(ip), port);
    let flow = Flow {
        local: end(ip.dst.get(), header.dst_port.get()),
        remote: end(ip.src.get(), header.src_port.get()),
    };
    let route = Arrived::of(&packet[Ipv4Header::LEN..ip.header_len()], *flow.remote.ip());
    let notes = IpNotes { marked: ip.ecn() == 3, route };
    match notes {
        IpNotes { marked: false, route: Arrived::Directly } => e.input(flow, &mut segment, now),
        _ => e.input_noted(flow, &mut segment, now, &notes),
    }
}

fn header(packet: &[u8]) -> TcpHeader {
    *TcpHeader::from_prefix(&packet[20..]).unwrap()
}

fn packets(e: &mut Engine) -> Vec<Vec<u8>> {
    e.packets().map(|p: Packet| p.data().to_vec()).collect()
}

/// The ICMP error of a router about a packet. `rest` is the second word of the message.
fn icmp_about(packet: &[u8], kind: u8, code: u8, rest: u32) -> Vec<u8> {
    let about = Ipv4Header::from_prefix(packet).unwrap();
    let router = Ipv4Addr::new(10, 0, 0, 99).to_bits();
    let ip = Ipv4Header::new(protocol::ICMP, router, about.src.get(), 20 + 8 + 28, 64);
    let message = IcmpHeader::new(kind, code, rest);
    [&ip.to_bytes()[..], &message.to_bytes(), &packet[..28]].concat()
}

/// The same about a packet with IP options, which are quoted as well.
fn icmp_about_all(packet: &[u8], kind: u8, code: u8, rest: u32) -> Vec<u8> {
    let header = Ipv4Header::from_prefix(packet).unwrap().header_len();
    let (mut error, more) = (icmp_about(packet, kind, code, rest), header - Ipv4Header::LEN);
    error.extend(&packet[28..28 + more]);
    let ip = Ipv4Header::from_prefix_mut(&mut error).unwrap();
    ip.total_len = castanet_wire::Be16::new(ip.total_len.get() + more as u16);
    ip.set_checksum20();
    error
}

/// Marks a packet: it has met congestion (RFC 3168, section 5).
fn mark(packet: &mut [u8]) {
    let ip = Ipv4Header::from_prefix_mut(packet).unwrap();
    ip.tos |= 3;
    ip.set_checksum20();
}

/// A network between two engines.
struct Network {
    ends: [Engine; 2],
    /// The largest packet that passes. Larger ones may be fragmented, or their sender gets an ICMP error.
    mtu: usize,
    way: BTreeMap<(i64, u64), (usize, Vec<u8>)>,
    now: i64,
    count: u64,
    random: Random,
    /// Of the packets that may be marked, every so many is; 0 for none.
    marks: usize,
    /// The type of service and the TCP flags of each packet, and whether it has data.
    seen: Vec<(u8, u8, bool)>,
    /// The percentages of packets that are lost, sent twice, and corrupted; and the most delay in milliseconds.
    faults: [u64; 4],
}

impl Network {
    fn new(ends: [Engine; 2], seed: u64, faults: [u64; 4]) -> Network {
        let random = Random::new(seed, "network");
        let (way, seen, now) = (BTreeMap::new(), Vec::new(), 1_000_000_000_000);
        Network { ends, mtu: 1500, way, now, count: 0, random, marks: 0, seen, faults }
    }
    fn flush(&mut self) {
        let [loss, twice, corrupt, delay] = self.faults;
        for from in 0..2 {
            for mut packet in packets(&mut self.ends[from]) {
                let (tos, header) = (packet[1], header(&packet));
                self.seen.push((tos, header.flags, packet.len() > 20 + header.header_len()));
                if self.marks > 0 && tos & 3 == 2 && self.seen.len().is_multiple_of(self.marks) {
                    mark(&mut packet);
                }
                let fits =
                    packet.len() <= self.mtu || !Ipv4Header::from_prefix(&packet).unwrap().dont_fragment();
                let (to, packet) = if fits {
                    (1 - from, packet)
                } else {
                    (from, icmp_about(&packet, 3, 4, self.mtu as u32))
                };
                for _ in 0..1 + u64::from(self.random.below(100) < twice) {
                    let mut packet = packet.clone();
                    if self.random.below(100) < loss {
                        continue;
                    }
                    if self.random.below(100) < corrupt {
                        let at = 20 + self.random.below(packet.len() as u64 - 20) as usize;
                        packet[at] ^= 1 + self.random.below(255) as u8;
                    }
                    let at = self.now + 1_000_000 * (5 + self.random.below(delay + 1) as i64);
                    self.count += 1;
                    self.way.insert((at, self.count), (to, packet));
                }
            }
        }
    }
    /// Lets time pass until nothing is left to be done, or for at most so many seconds.
    fn run(&mut self, seconds: i64) {
        let end = self.now + seconds * 1_000_000_000;
        self.flush();
        loop {
            let arrival = self.way.first_key_value().map(|(k, _)| k.0);
            let times = [arrival, self.ends[0].next_timeout(), self.ends[1].next_timeout()];
            let Some(next) = times.into_iter().flatten().min().filter(|t| *t <= end) else { break };
            self.now = next.max(self.now);
            while let Some(first) = self.way.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, packet) = first.remove();
                let _ = give(&mut self.ends[to], &packet, self.now);
                self.flush();
            }
            self.ends.iter_mut().for_each(|e| e.pass_time(self.now));
            self.flush();
        }
        self.now = end;
    }
    /// Opens a connection of engine 0 to port 80 of engine 1.
    fn connect(&mut self) -> Flow {
        let peer = SocketAddrV4::new(address(1), 80);
        let now = self.now;
        self.ends.iter_mut().for_each(|e| e.pass_time(now));
        self.ends[0].connect(None, peer, 0, now).unwrap()
    }
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed, "bytes");
    (0..n).map(|_| random.next_u64() as u8).collect()
}

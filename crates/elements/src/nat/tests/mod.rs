// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared parts of the tests of rewriters: packets, an oracle for checksums, and several elements at once.
#![allow(clippy::unwrap_used, clippy::panic)]

mod addresses;
mod agreement;
mod bounds;
mod fragments;
mod ftp;
mod icmp;
mod model;
mod offload;
mod ports;
mod several;
mod swap;

use castanet_element::build::Wiring;
use castanet_element::kit::{Site, packet};
use castanet_element::notify::Notes;
use castanet_element::prelude::*;
use castanet_element::run_loop::{self, Core, Edge, Internals as _};
use castanet_element::{Clock, Info, Messages};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use std::sync::Arc;

/// A packet with its IP header marked.
pub fn ip(data: &[u8]) -> Packet {
    let mut p = packet(data);
    let header = data.first().map_or(20, |b| usize::from(b & 15) * 4);
    p.set_network_header(0, header);
    p
}

pub fn udp(src: [u8; 4], sport: u16, dst: [u8; 4], dport: u16) -> Packet {
    let mut data = Vec::new();
    PacketBuilder::ipv4(src, dst, 64).udp(sport, dport).write(&mut data, b"hello").unwrap();
    ip(&data)
}

/// A TCP segment with flags as letters: S, A, F, R.
pub fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: &str, seq: u32, ack: u32, text: &[u8]) -> Packet {
    let mut b = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, seq, 1000);
    for f in flags.chars() {
        b = match f {
            'S' => b.syn(),
            'A' => b.ack(ack),
            'F' => b.fin(),
            _ => b.rst(),
        };
    }
    let mut data = Vec::new();
    b.write(&mut data, text).unwrap();
    ip(&data)
}

/// Shows the addresses and ports of a packet, after verifying its checksums.
pub fn show(p: &Packet) -> String {
    let s = SlicedPacket::from_ip(p.data()).unwrap();
    let Some(etherparse::NetSlice::Ipv4(net)) = &s.net else { panic!("no IPv4") };
    let h = net.header().to_header();
    assert_eq!(h.header_checksum, h.calc_header_checksum(), "IP checksum");
    let (a, b) = (std::net::Ipv4Addr::from(h.source), std::net::Ipv4Addr::from(h.destination));
    match &s.transport {
        Some(TransportSlice::Udp(u)) => {
            let t = u.to_header();
            if t.checksum != 0 {
                assert_eq!(t.checksum, t.calc_checksum_ipv4(&h, u.payload()).unwrap(), "UDP checksum");
            }
            format!("{a}:{} > {b}:{}", t.source_port, t.destination_port)
        }
        Some(TransportSlice::Tcp(u)) => {
            let t = u.to_header();
            assert_eq!(t.checksum, t.calc_checksum_ipv4(&h, u.payload()).unwrap(), "TCP checksum");
            format!("{a}:{} > {b}:{}", t.source_port, t.destination_port)
        }
        Some(TransportSlice::Icmpv4(i)) => {
            assert_eq!(castanet_wire::checksum::sum(i.slice()), 0xffff, "ICMP checksum");
            format!("{a} > {b} icmp {}", i.type_u8())
        }
        _ => format!("{a} > {b}"),
    }
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

struct Alone;
impl Wiring for Alone {
    fn note(&self, _: u32, _: Capability) -> Option<Note> {
        None
    }
    fn upstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
        (Vec::new(), true)
    }
    fn downstream(&self, _: u32, _: usize, _: Capability) -> (Vec<u32>, bool) {
        (Vec::new(), true)
    }
}

struct Silent;
impl Messages for Silent {
    fn message(&self, _: &str) {}
    fn stop(&self, _: u32) {}
    fn wake(&self, _: u32, _: u32) {}
}

/// Several elements that can refer to each other by name, under simulated time.
pub struct Rig {
    site: Site,
    names: Names,
    elements: Vec<(&'static str, &'static str)>,
    core: Option<Core>,
}

impl Rig {
    /// Makes a rig for elements that are given by name and class.
    pub fn new(elements: &[(&'static str, &'static str)]) -> Rig {
        let mut names = Names::new();
        for (i, (n, c)) in elements.iter().enumerate() {
            names.define_element(n, i, c);
        }
        Rig { site: Site::default(), names, elements: elements.to_vec(), core: None }
    }
    fn number(&self, name: &str) -> u32 {
        self.elements.iter().position(|e| e.0 == name).unwrap() as u32
    }
    pub fn build<T: Build>(
        &mut self,
        name: &str,
        config: &str,
        ports: (usize, usize),
    ) -> Result<T, Vec<String>> {
        let me = self.number(name);
        let push = [true; 8];
        let mut cx = self.site.cx(T::SPEC, config, &self.names, &push[..ports.0], &push[..ports.1]);
        (cx.me, cx.name) = (me, name);
        let (args, errors) = T::Args::parse(config, cx.arg_cx());
        let args = args.ok_or_else(|| errors.into_iter().map(|e| e.message).collect::<Vec<_>>())?;
        T::build(args, &mut cx).map_err(|e| e.0.into_iter().map(|e| e.message).collect())
    }
    pub fn init<T: Lifecycle>(&mut self, name: &str, e: &mut T) -> Result<(), ElementError> {
        let me = self.number(name);
        let core = self.core.get_or_insert_with(|| {
            let info = self.elements.iter().map(|(n, c)| Info {
                name: (*n).into(),
                class: (*c).into(),
                ..Info::default()
            });
            let (names, clock) = (Arc::new(self.names.clone()), Clock::simulated(1_000_000_000_000));
            Core::new(info.collect(), names, Notes::new(1), Arc::new(Silent), clock)
        });
        run_loop::initialise(core, me, &Alone, false, |cx| e.initialise(cx)).0
    }
    pub fn with<R>(
        &mut self,
        name: &str,
        outputs: usize,
        f: impl FnOnce(&mut Cx<'_>) -> R,
    ) -> (R, Vec<(usize, Packet)>) {
        let me = self.number(name);
        let mut edges: Vec<Edge> = (0..outputs).map(|_| Edge::default()).collect();
        let out = f(&mut Cx::new(&mut edges, self.core.as_mut().unwrap(), None, me, 0));
        let each = edges.iter_mut().enumerate();
        (out, each.flat_map(|(i, e)| e.batch.drain().map(move |p| (i, p)).collect::<Vec<_>>()).collect())
    }
    pub fn push<T: Element>(
        &mut self,
        name: &str,
        e: &mut T,
        port: usize,
        packets: Vec<Packet>,
    ) -> Vec<(usize, Packet)> {
        self.with(name, 4, |cx| e.push(port, &mut packets.into_iter().collect(), cx)).1
    }
    pub fn read<T: Object>(&mut self, name: &str, e: &mut T, handler: &str) -> String {
        self.with(name, 4, |cx| e.read_handler(handler, "", cx)).0.unwrap().unwrap()
    }
    pub fn dropped(&self, name: &str, reason: Reason) -> u64 {
        self.core.as_ref().unwrap().drops(self.number(name), reason)
    }
}

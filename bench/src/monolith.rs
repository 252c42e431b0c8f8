// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hand-written forwarder: the work of the Figure 8 path in one function, for two interfaces.

mod source;

use crate::path::{self, ADDRESS, BAD_SOURCES, ETHER, GATEWAYS, MTU, QUEUE};
use castanet_element::Random;
use castanet_packet::{Packet, PacketType};
use castanet_tables::{Fifo, Prefix, Route, StaticTable};
use source::{AnyOrder, Frame, Order, SIXTY_FOUR, Source, receive_one};
use std::collections::HashMap;

/// The length of the Ethernet header.
pub(crate) const ETHER_LEN: usize = 14;

/// The precomputed next hop of a route.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Hop {
    header: [u8; ETHER_LEN],
    /// The output of the route table: interface 1 or 2, or [`UNKNOWN`].
    port: u8,
}

/// The number of hops: one for each route.
const HOPS: usize = 8;
/// The port of hops without a precomputed Ethernet address. Either the address depends on the packet, or the gateway's
/// address is not known yet, or the route leads to the router itself.
const UNKNOWN: u8 = 0;

/// An interface: its queue, and its addresses.
pub(crate) struct Interface {
    pub address: u32,
    pub ether: [u8; 6],
    /// The paint of packets that enter by this interface.
    pub color: u8,
    /// Ethernet addresses of hosts and gateways.
    pub neighbours: HashMap<u32, [u8; 6]>,
    /// Packets received in the current call of [`Monolith::receive`], to be queued for this interface.
    pub ready: Vec<Packet>,
    queue: Fifo<Packet>,
}

/// Counts of packets by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets queued for a link, including fragments and ARP replies.
    pub queued: u64,
    /// Packets dropped because a queue was full.
    pub overflowed: u64,
    /// ARP requests answered.
    pub answered: u64,
    /// ARP replies processed.
    pub learned: u64,
    /// Frames that are neither IP nor ARP, or not for this router.
    pub other: u64,
    /// Packets with an invalid IP header or source address.
    pub bad: u64,
    /// Packets for the router itself.
    pub host: u64,
    /// Link-level broadcasts.
    pub broadcasts: u64,
    /// Packets that require an ICMP redirect, and are forwarded.
    pub redirects: u64,
    /// Packets that require an ICMP parameter problem.
    pub bad_options: u64,
    /// Packets that require an ICMP time exceeded.
    pub expired: u64,
    /// Packets that require an ICMP destination unreachable, because they must not be fragmented.
    pub too_big: u64,
    /// Packets whose next hop has no known Ethernet address.
    pub unresolved: u64,
}

/// The forwarder.
///
/// It processes frames as the configuration of the Figure 8 path does, and sends identical frames, with two exceptions.
/// ICMP errors are counted but not sent. Packets whose next hop has no known Ethernet address are dropped instead of
/// held.
///
/// Nearly all packets take a fast path; all others take the slow path, which is written for readability.
pub struct Monolith {
    sources: [Source; 2],
    colors: [u8; 2],
    /// The configured routes: gateway and port.
    pub(crate) routes: StaticTable,
    /// The same prefixes as in `routes`, but with `gw` as the index of the next hop in `hops`.
    fast: StaticTable,
    hops: [Hop; HOPS],
    pub(crate) interfaces: [Interface; 2],
    /// The time for timestamp options, in milliseconds since midnight UT.
    pub(crate) time: u32,
    pub(crate) counts: Counts,
    /// A buffer for the packets that [`Monolith::send`] takes from a queue.
    packets: Vec<Packet>,
}

impl Monolith {
    /// Creates a forwarder with the addresses and routes of the path. The Ethernet addresses of the gateways are
    /// preset. Each source has its own frames. With `random`, a source sends its frames in random order. `colors` has
    /// the paint of each source's packets, usually the number of the interface that they enter.
    pub fn new(frames: [&[Vec<u8>]; 2], random: bool, colors: [u8; 2]) -> Monolith {
        let [f0, f1] = frames;
        let generator = |name| random.then(|| Random::new(1, name));
        let interface = |i: usize, color| Interface {
            address: ADDRESS.get(i).copied().unwrap_or(0),
            ether: ETHER.get(i).copied().unwrap_or_default(),
            color,
            neighbours: HashMap::new(),
            ready: Vec::with_capacity(512),
            queue: Fifo::new(QUEUE),
        };
        let mut this = Monolith {
            sources: [Source::new(f0, generator("source0")), Source::new(f1, generator("source1"))],
            colors,
            routes: path::routes(),
            fast: StaticTable::new(),
            hops: [Hop { header: [0; ETHER_LEN], port: UNKNOWN }; HOPS],
            interfaces: [interface(0, 1), interface(1, 2)],
            time: 0,
            counts: Counts::default(),
            packets: Vec::with_capacity(512),
        };
        for (i, gateways) in GATEWAYS.into_iter().enumerate() {
            gateways.into_iter().for_each(|g| this.learn(i, g, path::ether(i, g)));
        }
        this
    }

    /// The counts of packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Adds the Ethernet address of a next hop.
    pub fn learn(&mut self, interface: usize, address: u32, ether: [u8; 6]) {
        if let Some(i) = self.interfaces.get_mut(interface) {
            i.neighbours.insert(address, ether);
        }
        let prefixes: Vec<(Prefix, Route)> = self.routes.iter().collect();
        self.fast.clear();
        for (n, ((prefix, Route { gw, port }), hop)) in prefixes.into_iter().zip(&mut self.hops).enumerate() {
            let out = (port as usize).wrapping_sub(1);
            let known = self.interfaces.get(out).and_then(|i| Some((i.ether, *i.neighbours.get(&gw)?)));
            let mut header = [0; ETHER_LEN];
            if let Some((own, to)) = known {
                header = ether_header(to, own);
            }
            *hop = Hop { header, port: if known.is_some() { port as u8 } else { UNKNOWN } };
            // The prefixes come from `routes`, so there are no duplicates.
            let _ = self.fast.insert(prefix, Route { gw: n as u32, port });
        }
    }

    /// Receives `batch` packets from each source in turn, and sends up to `batch` packets from each queue.
    #[inline]
    pub fn turn(&mut self, batch: usize) {
        for source in 0..2 {
            self.receive(source, batch);
        }
        for out in 0..2 {
            self.send(out, batch, |_| {});
        }
    }

    /// Receives packets from a source, and queues those to be forwarded.
    #[inline]
    pub fn receive(&mut self, source: usize, batch: usize) {
        let Some(&color) = self.colors.get(source) else { return };
        let mut left = batch;
        while let Some(p) = self.forward_some(source, color, &mut left) {
            self.examine(p, source, color);
        }
        for i in &mut self.interfaces {
            if i.ready.is_empty() {
                continue;
            }
            self.counts.queued += i.queue.extend_from(&mut i.ready) as u64;
            if !i.ready.is_empty() {
                self.counts.overflowed += i.ready.len() as u64;
                i.ready.clear();
            }
        }
    }

    /// Takes up to `left` packets from a source and forwards them on the fast path. Stops at the first packet
    /// that needs the slow path, and returns that packet. `left` is then the number of packets still to take.
    fn forward_some(&mut self, source: usize, color: u8, left: &mut usize) -> Option<Packet> {
        let Source { frames, order } = self.sources.get_mut(source)?;
        let frames = &frames[..];
        let (fast, hops, interfaces) = (&self.fast, &self.hops, &mut self.interfaces);
        match order {
            AnyOrder::InTurn(order) => forward_many(frames, order, fast, hops, interfaces, color, left),
            AnyOrder::AtRandom(order) => match <&[Frame; SIXTY_FOUR]>::try_from(frames) {
                Ok(frames) => forward_many(frames, order, fast, hops, interfaces, color, left),
                Err(_) => forward_many(frames, &mut order.random, fast, hops, interfaces, color, left),
            },
        }
    }

    /// Sends up to `batch` packets of a queue: passes each to `show` and drops it.
    #[inline]
    pub fn send(&mut self, out: usize, batch: usize, mut show: impl FnMut(&Packet)) {
        let Some(i) = self.interfaces.get_mut(out) else { return };
        i.queue.drain_into(batch, &mut self.packets);
        self.packets.iter().for_each(&mut show);
        self.packets.clear();
    }
}

#[inline(never)]
fn forward_many<O: Order>(
    frames: &O::Frames,
    order: &mut O,
    routes: &StaticTable,
    hops: &[Hop; HOPS],
    interfaces: &mut [Interface; 2],
    color: u8,
    left: &mut usize,
) -> Option<Packet> {
    // Packets to an unknown hop, and those that would leave by their input interface, take the slow path.
    let ports = 0b110 & !(1 << (color & 7));
    for i in (0..*left).rev() {
        let (mut p, len) = receive_one(frames, order)?;
        match forward(routes, hops, &mut p, len, ports) {
            // The index is computed without a branch, which would often be mispredicted: ports 1 and 2 are equally
            // likely.
            Some(port) => interfaces[usize::from(port >> 1 & 1)].ready.push(p),
            None => {
                p.truncate(len);
                *left = i;
                return Some(p);
            }
        }
    }
    None
}

/// The fast path: forwards a packet in place and returns its output port. A packet that needs the slow path
/// is left unchanged, and `None` is returned. `len` is the length of the frame. `ports` has a bit for each
/// port that the packet may leave by without a redirect.
#[inline(always)]
fn forward(routes: &StaticTable, hops: &[Hop; HOPS], p: &mut Packet, len: usize, ports: u32) -> Option<u8> {
    let kind = p.packet_type();
    let frame = p.data_mut().first_chunk_mut::<{ ETHER_LEN + 20 }>()?;
    let (ether, h) = frame.split_first_chunk_mut::<ETHER_LEN>()?;
    let h = h.first_chunk_mut::<20>()?;
    // The IP header as three little-endian words: version to fragment offset (8 bytes), time to live to source (8),
    // destination (4).
    let ([start, _], _) = h.as_chunks::<8>() else { return None };
    let start = u64::from_le_bytes(*start);
    let middle = u64::from_le_bytes(*h.split_at(8).1.first_chunk()?);
    let dst = u32::from_le_bytes(*h.split_at(16).1.first_chunk()?);
    let total = (start.swap_bytes() >> 32) as usize & 0xffff;
    let end = total + ETHER_LEN;
    // The tests of RFC 1812 section 5.2.2, then those of the output path.
    let good = ether[12..] == [0x08, 0x00]
        && start as u8 == 0x45
        && (20..=MTU).contains(&total)
        && end <= len
        && sum_is_right(start, middle, dst)
        && !BAD_SOURCES.contains(&((middle >> 32) as u32).swap_bytes());
    if !good || middle as u8 <= 1 || kind != PacketType::Host {
        return None;
    }
    let dst = dst.swap_bytes();
    let hop = &hops[routes.lookup(dst)?.gw as usize % HOPS];
    if ports >> (hop.port & 7) & 1 == 0 {
        return None;
    }
    *ether = hop.header;
    // Decrements the time to live, and updates the checksum (RFC 1624). Both are read in little-endian order, in which
    // the time to live is the low byte of its word. So the checksum grows by 1, with end-around carry.
    let word = middle as u32;
    let carry = u32::from(word >= 0xfffe_0000) << 16;
    let word = word.wrapping_add(0xffff).wrapping_add(carry);
    *h.split_at_mut(8).1.first_chunk_mut()? = word.to_le_bytes();
    // Removes padding after the packet.
    p.truncate(end);
    Some(hop.port)
}

/// Whether the checksum of an IP header without options is correct: the sum of its words is 0xffff (RFC 1071).
#[inline(always)]
fn sum_is_right(start: u64, middle: u64, dst: u32) -> bool {
    let (sum, carry) = start.overflowing_add(middle);
    let (sum, again) = sum.overflowing_add(u64::from(dst) + u64::from(carry));
    let sum = sum + u64::from(again);
    let half = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    half.wrapping_add(half.rotate_left(16)) >= 0xffff_0000
}

/// Builds an Ethernet header for IP.
pub(crate) fn ether_header(to: [u8; 6], from: [u8; 6]) -> [u8; ETHER_LEN] {
    let mut header = [0; ETHER_LEN];
    header.iter_mut().zip(to.into_iter().chain(from).chain([0x08, 0x00])).for_each(|(h, b)| *h = b);
    header
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slow path of the monolith: processes all packets that the fast path does not forward, step by step as in
//! Figure 8.

use crate::fragment::fragment;
use crate::monolith::{ETHER_LEN, Interface, Monolith, ether_header};
use crate::options::{Filled, fill};
use crate::path::{ADDRESS, BAD_SOURCES, MTU};
use castanet_packet::{Packet, PacketType};
use castanet_tables::Route;
use castanet_wire::{Ipv4Header, checksum};

impl Monolith {
    /// Processes a packet from a source.
    #[cold]
    #[inline(never)]
    pub(crate) fn examine(&mut self, p: Packet, source: usize, color: u8) {
        let word =
            |at: usize| p.data().get(at..).and_then(|d| d.first_chunk::<2>()).map(|w| u16::from_be_bytes(*w));
        match (word(12), word(20)) {
            (Some(0x0806), Some(1)) => self.answer(p.data(), source),
            (Some(0x0806), Some(2)) => self.learn_from(p.data(), source),
            (Some(0x0800), _) => {
                let kind = p.packet_type();
                let packet = p.data().get(ETHER_LEN..).unwrap_or_default();
                self.ip(packet, kind, color);
            }
            _ => self.counts.other += 1,
        }
    }

    /// Answers an ARP request for one of the router's addresses (RFC 826).
    fn answer(&mut self, frame: &[u8], source: usize) {
        let Some(i) = self.interfaces.get_mut(source) else { return };
        let asked = frame.get(38..42) == Some(&i.address.to_be_bytes())
            && frame.get(14..20) == Some(&[0, 1, 8, 0, 6, 4]);
        let (Some(ether), Some(ip)) = (frame.get(22..28), frame.get(28..32)) else {
            self.counts.other += 1;
            return;
        };
        if !asked {
            self.counts.other += 1;
            return;
        }
        let kind = [8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
        let reply = [ether, &i.ether, &kind, &i.ether, &i.address.to_be_bytes(), ether, ip].concat();
        i.ready.extend(Packet::copy_of(&reply));
        self.counts.answered += 1;
    }

    fn learn_from(&mut self, frame: &[u8], source: usize) {
        let ether = frame.get(22..).and_then(|f| f.first_chunk::<6>()).filter(|e| e[0] & 1 == 0);
        let ip = frame.get(28..).and_then(|f| f.first_chunk::<4>());
        match (ether, ip) {
            (Some(&ether), Some(&ip)) => {
                self.learn(source, u32::from_be_bytes(ip), ether);
                self.counts.learned += 1;
            }
            _ => self.counts.other += 1,
        }
    }

    /// Checks an IP packet (RFC 1812 section 5.2.2) and routes it.
    fn ip(&mut self, bytes: &[u8], kind: PacketType, color: u8) {
        let Ok(header) = Ipv4Header::checked(bytes, true) else {
            self.counts.bad += 1;
            return;
        };
        let dst = header.dst.get();
        if BAD_SOURCES.contains(&header.src.get()) && !ADDRESS.contains(&dst) {
            self.counts.bad += 1;
            return;
        }
        let mut packet = bytes.get(..usize::from(header.total_len.get())).unwrap_or_default().to_vec();
        match self.routes.lookup(dst) {
            None | Some(Route { port: 0, .. }) => self.counts.host += 1,
            Some(Route { gw, port }) => {
                let hop = if gw == 0 { dst } else { gw };
                self.way_out(&mut packet, port as usize - 1, hop, kind, color);
            }
        }
    }

    /// Processes a packet on the output path of interface `out`: queues it, or drops and counts it.
    fn way_out(&mut self, packet: &mut [u8], out: usize, hop: u32, kind: PacketType, color: u8) {
        let Some(i) = self.interfaces.get_mut(out) else { return };
        if matches!(kind, PacketType::Broadcast | PacketType::Multicast) {
            self.counts.broadcasts += 1;
            return;
        }
        if i.color == color {
            self.counts.redirects += 1;
        }
        let header_len = Ipv4Header::from_prefix(packet).map_or(0, Ipv4Header::header_len);
        match fill(packet.get_mut(20..header_len).unwrap_or_default(), i.address, &ADDRESS, self.time) {
            Filled::Unchanged => {}
            Filled::Changed => set_checksum(packet, header_len),
            Filled::Bad => {
                self.counts.bad_options += 1;
                return;
            }
        }
        if let Some(h) = Ipv4Header::from_prefix_mut(packet) {
            if h.ttl <= 1 {
                self.counts.expired += 1;
                return;
            }
            h.decrement_ttl();
        }
        let ether = match hop {
            u32::MAX => Some([0xff; 6]),
            _ => i.neighbours.get(&hop).copied(),
        };
        if packet.len() > MTU {
            let Some(fragments) = fragment(packet, MTU) else {
                self.counts.too_big += 1;
                return;
            };
            for f in fragments {
                queue(i, ether, &f, &mut self.counts.unresolved);
            }
        } else {
            queue(i, ether, packet, &mut self.counts.unresolved);
        }
    }
}

/// Adds an Ethernet header to an IP packet and queues it.
fn queue(i: &mut Interface, ether: Option<[u8; 6]>, packet: &[u8], unresolved: &mut u64) {
    match ether {
        Some(to) => i.ready.extend(Packet::copy_of(&[&ether_header(to, i.ether), packet].concat())),
        None => *unresolved += 1,
    }
}

fn set_checksum(packet: &mut [u8], header_len: usize) {
    if let Some(h) = Ipv4Header::from_prefix_mut(packet) {
        h.checksum.set(0);
    }
    let sum = packet.get(..header_len).map_or(0, checksum::checksum);
    if let Some(h) = Ipv4Header::from_prefix_mut(packet) {
        h.checksum.set(sum);
    }
}

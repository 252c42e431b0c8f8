// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the network to packets: it takes options out of SYNs, and translates segment sizes, ports and sequence numbers.

use super::schedule::Path;
use super::segment::{MSS, SACK, Segment, for_each_option, number};
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::tcp::{TcpHeader, flag, set_checksum};
use castanet_wire::{Be16, Be32};

pub struct Middlebox {
    stripped: Vec<u8>,
    clamp: Option<u16>,
    /// The ports of each end, its own one and the one that it takes for the other's. They differ if both ends have chosen their own.
    pub ports: Option<[[u16; 2]; 2]>,
    /// The sequence numbers of an end that are seen by the other one begin at this number.
    pub first: Option<(usize, u32)>,
    shift: u32,
}

impl Middlebox {
    pub fn new(path: &Path) -> Middlebox {
        let stripped = path.stripped.clone();
        Middlebox { stripped, clamp: path.clamp, ports: None, first: None, shift: 0 }
    }

    /// Changes a packet of an end.
    pub fn change(&mut self, from: usize, packet: &mut [u8]) {
        let s = Segment::read(packet);
        let (ip, segment) = packet.split_at_mut(Ipv4Header::LEN);
        let ip = *Ipv4Header::from_prefix(ip).unwrap();
        let (header, _) = segment.split_at_mut(s.header.header_len());
        if s.has(flag::SYN) {
            self.change_syn(header);
        }
        let fields = TcpHeader::from_prefix_mut(header).unwrap();
        if let Some(ports) = self.ports {
            let [to, back] = ports[1 - from];
            (fields.src_port, fields.dst_port) = (Be16::new(back), Be16::new(to));
        }
        match self.first {
            Some((end, first)) if end == from => {
                if s.has(flag::SYN) {
                    self.shift = first.wrapping_sub(s.seq());
                }
                fields.seq = Be32::new(s.seq().wrapping_add(self.shift));
            }
            Some(_) if s.has(flag::ACK) => {
                fields.ack = Be32::new(s.ack().wrapping_sub(self.shift));
                for_each_option(header, |kind, option| {
                    if kind == SACK {
                        let edges = option[2..].chunks_mut(4);
                        edges.for_each(|e| {
                            let edge = number(e).wrapping_sub(self.shift);
                            e.copy_from_slice(&edge.to_be_bytes());
                        });
                    }
                });
            }
            // A RST about a segment without an acknowledgement has no number of the other end, and one about another segment has
            // the number that this segment has acknowledged, which is in this end's numbers.
            _ => {}
        }
        set_checksum(ip.src.get(), ip.dst.get(), segment);
    }
    fn change_syn(&self, header: &mut [u8]) {
        for_each_option(header, |kind, option| {
            if self.stripped.contains(&kind) {
                option.fill(1);
            }
            if let (MSS, Some(clamp)) = (kind, self.clamp) {
                let mss = clamp.min(number(&option[2..]) as u16);
                option[2..].copy_from_slice(&mss.to_be_bytes());
            }
        });
    }
}

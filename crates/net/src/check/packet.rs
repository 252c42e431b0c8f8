// SPDX-License-Identifier: MIT OR Apache-2.0
//! A symbolic packet: an ordinary IPv4 packet to one destination. All that is not known about it may have any value.

use castanet_classify::{OffsetBase, Program, Target};
use castanet_wire::ether::EtherAddr;
use std::collections::BTreeSet;

/// The length of an Ethernet header.
pub const ETHERNET: i32 = 14;

/// What is known about a packet at one point of a router.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Symbolic {
    /// The destination.
    pub dst: u32,
    /// Where the IP header starts, in bytes from the start of the packet.
    pub ip_at: i32,
    /// The destination annotation; `None` if it may have any value.
    pub annotation: Option<u32>,
    /// The paint; `None` if it may have any value.
    pub paint: Option<u8>,
    /// The next hop for which an Ethernet header was made.
    pub next_hop: Option<u32>,
    /// The Ethernet destination, if the configuration gives it.
    pub ether: Option<EtherAddr>,
}

impl Symbolic {
    /// Returns a packet as a device receives it.
    pub fn arriving(dst: u32, ip_at: i32) -> Symbolic {
        Symbolic { dst, ip_at, annotation: Some(dst), paint: Some(0), next_hop: None, ether: None }
    }

    /// Returns a byte of the packet, by its offset from the IP header, and the mask of its known bits.
    fn byte(&self, from_ip: i32) -> (u8, u8) {
        let known = |b: u8| (b, 0xff);
        let [a, b, c, d] = self.dst.to_be_bytes();
        match from_ip {
            0 => known(0x45),
            // Not a fragment; the flag DF may be set.
            6 => (0, 0xbf),
            7 => known(0),
            16 => known(a),
            17 => known(b),
            18 => known(c),
            19 => known(d),
            -2 if self.ip_at >= ETHERNET => known(8),
            -1 if self.ip_at >= ETHERNET => known(0),
            _ => (0, 0),
        }
    }

    /// Returns the outputs of a classifier that packets may take, and whether it may drop them.
    pub fn classify(&self, program: &Program) -> (BTreeSet<usize>, bool) {
        let (mut outputs, mut dropped) = (BTreeSet::new(), false);
        let mut seen = BTreeSet::new();
        let mut open = vec![program.root()];
        while let Some(at) = open.pop() {
            let step = match at {
                Target::Output(out) => {
                    match out.port() {
                        Some(port) => {
                            outputs.insert(port);
                        }
                        None => dropped = true,
                    }
                    continue;
                }
                Target::Step(n) if !seen.insert(n) => continue,
                Target::Step(n) => program.steps().get(n as usize),
            };
            let Some(step) = step else { continue };
            let offset = i32::try_from(step.offset).unwrap_or(i32::MAX);
            // The offset of the word from the IP header; `None` in the transport header, of which nothing is known.
            let from_ip = match program.kind() {
                OffsetBase::Data => Some(offset.saturating_sub(self.ip_at)),
                OffsetBase::Ip if offset >= 512 => None,
                OffsetBase::Ip if offset >= 256 => Some(offset - 256),
                OffsetBase::Ip => Some(offset - 2 - ETHERNET),
            };
            let (mut value, mut mask) = (0u32, 0u32);
            for i in 0..4 {
                let (byte, bits) = from_ip.map_or((0, 0), |at| self.byte(at.saturating_add(i)));
                value = value << 8 | u32::from(byte);
                mask = mask << 8 | u32::from(bits);
            }
            let differs = (value ^ step.value) & step.mask & mask != 0;
            let decided = step.mask & !mask == 0;
            if !differs {
                open.push(step.yes);
            }
            if differs || !decided {
                open.push(step.no);
            }
        }
        (outputs, dropped)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use castanet_classify::NoNames;

    #[test]
    fn classifiers() {
        let dst = u32::from_be_bytes([10, 1, 2, 3]);
        let frame = Symbolic::arriving(dst, ETHERNET);
        let packet = Symbolic::arriving(dst, 0);
        let data = |patterns: &[&str]| Program::from_classifier(patterns).unwrap().0;
        let set = |all: &[usize]| all.iter().copied().collect::<BTreeSet<usize>>();
        for (packet, patterns, want) in [
            (&frame, &["12/0806 20/0001", "12/0806 20/0002", "12/0800"][..], (set(&[2]), false)),
            (&frame, &["12/0806", "0/ffffffffffff", "-"], (set(&[1, 2]), false)),
            (&frame, &["30/0a01", "-"], (set(&[0]), false)),
            (&packet, &["16/0a01", "-"], (set(&[0]), false)),
            (&packet, &["12/0800"], (set(&[0]), true)),
            (&packet, &["6/2000%3fff", "9/11", "-"], (set(&[1, 2]), false)),
        ] {
            assert_eq!(packet.classify(&data(patterns)), want, "{patterns:?}");
        }
        for (patterns, want) in [
            (&["dst net 10.2.0.0/16", "dst net 10.1.0.0/16", "-"][..], (set(&[1]), false)),
            (&["src net 10.2.0.0/16", "-"], (set(&[0, 1]), false)),
            (&["udp", "ip frag"], (set(&[0]), true)),
            (&["dst port 80", "-"], (set(&[0, 1]), false)),
        ] {
            let program = Program::from_ip_classifier(patterns, &NoNames).unwrap().0;
            assert_eq!(packet.classify(&program), want, "{patterns:?}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckICMPHeader: checks lengths and checksum of ICMP messages.

use crate::transport::faults::{Checker, Fault, Protocol};
use crate::transport::segment;
use castanet_element::prelude::*;
use castanet_wire::icmp::kind;
use castanet_wire::ipv4::protocol::ICMP;
use castanet_wire::{IcmpHeader, checksum};

/// Checks ICMP headers.
///
/// The tests are, in this order: the protocol is ICMP; the message is as long as its type requires (RFC 792: 8 bytes,
/// 20 for timestamps; RFC 950: 12 for address masks), and fits into the packet; its checksum is correct. A fragment
/// fails, because the checksum covers the whole message: put an IPReassembler before this element. A bad packet leaves
/// on output 1, or is dropped if that output is not connected. A message is printed for the first bad packet only or,
/// with `VERBOSE`, for every bad packet. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: good ICMP messages. Output 1 (optional): bad packets.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00010000 400174dd 01000001 02000002 0800f7fe 00000001>, LIMIT 2, STOP true)
///     -> MarkIPHeader -> check :: CheckICMPHeader -> Discard;
/// check [1] -> Print(bad) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckICMPHeader", offload = none, ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(effects(prints), drops(BadTransport, NoIpHeader), depends = packet)]
pub struct CheckIcmpHeader {
    #[engine]
    checker: Checker<Icmp>,
}

/// Returns the minimum length of messages of a type, in bytes.
fn least(message: u8) -> usize {
    match message {
        kind::TIMESTAMP | kind::TIMESTAMP_REPLY => 20,
        kind::MASK_REQUEST | kind::MASK_REPLY => 12,
        _ => IcmpHeader::LEN,
    }
}

/// The tests of ICMP messages, for the engine `Checker`.
pub enum Icmp {}

impl Protocol for Icmp {
    const NAME: &'static str = "ICMP";
    const FAULTS: &'static [&'static str; 3] = &["not ICMP", "bad packet length", "bad ICMP checksum"];
    #[inline]
    fn examine(network: &[u8]) -> Result<(), Fault> {
        // Byte 9 of the IP header is the protocol. A packet without this byte fails the length test below.
        if network.get(9).is_some_and(|&protocol| protocol != ICMP) {
            return Err(Fault::Protocol);
        }
        let (ip, message) = segment(network).ok_or(Fault::Length)?;
        let header = IcmpHeader::from_prefix(message).ok_or(Fault::Length)?;
        if message.len() < least(header.kind) {
            return Err(Fault::Length);
        }
        if ip.is_fragment() || checksum::sum(message) != 0xffff {
            return Err(Fault::Checksum);
        }
        Ok(())
    }
}

impl Action for CheckIcmpHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.checker.check(p, cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::transport::faults::check_table;
    use etherparse::PacketBuilder;

    /// A packet with a message of type `kind`, and `rest` bytes behind the first 8 bytes of the message.
    fn message(kind: u8, rest: usize) -> Vec<u8> {
        let mut data = Vec::new();
        let b = PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64);
        b.icmpv4_raw(kind, 0, [0; 4]).write(&mut data, &vec![3; rest]).unwrap();
        data
    }

    #[test]
    fn every_fault() {
        let good = message(8, 5);
        let with = |i: usize, v: u8| {
            let mut d = good.clone();
            d[i] = v;
            d
        };
        let padded = [&good[..], &[9; 7]].concat();
        check_table::<CheckIcmpHeader>(
            &good,
            &[
                ("good", good.clone(), None),
                ("with padding", padded, None),
                ("UDP", with(9, 17), Some(Fault::Protocol)),
                ("timestamp", message(13, 12), None),
                ("short timestamp", message(13, 11), Some(Fault::Length)),
                ("short timestamp reply", message(14, 11), Some(Fault::Length)),
                ("mask", message(17, 4), None),
                ("short mask", message(18, 3), Some(Fault::Length)),
                ("error", message(3, 0), None),
                ("total length beyond the end", with(3, 34), Some(Fault::Length)),
                ("total length too small", with(3, 27), Some(Fault::Length)),
                ("IP header too short", with(0, 0x44), Some(Fault::Length)),
                ("data", with(30, 9), Some(Fault::Checksum)),
                ("type", with(20, 0), Some(Fault::Checksum)),
                ("first fragment", with(6, 0x20), Some(Fault::Checksum)),
                ("later fragment", with(7, 1), Some(Fault::Checksum)),
            ],
            ("e :: CheckICMPHeader: ", "ICMP"),
        );
    }
}

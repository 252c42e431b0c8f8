// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckUDPHeader: checks lengths and checksum of UDP datagrams.

use super::faults::{Checker, Fault, Protocol};
use super::segment;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol::UDP;
use castanet_wire::{UdpHeader, checksum};

/// Checks UDP headers.
///
/// The tests are, in this order: the protocol is UDP; the UDP length is at least 8 and fits into the IP total length,
/// and the total length fits into the packet; the checksum is correct, or zero, which means "no checksum" (RFC 768).
/// Fragments fail, because the checksum covers the whole datagram. The only exception is a first fragment without a
/// checksum, which passes if its lengths fit. Therefore put an IPReassembler before this element. A bad packet leaves
/// on output 1, or is dropped if that output is not connected. A message is printed for the first bad packet only or,
/// with `VERBOSE`, for every bad packet. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: good UDP datagrams. Output 1 (optional): bad packets.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
///     -> MarkIPHeader -> check :: CheckUDPHeader -> Discard;
/// check [1] -> Print(bad) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckUDPHeader", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(offload = none, effects(prints), drops(BadTransport, NoIpHeader), depends = packet)]
pub struct CheckUdpHeader {
    #[engine]
    checker: Checker<Udp>,
}

/// The tests of UDP datagrams, for the engine `Checker`.
pub enum Udp {}

impl Protocol for Udp {
    const NAME: &'static str = "UDP";
    const FAULTS: &'static [&'static str; 3] = &["not UDP", "bad packet length", "bad UDP checksum"];
    #[inline]
    fn examine(network: &[u8]) -> Result<(), Fault> {
        // Byte 9 of the IP header is the protocol. A packet without this byte fails the length
        // test below.
        if network.get(9).is_some_and(|&protocol| protocol != UDP) {
            return Err(Fault::Protocol);
        }
        let (ip, bytes) = segment(network).ok_or(Fault::Length)?;
        let header = UdpHeader::from_prefix(bytes).ok_or(Fault::Length)?;
        // The checksum does not cover padding after the datagram.
        let datagram = bytes.get(..usize::from(header.len.get())).ok_or(Fault::Length)?;
        if datagram.len() < UdpHeader::LEN {
            return Err(Fault::Length);
        }
        let none = header.checksum.get() == 0 && ip.is_first_fragment();
        if none {
            return Ok(());
        }
        if ip.is_fragment() || !checksum::transport_ok(ip.src.get(), ip.dst.get(), UDP, datagram) {
            return Err(Fault::Checksum);
        }
        Ok(())
    }
    fn prefix(_: &Cx<'_>) -> String {
        String::new()
    }
}

impl Action for CheckUdpHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.checker.check(p, cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::faults::check_table;
    use super::*;
    use etherparse::PacketBuilder;

    #[test]
    fn every_fault() {
        let mut good = Vec::new();
        let b = PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64).udp(1, 2);
        b.write(&mut good, b"abc").unwrap();
        let with = |changes: &[(usize, u8)]| {
            let mut d = good.clone();
            for &(i, v) in changes {
                d[i] = v;
            }
            d
        };
        let padded = [&good[..], &[9; 7]].concat();
        // The total length includes the padding, the UDP length does not.
        let mut behind = padded.clone();
        behind[3] = 38;
        check_table::<CheckUdpHeader>(
            &good,
            &[
                ("good", good.clone(), None),
                ("with padding", padded, None),
                ("with bytes behind the datagram", behind, None),
                ("no checksum, data changed", with(&[(26, 0), (27, 0), (29, 9)]), None),
                ("TCP", with(&[(9, 6)]), Some(Fault::Protocol)),
                ("length 7", with(&[(25, 7)]), Some(Fault::Length)),
                ("length beyond the end", with(&[(25, 12)]), Some(Fault::Length)),
                ("total length beyond the end", with(&[(3, 32)]), Some(Fault::Length)),
                ("total length too small", with(&[(3, 30)]), Some(Fault::Length)),
                ("IP header too short", with(&[(0, 0x44)]), Some(Fault::Length)),
                ("IP header too long", with(&[(0, 0x4f)]), Some(Fault::Length)),
                ("data", with(&[(29, 9)]), Some(Fault::Checksum)),
                ("address", with(&[(15, 9)]), Some(Fault::Checksum)),
                ("first fragment", with(&[(6, 0x20)]), Some(Fault::Checksum)),
                ("later fragment", with(&[(7, 1)]), Some(Fault::Checksum)),
                ("later fragment, zeros", with(&[(7, 1), (26, 0), (27, 0)]), Some(Fault::Checksum)),
            ],
            ("", "UDP"),
        );
    }
}

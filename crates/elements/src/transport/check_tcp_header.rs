// SPDX-License-Identifier: MIT OR Apache-2.0
//! CheckTCPHeader: checks lengths and checksum of TCP segments.

use super::faults::{Checker, Fault, Protocol};
use super::segment;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol::TCP;
use castanet_wire::{TcpHeader, checksum};

/// Checks TCP headers.
///
/// The tests are, in this order: the protocol is TCP; the IP and TCP headers fit into the IP total length, and that
/// length fits into the packet; the checksum over segment and pseudo-header is correct (RFC 9293 section 3.1). A
/// fragment fails, because the checksum covers the whole segment: put an IPReassembler before this element. A bad
/// packet leaves on output 1, or is dropped if that output is not connected. A message is printed for the first bad
/// packet only or, with `VERBOSE`, for every bad packet. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: good TCP segments. Output 1 (optional): bad packets.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<45000028 00000000 40060000 01000001 02000002 00010002 00000000 00000000 50020000 00000000>,
///     LIMIT 5, STOP true) -> MarkIPHeader -> SetTCPChecksum -> check :: CheckTCPHeader -> Discard;
/// check [1] -> Print(bad) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CheckTCPHeader", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(offload = none, effects(prints), drops(BadTransport, NoIpHeader), depends = packet)]
pub struct CheckTcpHeader {
    #[engine]
    checker: Checker<Tcp>,
}

/// The tests of TCP segments, for the engine `Checker`.
pub enum Tcp {}

impl Protocol for Tcp {
    const NAME: &'static str = "TCP";
    const FAULTS: &'static [&'static str; 3] = &["not TCP", "bad packet length", "bad TCP checksum"];
    #[inline]
    fn examine(network: &[u8]) -> Result<(), Fault> {
        // Byte 9 of the IP header is the protocol. A packet without this byte fails the length test below.
        if network.get(9).is_some_and(|&protocol| protocol != TCP) {
            return Err(Fault::Protocol);
        }
        let (ip, bytes) = segment(network).ok_or(Fault::Length)?;
        let header = TcpHeader::from_prefix(bytes).ok_or(Fault::Length)?;
        let length = header.header_len();
        if length < TcpHeader::LEN || length > bytes.len() {
            return Err(Fault::Length);
        }
        if ip.is_fragment() || !checksum::transport_ok(ip.src.get(), ip.dst.get(), TCP, bytes) {
            return Err(Fault::Checksum);
        }
        Ok(())
    }
}

impl Action for CheckTcpHeader {
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
        let b = PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64).tcp(1, 2, 3, 4).syn();
        let b = b.options(&[etherparse::TcpOptionElement::MaximumSegmentSize(1460)]).unwrap();
        b.write(&mut good, b"abc").unwrap();
        let with = |i: usize, v: u8| {
            let mut d = good.clone();
            d[i] = v;
            d
        };
        let padded = [&good[..], &[9; 7]].concat();
        check_table::<CheckTcpHeader>(
            &good,
            &[
                ("good", good.clone(), None),
                ("with padding", padded, None),
                ("UDP", with(9, 17), Some(Fault::Protocol)),
                ("offset of 4 words", with(32, 0x40), Some(Fault::Length)),
                ("offset beyond the end", with(32, 0x70), Some(Fault::Length)),
                ("total length beyond the end", with(3, 48), Some(Fault::Length)),
                ("total length too small for the header", with(3, 43), Some(Fault::Length)),
                ("IP header too short", with(0, 0x44), Some(Fault::Length)),
                ("IP header too long", with(0, 0x4f), Some(Fault::Length)),
                ("data", with(46, b'x'), Some(Fault::Checksum)),
                ("ports", with(21, 9), Some(Fault::Checksum)),
                ("address", with(15, 9), Some(Fault::Checksum)),
                ("checksum", with(36, !good[36]), Some(Fault::Checksum)),
                ("first fragment", with(6, 0x20), Some(Fault::Checksum)),
                ("later fragment", with(7, 1), Some(Fault::Checksum)),
            ],
            ("e :: CheckTCPHeader: ", "TCP"),
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetTCPChecksum: sets the checksum of TCP segments.

use super::segment_mut;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol::TCP;
use castanet_wire::{TcpHeader, tcp};

/// Sets the TCP checksum (RFC 9293 section 3.1).
///
/// Fragments pass unchanged, because the checksum covers the data of the whole packet. Packets of other protocols also
/// pass unchanged. A packet too short for its headers is dropped. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with a correct checksum.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<45000028 00000000 40060000 01000001 02000002 00010002 00000000 00000000 50020000 00000000>,
///     LIMIT 5, STOP true) -> MarkIPHeader -> SetTCPChecksum -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetTCPChecksum", ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(offload = none, drops(TooShort, NoIpHeader), depends = packet)]
pub struct SetTcpChecksum {
    args: Args,
}

/// Arguments of SetTCPChecksum.
#[derive(Args)]
pub struct Args {
    /// Whether to correct a TCP header length that is below 20 bytes or exceeds the length of the segment.
    #[arg(default = false)]
    fixoff: bool,
}

impl Action for SetTcpChecksum {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network_mut() else { return Verdict::Drop(Reason::NoIpHeader) };
        let Some((ip, bytes)) = segment_mut(network) else { return Verdict::Drop(Reason::TooShort) };
        if ip.protocol != TCP || ip.is_fragment() {
            return Verdict::Next;
        }
        let len = bytes.len();
        let Some(header) = TcpHeader::from_prefix_mut(bytes) else { return Verdict::Drop(Reason::TooShort) };
        if self.args.fixoff {
            // The header length field has four bits and counts 32-bit words, so the longest header has 60 bytes.
            let words = (header.header_len().clamp(TcpHeader::LEN, len.min(60)) / 4) as u8;
            header.offset = words << 4 | header.offset & 15;
        }
        tcp::set_checksum(ip.src.get(), ip.dst.get(), bytes);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use etherparse::PacketBuilder;

    fn good(payload: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64)
            .tcp(1, 2, 3, 4)
            .write(&mut data, payload)
            .unwrap();
        data
    }
    fn marked(data: &[u8]) -> Packet {
        let mut p = packet(data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn as_etherparse_has_it() {
        let mut kit = Kit::<SetTcpChecksum>::new("").unwrap();
        for n in 0..60u8 {
            let want = good(&(0..n).collect::<Vec<_>>());
            let mut data = want.clone();
            data[36..38].copy_from_slice(&[n, 77]);
            data.extend([5; 3]);
            let out = kit.act([marked(&data)]);
            assert_eq!(&out[0].1.data()[..want.len()], &want[..], "{n}");
            assert_eq!(&out[0].1.data()[want.len()..], [5; 3]);
        }
    }

    #[test]
    fn offset_mended() {
        let mut kit = Kit::<SetTcpChecksum>::new("true").unwrap();
        for (len, given, want) in [
            (0u8, 0u8, 5u8),
            (0, 4, 5),
            (0, 5, 5),
            (0, 6, 5),
            (3, 15, 5),
            (4, 15, 6),
            (4, 6, 6),
            (60, 15, 15),
            (60, 0, 5),
        ] {
            let mut data = good(&vec![7; usize::from(len)]);
            data[32] = given << 4 | 1;
            let out = kit.act([marked(&data)]);
            let got = out[0].1.data();
            assert_eq!(got[32], want << 4 | 1, "{len} {given}");
            assert!(tcp::checksum_ok(0x0100_0001, 0x0200_0002, &got[20..]));
        }
    }

    #[test]
    fn others_are_left_alone_or_dropped() {
        let data = good(b"xy");
        for (at, v) in [(6, 0x20), (7, 1), (9, 17)] {
            let mut other = data.clone();
            (other[at], other[36]) = (v, 0xaa);
            let mut kit = Kit::<SetTcpChecksum>::new("").unwrap();
            assert_eq!(kit.act([marked(&other)])[0].1.data(), &other[..]);
        }
        for n in 0..data.len() {
            let mut kit = Kit::<SetTcpChecksum>::new("true").unwrap();
            assert!(kit.act([marked(&data[..n]), packet(&data)]).is_empty());
            assert_eq!((kit.dropped(Reason::TooShort), kit.dropped(Reason::NoIpHeader)), (1, 1), "{n}");
        }
        let mut short = data.clone();
        short[3] = 39;
        let mut kit = Kit::<SetTcpChecksum>::new("true").unwrap();
        assert!(kit.act([marked(&short)]).is_empty());
    }
}

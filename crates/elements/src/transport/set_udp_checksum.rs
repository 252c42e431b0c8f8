// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetUDPChecksum: sets the checksum of UDP datagrams.

use super::segment_mut;
use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol::UDP;
use castanet_wire::{UdpHeader, udp};

/// Sets the UDP checksum (RFC 768).
///
/// Fragments pass unchanged, because the checksum covers the data of the whole packet. Packets of other protocols also
/// pass unchanged. A packet too short for its headers, or for the length in its UDP header, leaves on output 1, or is
/// dropped if that output is not connected. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with a correct checksum. Output 1 (optional): packets that are too
/// short.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
///     -> MarkIPHeader -> SetUDPChecksum -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetUDPChecksum", ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(offload = none, drops(TooShort, NoIpHeader), depends = packet)]
pub struct SetUdpChecksum {}

impl Action for SetUdpChecksum {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network_mut() else { return cx.out_or(1, Reason::NoIpHeader) };
        let Some((ip, bytes)) = segment_mut(network) else { return cx.out_or(1, Reason::TooShort) };
        if ip.protocol != UDP || ip.is_fragment() {
            return Verdict::Next;
        }
        let len = UdpHeader::from_prefix(bytes).map_or(0, |h| usize::from(h.len.get()));
        match bytes.get_mut(..len) {
            Some(datagram) if len >= UdpHeader::LEN => {
                udp::set_checksum(ip.src.get(), ip.dst.get(), datagram);
                Verdict::Next
            }
            _ => cx.out_or(1, Reason::TooShort),
        }
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
        PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 64).udp(1, 2).write(&mut data, payload).unwrap();
        data
    }
    fn marked(data: &[u8]) -> Packet {
        let mut p = packet(data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn as_etherparse_has_it() {
        let mut kit = Kit::<SetUdpChecksum>::new("").unwrap();
        for n in 0..60u8 {
            let want = good(&(0..n).collect::<Vec<_>>());
            let mut data = want.clone();
            data[26..28].copy_from_slice(&[n, 77]);
            let out = kit.act([marked(&data)]);
            assert_eq!(out[0].1.data(), &want[..], "{n}");
            // Bytes between the end of the datagram and the end of the IP packet are not covered.
            data.extend([5; 3]);
            data[3] += 3;
            let out = kit.act([marked(&data)]);
            assert_eq!(&out[0].1.data()[20..want.len()], &want[20..], "{n}");
        }
    }

    /// RFC 768: a checksum that is computed as zero is sent as 0xffff.
    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let mut kit = Kit::<SetUdpChecksum>::new("").unwrap();
        let mut zeros = 0;
        for n in 0..=u16::MAX {
            let mut data = good(&n.to_be_bytes());
            data[26..28].fill(7);
            let out = kit.act([marked(&data)]);
            let sum = &out[0].1.data()[26..28];
            assert_ne!(sum, [0, 0], "{n}");
            zeros += usize::from(sum == [255, 255]);
        }
        assert!(zeros > 0);
    }

    #[test]
    fn others_are_left_alone_or_dropped() {
        let data = good(b"xy");
        for (at, v) in [(6, 0x20), (7, 1), (9, 6)] {
            let mut other = data.clone();
            (other[at], other[26]) = (v, 0xaa);
            let mut kit = Kit::<SetUdpChecksum>::new("").unwrap();
            assert_eq!(kit.act([marked(&other)])[0].1.data(), &other[..]);
        }
        let changed = |at: usize, v: u8| {
            let mut d = data.clone();
            d[at] = v;
            d
        };
        let cut = (0..data.len()).map(|n| data[..n].to_vec());
        for bad in cut.chain([changed(25, 7), changed(25, 11), changed(24, 1), changed(3, 27)]) {
            let mut kit = Kit::<SetUdpChecksum>::new("").unwrap();
            assert!(kit.act([marked(&bad), packet(&data)]).is_empty());
            assert_eq!((kit.dropped(Reason::TooShort), kit.dropped(Reason::NoIpHeader)), (1, 1), "{bad:?}");
            let mut kit = Kit::<SetUdpChecksum>::with_ports("", 1, 2).unwrap();
            let out = kit.act([marked(&bad), packet(&data)]);
            assert_eq!((out[0].0, out[0].1.data(), out[1].0), (1, &bad[..], 1));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes packets from the frames of devices.

use super::offload::note;
use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::{Frame, FrameKind, Start};
use castanet_packet::DEFAULT_HEADROOM;
use castanet_wire::ether::ethertype;
use castanet_wire::ipv4::Ipv4Header;

/// The default headroom of devices. It aligns the network header, which follows the link header, to four bytes.
pub(super) fn default_headroom(link: LinkType) -> usize {
    if link.is_ethernet() { DEFAULT_HEADROOM + 2 } else { DEFAULT_HEADROOM }
}

/// Makes packets from received frames.
pub(super) struct Intake {
    pub(super) headroom: usize,
    pub(super) start: Start,
}

/// Returns the packet type annotation of a frame.
fn kind(frame: &Frame<'_>) -> PacketType {
    match frame.kind {
        FrameKind::Host => PacketType::Host,
        FrameKind::Broadcast => PacketType::Broadcast,
        FrameKind::Multicast => PacketType::Multicast,
        FrameKind::OtherHost => PacketType::OtherHost,
        FrameKind::Outgoing => PacketType::Outgoing,
    }
}

impl Intake {
    pub(super) fn new(headroom: usize, link: LinkType) -> Intake {
        Intake { headroom, start: if link.is_ethernet() { Start::Ethernet } else { Start::Ip } }
    }

    /// Makes a packet from a frame. If that fails, counts a drop and returns `None`. A partial checksum stays partial,
    /// and a super-packet stays whole.
    #[inline]
    pub(super) fn packet(&mut self, frame: &Frame<'_>, cx: &mut Cx<'_>) -> Option<Packet> {
        if frame.is_cut() {
            return lose(Reason::Truncated, cx);
        }
        let Some(mut p) = Packet::with_headroom(self.headroom, frame.len()) else {
            let fits = frame.len() <= castanet_packet::MAX_LENGTH - self.headroom;
            return lose(if fits { Reason::NoBuffer } else { Reason::TooLong }, cx);
        };
        if !frame.copy_to(p.data_mut()) {
            return lose(Reason::Truncated, cx);
        }
        if note(&mut p, &frame.vnet, self.start).is_err() {
            return lose(Reason::BadOffload, cx);
        }
        p.set_packet_type(kind(frame));
        if frame.time_ns != 0 {
            p.set_timestamp(frame.time_ns);
        }
        if self.start == Start::Ethernet {
            p.set_mac_header(0);
        }
        Some(p)
    }

    /// Sets the annotations of a packet whose data are a received Ethernet frame.
    #[inline]
    pub(super) fn complete(&self, mut p: Packet, time: i64, ether: Option<[u8; 6]>) -> Packet {
        let kind = kind_by_address(p.data(), ether);
        p.set_packet_type(kind);
        p.set_timestamp(time);
        p.set_mac_header(0);
        p
    }
}

/// Returns the packet type annotation of a frame that the kernel did not classify, for a device with this address.
fn kind_by_address(data: &[u8], ether: Option<[u8; 6]>) -> PacketType {
    match data.first_chunk::<6>() {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => PacketType::Broadcast,
        Some([first, ..]) if first & 1 != 0 => PacketType::Multicast,
        Some(to) if Some(*to) != ether => PacketType::OtherHost,
        _ => PacketType::Host,
    }
}

/// Counts the drop of a frame from which no packet could be made.
#[cold]
fn lose<T>(reason: Reason, cx: &mut Cx<'_>) -> Option<T> {
    cx.count_drops(reason, 1);
    None
}

/// Returns the offset and the length of a frame's IPv4 header; `None` if there is no plausible header.
pub(super) fn ipv4_header(start: Start, data: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    if start == Start::Ethernet {
        at = 12;
        loop {
            match u16::from_be_bytes(*data.get(at..)?.first_chunk()?) {
                ethertype::VLAN | ethertype::QINQ => at += 4,
                ethertype::IPV4 => break,
                _ => return None,
            }
        }
        at += 2;
    }
    let rest = data.get(at..)?;
    let h = Ipv4Header::from_prefix(rest)?;
    let len = h.header_len();
    (h.version() == 4 && (Ipv4Header::LEN..=rest.len()).contains(&len)).then_some((at, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_classified_by_their_destination() {
        let mine = Some([2, 0, 0, 0, 0, 1]);
        for (to, want) in [
            ([2, 0, 0, 0, 0, 1], PacketType::Host),
            ([2, 0, 0, 0, 0, 2], PacketType::OtherHost),
            ([1, 0, 0x5e, 0, 0, 1], PacketType::Multicast),
            ([0xff; 6], PacketType::Broadcast),
        ] {
            assert_eq!(kind_by_address(&to, mine), want);
            assert_eq!(kind_by_address(&to[..5], mine), PacketType::Host);
        }
    }

    #[test]
    fn ipv4_headers_are_found() {
        let ip = [0x45, 0, 0, 20, 0, 0, 0, 0, 9, 17, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2];
        let ether = |tags: &[u8], kind: [u8; 2]| [&[7; 12], tags, &kind, &ip].concat();
        for (start, data, want) in [
            (Start::Ip, ip.to_vec(), Some((0, 20))),
            (Start::Ethernet, ether(&[], [8, 0]), Some((14, 20))),
            (Start::Ethernet, ether(&[0x81, 0, 0, 5], [8, 0]), Some((18, 20))),
            (Start::Ethernet, ether(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], [8, 0]), Some((22, 20))),
            (Start::Ethernet, ether(&[], [8, 6]), None),
            (Start::Ip, [&[0x44], &ip[1..]].concat(), None),
            (Start::Ip, [&[0x46], &ip[1..]].concat(), None),
            (Start::Ip, [&[0x65], &ip[1..]].concat(), None),
        ] {
            assert_eq!(ipv4_header(start, &data), want);
            for len in 0..data.len() {
                assert_eq!(ipv4_header(start, data.get(..len).unwrap_or_default()), None);
            }
        }
    }
}

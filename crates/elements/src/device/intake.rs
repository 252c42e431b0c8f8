// SPDX-License-Identifier: MIT OR Apache-2.0
//! From frames of devices to packets: what devices leave to be done about checksums and segments is done here.

use castanet_element::prelude::*;
use castanet_io::LinkType;
use castanet_io::device::{Frame, FrameKind, Segments, Start, VnetHeader, complete};
use castanet_packet::DEFAULT_HEADROOM;
use castanet_wire::ether::ethertype;
use castanet_wire::ipv4::Ipv4Header;

/// The headroom at which the network header behind a link header is aligned to four bytes: the default of devices.
pub(super) fn default_headroom(link: LinkType) -> usize {
    if link.is_ethernet() { DEFAULT_HEADROOM + 2 } else { DEFAULT_HEADROOM }
}

/// Makes packets of received frames.
pub(super) struct Intake {
    pub(super) headroom: usize,
    pub(super) start: Start,
    /// A super-packet of which segments are left.
    large: Vec<u8>,
    vnet: VnetHeader,
    next: usize,
    stamp: Stamp,
}

/// What is known of a frame besides its bytes.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub(super) time: i64,
    pub(super) kind: PacketType,
}

impl Stamp {
    pub(super) fn of(frame: &Frame<'_>) -> Stamp {
        let kind = match frame.kind {
            FrameKind::Host => PacketType::Host,
            FrameKind::Broadcast => PacketType::Broadcast,
            FrameKind::Multicast => PacketType::Multicast,
            FrameKind::OtherHost => PacketType::OtherHost,
            FrameKind::Outgoing => PacketType::Outgoing,
        };
        Stamp { time: frame.time_ns, kind }
    }
}

impl Intake {
    pub(super) fn new(headroom: usize, link: LinkType) -> Intake {
        Intake {
            headroom,
            start: if link.is_ethernet() { Start::Ethernet } else { Start::Ip },
            large: Vec::new(),
            vnet: VnetHeader::NONE,
            next: 0,
            stamp: Stamp { time: 0, kind: PacketType::Host },
        }
    }

    /// The packet of a frame. None when it was dropped, or when it is a super-packet: its segments come by [`Intake::segment`].
    #[inline]
    pub(super) fn packet(&mut self, frame: &Frame<'_>, cx: &mut Cx<'_>) -> Option<Packet> {
        if frame.is_cut() {
            return lose(Reason::Truncated, cx);
        }
        if frame.vnet.is_super() {
            std::hint::cold_path();
            self.large.resize(frame.len(), 0);
            frame.copy_to(&mut self.large);
            (self.vnet, self.next, self.stamp) = (frame.vnet, 0, Stamp::of(frame));
            return None;
        }
        let Some(mut p) = Packet::with_headroom(self.headroom, frame.len()) else {
            return lose(
                if frame.len() > castanet_packet::MAX_LENGTH - self.headroom {
                    Reason::TooLong
                } else {
                    Reason::NoBuffer
                },
                cx,
            );
        };
        frame.copy_to(p.data_mut());
        if frame.vnet.needs_checksum() && complete(p.data_mut(), &frame.vnet).is_err() {
            return lose(Reason::BadOffload, cx);
        }
        self.marked(p, Stamp::of(frame))
    }

    /// The next segment of a super-packet; none when no segment is left.
    pub(super) fn segment(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.large.is_empty() {
            return None;
        }
        self.next_segment(cx)
    }

    #[cold]
    fn next_segment(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let Ok(segments) = Segments::new(&self.large, &self.vnet, self.start) else {
            self.large.clear();
            return lose(Reason::BadOffload, cx);
        };
        while self.next < segments.count() {
            let i = self.next;
            self.next += 1;
            let Some(mut p) = Packet::with_headroom(self.headroom, segments.len_of(i)) else {
                lose::<()>(Reason::NoBuffer, cx);
                continue;
            };
            segments.write(i, p.data_mut());
            return self.marked(p, self.stamp);
        }
        self.large.clear();
        None
    }

    #[inline]
    fn marked(&self, mut p: Packet, stamp: Stamp) -> Option<Packet> {
        p.set_packet_type(stamp.kind);
        if stamp.time != 0 {
            p.set_timestamp(stamp.time);
        }
        if self.start == Start::Ethernet {
            p.set_mac_header(0);
        }
        Some(p)
    }
}

/// Counts one packet that was lost before it was one.
#[cold]
fn lose<T>(reason: Reason, cx: &mut Cx<'_>) -> Option<T> {
    let me = cx.me();
    cx.core().count_drops(me, reason, 1);
    None
}

/// Where the IPv4 header of a frame is, and its length; none if there is none that can be right.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the link header of a captured frame: how the frame was addressed, and where its IPv4 header starts.

use castanet_io::LinkType;
use castanet_packet::PacketType;
use castanet_wire::ether::ethertype;
use castanet_wire::ipv4::Ipv4Header;

/// Logical link and SNAP headers before an IPv4 packet (RFC 1042).
const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

fn be16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// Returns how a frame was addressed at link level. Only the "cooked" header of Linux says this. All other
/// frames count as addressed to this host; HostEtherFilter sets the type of Ethernet frames.
pub fn packet_type(link: LinkType, data: &[u8]) -> PacketType {
    match link.0 {
        113 => match be16(data, 0) {
            Some(1) => PacketType::Broadcast,
            Some(2) => PacketType::Multicast,
            Some(3) => PacketType::OtherHost,
            Some(4) => PacketType::Outgoing,
            _ => PacketType::Host,
        },
        _ => PacketType::Host,
    }
}

/// Returns where an IPv4 header may start; `None` if the link header says that there is none.
fn network_offset(link: LinkType, data: &[u8]) -> Option<usize> {
    let after = |at: usize, wanted: u16, n: usize| (be16(data, at)? == wanted).then_some(n);
    let snap =
        |at: usize| data.get(at..)?.starts_with(&SNAP_IPV4).then(|| at.saturating_add(SNAP_IPV4.len()));
    match link.0 {
        1 => ether(data),
        // The address family, in the byte order of the capturing host. On all hosts 2 is IPv4.
        0 | 108 => matches!(data.first_chunk()?, [2, 0, 0, 0] | [0, 0, 0, 2]).then_some(4),
        // RFC 1662: the address and control fields, which may be absent, then the protocol.
        9 if !data.starts_with(&[0xff, 3]) => after(0, 0x21, 2),
        9 => after(2, 0x21, 4),
        50 => after(2, 0x21, 4).or_else(|| after(2, ethertype::IPV4, 4)),
        104 => after(2, ethertype::IPV4, 4),
        10 => snap(13),
        100 => snap(0),
        123 => snap(4),
        105 => snap(wireless(data)?),
        127 => {
            let [_, _, low, high, ..] = *data else { return None };
            let n = usize::from(u16::from_le_bytes([low, high]));
            snap(n.saturating_add(wireless(data.get(n..)?)?))
        }
        113 => after(14, ethertype::IPV4, 16),
        276 => after(0, ethertype::IPV4, 20),
        _ if link.is_raw_ip() => Some(0),
        _ => None,
    }
}

/// Returns the offset of an IPv4 header behind an Ethernet header and VLAN tags.
fn ether(data: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        match be16(data, at)? {
            ethertype::IPV4 => return Some(at + 2),
            ethertype::VLAN | ethertype::QINQ => at += 4,
            _ => return None,
        }
    }
}

/// Returns the length of the IEEE 802.11 header of a data frame.
fn wireless(data: &[u8]) -> Option<usize> {
    let [kind, flags, ..] = *data else { return None };
    // Only a frame of type "data" with an unencrypted body can hold a packet.
    if kind & 0x0c != 8 || kind & 0x40 != 0 || flags & 0x40 != 0 {
        return None;
    }
    let fourth_address = if flags & 3 == 3 { 6 } else { 0 };
    let quality = if kind & 0x80 != 0 { 2 } else { 0 };
    Some(24 + fourth_address + quality)
}

/// Returns the offset and the length of the IPv4 header of a frame; `None` if there is no valid one.
pub fn ipv4_header(link: LinkType, data: &[u8]) -> Option<(usize, usize)> {
    let at = network_offset(link, data)?;
    let rest = data.get(at..)?;
    let h = Ipv4Header::from_prefix(rest)?;
    let len = h.header_len();
    (h.version() == 4 && (Ipv4Header::LEN..=rest.len()).contains(&len)).then_some((at, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 9, 17, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2];

    #[test]
    fn headers_are_found_behind_every_link_header() {
        let mut table: Vec<(u32, Vec<u8>)> = Vec::new();
        let ether = |tags: &[u8]| [&[7; 12], tags, &[8, 0]].concat();
        for (link, head) in [
            (1, ether(&[])),
            (1, ether(&[0x81, 0, 0, 5])),
            (1, ether(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
            (0, vec![2, 0, 0, 0]),
            (0, vec![0, 0, 0, 2]),
            (9, vec![0xff, 3, 0, 0x21]),
            (9, vec![0, 0x21]),
            (50, vec![0xff, 3, 0, 0x21]),
            (50, vec![0x0f, 0, 8, 0]),
            (104, vec![0x0f, 0, 8, 0]),
            (10, [&[0; 13][..], &SNAP_IPV4].concat()),
            (100, SNAP_IPV4.to_vec()),
            (123, [&[2, 0, 0, 0][..], &SNAP_IPV4].concat()),
            (105, [&[8, 1][..], &[0; 22], &SNAP_IPV4].concat()),
            (105, [&[0x88, 3][..], &[0; 30], &SNAP_IPV4].concat()),
            (127, [&[0, 0, 9, 0, 0, 0, 0, 0, 0][..], &[8, 0], &[0; 22], &SNAP_IPV4].concat()),
            (113, [&[0; 14][..], &[8, 0]].concat()),
            (276, [&[8, 0][..], &[0; 18]].concat()),
            (101, vec![]),
            (12, vec![]),
            (228, vec![]),
        ] {
            table.push((link, head));
        }
        for (link, head) in table {
            let frame = [&head[..], &IP].concat();
            assert_eq!(ipv4_header(LinkType(link), &frame), Some((head.len(), 20)), "{link}: {head:?}");
            for n in 0..frame.len() {
                assert_eq!(ipv4_header(LinkType(link), &frame[..n]), None, "{link} cut to {n}");
            }
            // A changed byte of the link header causes no panic.
            for i in 0..head.len() {
                let mut other = frame.clone();
                other[i] ^= 0xff;
                ipv4_header(LinkType(link), &other);
            }
            for (i, v) in [(0, 0x65), (0, 0x44), (0, 0x46)] {
                let mut other = frame.clone();
                other[head.len() + i] = v;
                assert_eq!(ipv4_header(LinkType(link), &other), None, "{v:#x}");
            }
        }
        assert_eq!(ipv4_header(LinkType(9999), &IP), None);
        assert_eq!(ipv4_header(LinkType(1), &[&[7; 12][..], &[8, 6], &IP].concat()), None);
    }

    #[test]
    fn addressing() {
        assert_eq!(packet_type(LinkType::ETHERNET, &[0xff; 14]), PacketType::Host);
        assert_eq!(packet_type(LinkType::RAW_IP, &[0xff; 20]), PacketType::Host);
        let cooked = |n: u8| packet_type(LinkType(113), &[0, n]);
        assert_eq!(
            (cooked(0), cooked(1), cooked(4)),
            (PacketType::Host, PacketType::Broadcast, PacketType::Outgoing)
        );
    }
}

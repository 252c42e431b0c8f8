// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPPingResponder: answers echo requests.

use castanet_element::prelude::*;
use castanet_wire::icmp::{self, IcmpHeader};
use castanet_wire::ipv4::{self, Ipv4Header};
use castanet_wire::{Be16, checksum};

/// Turns ICMP echo requests into their replies.
///
/// The source of the reply is the unicast address to which the request was sent (RFC 792, RFC 1122 section 3.2.2.6).
/// The time to live is 255, and the "do not fragment" flag is cleared. The ICMP checksum is updated incrementally and
/// not verified, so the checksum of a damaged request remains wrong in the reply. The destination address annotation is
/// set, the timestamp is the current time, and the paint is 0. All other packets leave unchanged on output 1, or are
/// dropped if that output is not connected. Fragments of requests, and requests to multicast or broadcast addresses,
/// are not answered. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: echo replies. Output 1 (optional): all packets that are not answered.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00010000 400174dd 01000001 02000002 0800f7fe 00000001>, LIMIT 2, STOP true)
///     -> MarkIPHeader -> ICMPPingResponder -> IPPrint(reply) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ICMPPingResponder", offload = none, ports = "1/1-2", processing = "a/ah", packets = "ip/same", workers = replicate)]
#[class(drops(NotAnswered, NoIpHeader))]
pub struct IcmpPingResponder {}

/// Whether `ip` is a whole IP packet with an echo request that must be answered.
fn is_answerable(ip: &[u8]) -> bool {
    let Some(h) = Ipv4Header::from_prefix(ip) else { return false };
    let len = h.header_len();
    let kind = ip.get(len..len.saturating_add(IcmpHeader::LEN)).and_then(<[u8]>::first);
    h.protocol == ipv4::protocol::ICMP
        && !h.is_fragment()
        && len >= Ipv4Header::LEN
        && kind == Some(&icmp::kind::ECHO)
        && !ipv4::is_multicast(h.dst.get())
        && h.dst.get() != u32::MAX
}

/// Turns a request into its reply, with the current time as timestamp. Leaves any other packet unchanged, and returns
/// the reason to drop it.
pub(super) fn answer(p: &mut Packet, cx: &mut Cx<'_>) -> Result<(), Reason> {
    let ip = p.network().ok_or(Reason::NoIpHeader)?;
    if !is_answerable(ip) {
        return Err(Reason::NotAnswered);
    }
    let ip = p.network_mut().ok_or(Reason::NoIpHeader)?;
    let dst = turn(ip).ok_or(Reason::NoIpHeader)?;
    p.set_dst_ip(dst);
    p.set_paint(0);
    p.set_packet_type(PacketType::Host);
    let now = cx.now();
    p.set_timestamp(now);
    Ok(())
}

/// Turns the headers of a request into those of the reply. Returns the destination of the reply.
fn turn(ip: &mut [u8]) -> Option<u32> {
    let h = Ipv4Header::from_prefix_mut(ip)?;
    (h.src, h.dst) = (h.dst, h.src);
    h.ttl = 255;
    h.fragment = Be16::new(0);
    h.checksum = Be16::new(0);
    let (len, dst) = (h.header_len(), h.dst.get());
    let (whole, message) = ip.split_at_mut_checked(len).unwrap_or_default();
    let sum = checksum::ipv4_header_checksum(whole);
    if let Some(h) = Ipv4Header::from_prefix_mut(whole) {
        h.checksum.set(sum);
    }
    if let Some(m) = IcmpHeader::from_prefix_mut(message) {
        let code = u16::from(m.code);
        let old = u16::from(icmp::kind::ECHO) << 8 | code;
        checksum::update_field16(&mut m.checksum, old, u16::from(icmp::kind::ECHO_REPLY) << 8 | code);
        m.kind = icmp::kind::ECHO_REPLY;
    }
    icmp::settle_checksum(message);
    Some(dst)
}

impl Action for IcmpPingResponder {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match answer(p, cx) {
            Ok(()) => Verdict::Next,
            Err(reason) => cx.out_or(1, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use etherparse::{Icmpv4Slice, Icmpv4Type, IpFragOffset, Ipv4Slice, PacketBuilder};

    fn request(payload: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        let b = PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 7).icmpv4_echo_request(77, 9);
        b.write(&mut data, payload).unwrap();
        data
    }
    fn marked(data: &[u8]) -> Packet {
        let mut p = packet(data);
        p.set_network_header(0, 20.min(data.len()));
        p.set_paint(4);
        p
    }

    #[test]
    fn replies_are_right_for_every_payload_length() {
        for n in 0..70 {
            let payload: Vec<u8> = (0..n).map(|i| (i * 7 + 250) as u8).collect();
            let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
            let out = kit.act([marked(&request(&payload))]);
            let p = &out[0].1;
            let ip = Ipv4Slice::from_slice(p.data()).unwrap();
            let h = ip.header().to_header();
            assert_eq!((h.source, h.destination, h.time_to_live), ([2, 0, 0, 2], [1, 0, 0, 1], 255));
            assert_eq!((h.dont_fragment, h.fragment_offset), (false, IpFragOffset::ZERO));
            assert_eq!(h.calc_header_checksum(), h.header_checksum);
            let m = Icmpv4Slice::from_slice(ip.payload().payload).unwrap();
            let Icmpv4Type::EchoReply(e) = m.icmp_type() else { panic!("{:?}", m.icmp_type()) };
            assert_eq!((e.id, e.seq, m.payload()), (77, 9, &payload[..]));
            assert_eq!(m.icmp_type().calc_checksum(m.payload()), m.checksum(), "{n}");
            assert_eq!((p.dst_ip(), p.paint(), p.timestamp() > 0), (0x0100_0001, 0, true));
        }
    }

    /// A message of zeros has the checksum 0xffff. An incremental update alone would make it 0, and receivers would
    /// drop it.
    #[test]
    fn a_reply_of_zeros_has_a_right_checksum() {
        for payload in [vec![], vec![0; 8], vec![0; 33]] {
            let mut data = Vec::new();
            let b = PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 7).icmpv4_echo_request(0, 0);
            b.write(&mut data, &payload).unwrap();
            let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
            let out = kit.act([marked(&data)]);
            assert_eq!(out[0].1.data()[20..24], [0, 0, 0xff, 0xff]);
        }
        // If the bytes are not all zeros and add up to 0xffff, the checksum is 0.
        let mut data = request(&[]);
        data[24..28].copy_from_slice(&[0xff, 0xff, 0, 0]);
        data[22..24].copy_from_slice(&[0xf7, 0xff]);
        let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
        assert_eq!(kit.act([marked(&data)])[0].1.data()[20..24], [0, 0, 0, 0]);
    }

    #[test]
    fn options_stay_and_the_header_sum_is_right() {
        let mut data = request(b"ab");
        data[0] = 0x46;
        data.splice(20..20, [148, 4, 0, 0]);
        let mut p = packet(&data);
        p.set_network_header(0, 24);
        let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
        let out = kit.act([p]);
        let (h, rest) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
        assert_eq!(
            (h.options.as_slice(), h.calc_header_checksum()),
            (&[148, 4, 0, 0][..], h.header_checksum)
        );
        assert_eq!(rest[0], 0);
    }

    #[test]
    fn others_are_left_alone() {
        let good = request(b"");
        let changed = |i: usize, v: u8| {
            let mut d = good.clone();
            d[i] = v;
            d
        };
        let table = [
            ("reply", changed(20, 0)),
            ("UDP", changed(9, 17)),
            ("first fragment", changed(6, 0x20)),
            ("later fragment", changed(7, 1)),
            ("to a group", changed(16, 224)),
            ("short header", changed(0, 0x44)),
            ("long header", changed(0, 0x4f)),
        ];
        for (what, data) in table {
            let mut kit = Kit::<IcmpPingResponder>::with_ports("", 1, 2).unwrap();
            let out = kit.act([marked(&data)]);
            assert_eq!((out[0].0, out[0].1.data()), (1, &data[..]), "{what}");
            let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
            assert!(kit.act([marked(&data)]).is_empty());
            assert_eq!(kit.dropped(Reason::NotAnswered), 1);
        }
        for n in 0..28 {
            let mut kit = Kit::<IcmpPingResponder>::new("").unwrap();
            assert!(kit.act([marked(&good[..n]), packet(&good[..n])]).is_empty(), "{n}");
            assert_eq!(kit.all_dropped(), 2);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use etherparse::{Icmpv4Slice, Icmpv4Type, Ipv4Slice, PacketBuilder, icmpv4};

const LINK: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

fn datagram(payload: usize) -> Vec<u8> {
    let mut data = Vec::new();
    let body: Vec<u8> = (0..payload).map(|i| (i * 31) as u8).collect();
    PacketBuilder::ipv4([1, 0, 0, 1], [2, 0, 0, 2], 7).udp(1, 2).write(&mut data, &body).unwrap();
    data
}
/// Makes a packet whose Ethernet header was stripped.
fn received(ip: &[u8]) -> Packet {
    let mut p = packet(&[&LINK[..], ip].concat());
    p.set_mac_header(0);
    p.strip(14);
    p.set_network_header(0, 20.min(ip.len()));
    p.set_paint(3);
    p
}
fn error_about(config: &str, p: Packet) -> Packet {
    let mut kit = Kit::<IcmpError>::new(config).unwrap();
    kit.act([p]).pop().unwrap().1
}
/// Returns header, message type and quote of an error, after checking it with etherparse.
fn parsed(p: &Packet) -> (etherparse::Ipv4Header, Icmpv4Type, Vec<u8>) {
    let ip = Ipv4Slice::from_slice(p.data()).unwrap();
    let h = ip.header().to_header();
    assert_eq!(h.calc_header_checksum(), h.header_checksum);
    assert_eq!(usize::from(h.total_len), p.len());
    let m = Icmpv4Slice::from_slice(ip.payload().payload).unwrap();
    assert_eq!(m.icmp_type().calc_checksum(m.payload()), m.checksum());
    (h, m.icmp_type(), m.payload().to_vec())
}

#[test]
fn quotes_up_to_the_mtu() {
    for n in (0..40).chain([500, 519, 520, 521, 1400]) {
        let ip = datagram(n);
        let p = error_about("10.0.0.9, timeexceeded", received(&ip));
        let (h, kind, quote) = parsed(&p);
        assert_eq!((h.source, h.destination), ([10, 0, 0, 9], [1, 0, 0, 1]));
        assert_eq!((h.time_to_live, h.identification, h.dont_fragment), (200, 1, false));
        assert_eq!(kind, Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit));
        assert_eq!(quote, ip[..ip.len().min(548)], "{n}");
        assert_eq!((p.dst_ip(), p.anno_u8(anno::FIX_IP_SRC), p.paint()), (0x0100_0001, 1, 0));
        assert!(p.mac().is_none() && p.timestamp() > 0 && p.network_header_length() == 20);
    }
    let ip = datagram(100);
    assert_eq!(parsed(&error_about("1.1.1.1, 3, 1, MTU 60", received(&ip))).2, ip[..32]);
    assert_eq!(parsed(&error_about("1.1.1.1, 3, 1, MTU 0", received(&ip))).2, ip[..28], "RFC 792 minimum");
    let padded = [&ip[..], &[9; 10]].concat();
    assert_eq!(parsed(&error_about("1.1.1.1, 3, 1", received(&padded))).2, ip, "no padding");
    let mut whole = packet(&[&LINK[..], &ip].concat());
    whole.set_network_header(14, 20);
    assert_eq!(parsed(&error_about("1.1.1.1, 3, 1", whole)).2, ip);
    let mut stripped = received(&ip);
    stripped.strip(28);
    assert_eq!(parsed(&error_about("1.1.1.1, 3, 1", stripped)).2, ip);
}

#[test]
fn second_words_and_names() {
    let with = |config: &str, p: Packet| parsed(&error_about(config, p)).1;
    let p = || received(&datagram(9));
    let mut pointed = p();
    pointed.set_anno_u8(anno::ICMP_PARAMPROB, 33);
    let bad = icmpv4::ParameterProblemHeader::PointerIndicatesError(33);
    assert_eq!(with("1.1.1.1, parameterproblem, erroratptr", pointed), Icmpv4Type::ParameterProblem(bad));
    let mut routed = p();
    routed.set_dst_ip(0x0a00_0005);
    let code = icmpv4::RedirectCode::RedirectForHost;
    let redirect = icmpv4::RedirectHeader { code, gateway_internet_address: [10, 0, 0, 5] };
    assert_eq!(with("1.1.1.1, redirect, host", routed), Icmpv4Type::Redirect(redirect));
    use icmpv4::DestUnreachableHeader as D;
    let big = Icmpv4Type::DestinationUnreachable(D::FragmentationNeeded { next_hop_mtu: 1400 });
    assert_eq!(with("1.1.1.1, unreachable, needfrag, PMTU 1400", p()), big);
    assert_eq!(with("1.1.1.1, 3, net", p()), Icmpv4Type::DestinationUnreachable(D::Network));
    assert_eq!(error_about("1.1.1.1, 3, SET_FIX_ANNO false", p()).anno_u8(anno::FIX_IP_SRC), 0);
}

#[test]
fn when_no_error_is_sent() {
    let good = datagram(30);
    let changed = |edits: &[(usize, u8)]| {
        let mut d = good.clone();
        edits.iter().for_each(|&(i, v)| d[i] = v);
        d
    };
    let quiet: Vec<Vec<u8>> = vec![
        changed(&[(12, 0)]),
        changed(&[(12, 127)]),
        changed(&[(12, 224)]),
        changed(&[(12, 240)]),
        changed(&[(12, 255), (13, 255), (14, 255), (15, 255)]),
        changed(&[(15, 99)]),
        changed(&[(16, 224)]),
        changed(&[(16, 255), (17, 255), (18, 255), (19, 255)]),
        changed(&[(16, 1), (19, 99), (17, 0), (18, 0)]),
        changed(&[(7, 1)]),
        changed(&[(9, 1), (20, 3)]),
        changed(&[(9, 1), (20, 5)]),
        changed(&[(9, 1), (20, 11)]),
        changed(&[(9, 1)])[..20].to_vec(),
    ];
    let mut kit = Kit::<IcmpError>::new("9.9.9.9, unreachable, host, 1.0.0.99").unwrap();
    for d in &quiet {
        assert!(kit.act([received(d)]).is_empty(), "{d:?}");
    }
    for kind in [PacketType::Broadcast, PacketType::Multicast] {
        let mut p = received(&good);
        p.set_packet_type(kind);
        assert!(kit.act([p]).is_empty());
    }
    assert_eq!(kit.dropped(Reason::NoIcmpError), quiet.len() as u64 + 2);
    for d in [changed(&[(9, 1), (20, 8)]), changed(&[(6, 0x20)]), changed(&[(9, 1), (20, 0)])] {
        assert_eq!(kit.act([received(&d)]).len(), 1, "answered");
    }
}

#[test]
fn source_routes_are_reversed() {
    let mut ip = datagram(30);
    // The packet has passed two hops of its route, and one is still ahead.
    ip.splice(20..20, [131, 15, 12, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 0]);
    ip[0] = 0x49;
    ip[3] += 16;
    let p = error_about("1.1.1.1, unreachable, port", received(&ip));
    let (h, _, quote) = parsed(&p);
    assert_eq!((h.destination, p.dst_ip()), ([6, 6, 6, 6], 0x0606_0606));
    assert_eq!(h.options.as_slice(), [1, 131, 11, 4, 5, 5, 5, 5, 1, 0, 0, 1]);
    assert_eq!((quote, p.network_header_length()), (ip.clone(), 32));
    let mut kit = Kit::<IcmpError>::new("1.1.1.1, redirect").unwrap();
    assert!(kit.act([received(&ip)]).is_empty(), "RFC 1812 section 5.2.7.2");
    // A message about the route option itself does not use the route.
    for (pointer, options) in [(21, 0), (20, 0), (35, 12), (19, 12)] {
        let mut p = received(&ip);
        p.set_anno_u8(anno::ICMP_PARAMPROB, pointer);
        let (h, ..) = parsed(&error_about("1.1.1.1, parameterproblem", p));
        assert_eq!(h.options.len(), options, "{pointer}");
    }
}

#[test]
fn ids_count_and_truncated_packets_are_dropped() {
    let mut kit = Kit::<IcmpError>::new("1.1.1.1, timeexceeded").unwrap();
    let ids: Vec<u16> =
        (0..3).map(|_| parsed(&kit.act([received(&datagram(1))])[0].1).0.identification).collect();
    assert_eq!(ids, [1, 2, 3]);
    let good = datagram(32);
    for n in 0..60 {
        let before = kit.all_dropped();
        let out = kit.act([received(&good[..n])]);
        assert_eq!(out.len() as u64 + kit.all_dropped() - before, 1, "{n}");
        assert_eq!(out.is_empty(), n < 20, "{n}");
    }
    assert!(kit.act([packet(&good)]).is_empty(), "no header marked");
    let mut bad = good.clone();
    for first in [0x44, 0x4f, 0x65] {
        bad[0] = first;
        assert!(kit.act([received(&bad[..50])]).is_empty());
    }
    assert_eq!(kit.dropped(Reason::BadIpHeader), 3);
}

#[test]
fn arguments_and_handlers() {
    let mut kit = Kit::<IcmpError>::new("1.1.1.1, unreachable, needfrag").unwrap();
    assert_eq!((kit.read("src").unwrap(), kit.read("mtu").unwrap()), ("1.1.1.1".into(), "576".into()));
    kit.write("src", "2.2.2.2").unwrap();
    kit.write("pmtu", "900").unwrap();
    kit.write("mtu", "100").unwrap();
    assert!(kit.write("pmtu", "70000").is_err());
    let p = kit.act([received(&datagram(200))]).pop().unwrap().1;
    assert_eq!((p.len(), parsed(&p).0.source), (100, [2, 2, 2, 2]));
    let fails = |c: &str| Kit::<IcmpError>::new(c).err().unwrap().join(" ");
    assert_eq!(fails("1.1.1.1, echo"), "TYPE: 'echo' is not an ICMP error type");
    assert_eq!(fails("1.1.1.1, what"), "TYPE: 'what' is not an ICMP type");
    assert_eq!(fails("1.1.1.1, timeexceeded, port"), "CODE: 'port' is not a code of ICMP type timeexceeded");
    assert_eq!(fails("1.1.1.1"), "TYPE: required argument missing");
    assert_eq!(fails("x, 3"), "SRC: parse error");
}

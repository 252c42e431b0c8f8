// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of packets that are made from records.

use super::*;

/// An IP length in the record shortens the packet, but not its IP header.
#[test]
fn lengths_shorter_than_the_headers() {
    for (proto, len, want) in
        [("T", 40, 40), ("T", 24, 24), ("T", 20, 20), ("T", 10, 20), ("U", 25, 25), ("I", 0, 20)]
    {
        let text = format!("!data ip_src ip_proto ip_len eth_type\n1.2.3.4 {proto} {len} -\n");
        for checksum in [false, true] {
            let mut reader = SummaryReader::from_bytes("x", text.as_str()).unwrap();
            let (packets, _) = read_all(&mut reader, Making { checksum, ..MAKING });
            let Packet { data, made } = &packets[0];
            assert_eq!((data.len(), made.extra_length, data[3]), (want, 0, len), "{proto} {len}");
        }
    }
    let mut reader = SummaryReader::from_bytes("x", "!data eth_type ip_len\n0800 24\n").unwrap();
    assert_eq!(read_all(&mut reader, MAKING).0[0].data.len(), 14 + 24);
}

/// The text of a digest has 22 characters of six bits each. The lowest bits come first.
#[test]
fn digests() {
    for (payload, want) in [("\"\"", "u3bJz@iaYsq6aMaMSJVq_b"), ("\"abc\"", "")] {
        let line = again("payload payload_md5", payload).remove(0);
        let digest = line.rsplit(' ').next().unwrap().to_string();
        assert_eq!(digest.len(), 22);
        assert!(want.is_empty() || digest == want, "{digest}");
        let value = Field::find("payload_md5").unwrap().kind.parse(digest.as_bytes()).unwrap();
        assert_eq!(value, Value::Bytes(md5::md5(payload.trim_matches('"').as_bytes()).to_vec().into()));
    }
}

#[test]
fn bad_packets() {
    let ip = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut p = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 9, 6, 0, 0, 1, 0, 0, 1, 2, 0, 0, 2];
        p.resize(32, 0);
        p.extend([0x50, 0, 0, 0, 0, 0, 0, 0]);
        edit(&mut p);
        p
    };
    type Edit<'a> = &'a dyn Fn(&mut Vec<u8>);
    let table: &[(Edit<'_>, u32, &str)] = &[
        (&|_| {}, 0, ""),
        (&|p| p.truncate(19), 0, "truncated IP header"),
        (&|p| p.truncate(19), 21, "truncated IP header capture"),
        (&|p| p[0] = 0x65, 0, "IP version 6"),
        (&|p| p[0] = 0x44, 0, "IP header length 16"),
        (&|p| p[3] = 19, 0, "IP length 19"),
        (&|p| p.truncate(39), 0, "truncated IP missing 1"),
        (&|p| p.truncate(39), 1, "truncated TCP header capture"),
        (&|p| p[32] = 0x40, 0, "TCP header length 16"),
        (&|p| p[3] = 30, 0, "truncated TCP header"),
        (&|p| (p[3], p[6]) = (30, 0x20), 0, "fragmented TCP header"),
        (&|p| (p[3], p[9], p[6]) = (27, 17, 0x20), 0, "fragmented UDP header"),
        (&|p| p[9] = 99, 0, ""),
    ];
    for (edit, extra, want) in table {
        let p = ip(edit);
        let view = View::new(&p, None, Some(&p), *extra, true);
        assert_eq!(view.bad().map_or(String::new(), |b| b.to_string()), *want);
    }
    let p = ip(&|_| {});
    assert_eq!(View::new(&p, None, None, 0, true).bad().unwrap().to_string(), "no IP header");
    let p = ip(&|p| p.truncate(39));
    assert!(View::new(&p, None, Some(&p), 1, false).ip().is_some());
}

#[test]
fn checksums() {
    for (proto, len) in [("T", 40), ("T", 43), ("U", 28), ("U", 63), ("I", 28), ("I", 99), ("99", 30)] {
        let text = format!("!data ip_src ip_proto ip_len sport\n1.2.3.4 {proto} {len} 9\n");
        let mut reader = SummaryReader::from_bytes("x", text).unwrap();
        let (packets, _) = read_all(&mut reader, Making { checksum: true, ..MAKING });
        let data = &packets[0].data;
        assert_eq!((data.len(), packets[0].made.extra_length), (len, 0));
        let sliced = etherparse::SlicedPacket::from_ip(data).unwrap();
        let etherparse::NetSlice::Ipv4(ip) = sliced.net.unwrap() else { panic!("IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        match sliced.transport {
            Some(etherparse::TransportSlice::Tcp(t)) => {
                let sum = t.to_header().calc_checksum_ipv4(&header, t.payload()).unwrap();
                assert_eq!((t.checksum(), t.source_port()), (sum, 9));
            }
            Some(etherparse::TransportSlice::Udp(u)) => {
                let sum = u.to_header().calc_checksum_ipv4(&header, u.payload()).unwrap();
                assert_eq!((u.checksum(), u.source_port()), (sum, 9));
            }
            Some(etherparse::TransportSlice::Icmpv4(i)) => {
                assert_eq!(i.icmp_type().calc_checksum(i.payload()), i.checksum());
            }
            _ => assert_eq!(proto, "99"),
        }
    }
    let mut reader = SummaryReader::from_bytes("x", "!data ip_fragoff ip_len\n0+ 60\n").unwrap();
    let (packets, _) = read_all(&mut reader, Making { checksum: true, ..MAKING });
    assert_eq!(&packets[0].data[36..38], [0, 0], "fragments have no transport checksum");
}

#[test]
fn many_packets_of_one_record() {
    let mut reader = SummaryReader::from_bytes("x", "!data first_ts ts count len\n1 3 3 1000\n").unwrap();
    let mut draft = Draft::default();
    while reader.next(&mut draft).unwrap() != Item::Record {}
    let parts: Vec<_> = (0..3)
        .map(|i| {
            let mut data = Vec::new();
            let made = draft.make(reader.defaults(), Making { part: (i, 3), ..MAKING }, &mut data);
            (made.time, u16::from_be_bytes([data[2], data[3]]))
        })
        .collect();
    assert_eq!(parts, [(1_000_000_000, 334), (2_000_000_000, 333), (3_000_000_000, 333)]);
}

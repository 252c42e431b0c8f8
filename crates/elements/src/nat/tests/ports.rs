// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPRewriter, TCPRewriter and UDPRewriter.

use super::*;
use crate::nat::ip_rewriter::IpRewriter;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::kit::Kit;
use castanet_spec::anno;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const N: [u8; 4] = [9, 9, 9, 9];
const SECOND: i64 = 1_000_000_000;

/// Shows the output and the ends (addresses and ports) of each packet.
pub fn shown(out: &[(usize, Packet)]) -> Vec<String> {
    out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect()
}

#[test]
fn there_and_back_with_table() {
    let mut kit = Kit::<IpRewriter>::with_ports("pattern 9.9.9.9 1024-1026# - - 0 1, drop", 2, 2).unwrap();
    assert_eq!(kit.read("patterns").unwrap(), "9.9.9.9 1024-1026 - -\n<drop>\n");
    let out = kit.push(0, [udp(A, 10, B, 20), tcp((A, 11), (B, 80), "S", 1, 0, b"")]);
    // TCP and UDP share the sequence of the pattern.
    assert_eq!(shown(&out), ["0 9.9.9.9:1024 > 2.0.0.2:20", "0 9.9.9.9:1025 > 2.0.0.2:80"]);
    // Replies are rewritten on every input.
    for input in 0..2 {
        let out = kit.push(input, [udp(B, 20, N, 1024), tcp((B, 80), (N, 1025), "SA", 1, 2, b"")]);
        assert_eq!(shown(&out), ["1 2.0.0.2:20 > 1.0.0.1:10", "1 2.0.0.2:80 > 1.0.0.1:11"]);
        assert_eq!(out[0].1.dst_addr().octets(), A);
    }
    let table = kit.read("udp_table").unwrap();
    assert_eq!(
        sorted(&table),
        [
            "(1.0.0.1, 10, 2.0.0.2, 20) => (9.9.9.9, 1024, 2.0.0.2, 20) [*0 1] i0 exp300",
            "(2.0.0.2, 20, 9.9.9.9, 1024) => (2.0.0.2, 20, 1.0.0.1, 10) [0 *1] i0 exp300",
        ]
    );
    assert_eq!(kit.read("udp_mappings").unwrap(), table);
    assert_eq!(kit.read("tcp_table").unwrap().lines().count(), 2);
    assert_eq!(kit.read("patterns").unwrap(), "9.9.9.9 1024-1026 - - [2]\n<drop>\n");
    for (handler, value) in [
        ("size", "2"),
        ("table_size", "4"),
        ("nmappings", "4"),
        ("mapping_failures", "0"),
        ("capacity", "2147483647"),
    ] {
        assert_eq!(kit.read(handler).unwrap(), value, "{handler}");
    }
    assert_eq!(kit.read_with("tcp_lookup", "1.0.0.1 11 2.0.0.2 80").unwrap(), "9.9.9.9 1025 2.0.0.2 80");
    assert_eq!(kit.read_with("tcp_lookup", "1.0.0.1 12 2.0.0.2 80").unwrap(), "");
    assert!(kit.read_with("tcp_lookup", "1.0.0.1 12").is_err());
    // This input drops packets of unknown flows.
    assert!(kit.push(1, [udp(B, 21, N, 1024)]).is_empty());
    assert_eq!((kit.dropped(Reason::NoMapping), kit.read("mapping_failures").unwrap().as_str()), (1, "1"));
    kit.write("clear", "").unwrap();
    assert_eq!((kit.read("size").unwrap().as_str(), kit.read("table_size").unwrap().as_str()), ("0", "0"));
    assert!(kit.push(0, [udp(B, 20, N, 1024)]).len() == 1, "a forward packet now");
    let names: Vec<_> = kit.with(|e, _| e.own_handlers()).into_iter().map(|h| h.0).collect();
    assert_eq!(names, ["pattern0", "pattern1"]);
    assert_eq!(kit.read("pattern1").unwrap(), "<drop>");
    kit.write("pattern1", "pass 1").unwrap();
    assert_eq!(shown(&kit.push(1, [udp(B, 21, N, 7)])), ["1 2.0.0.2:21 > 9.9.9.9:7"]);
    for bad in ["pass 2", "nothing", "keep 0", "pattern 1.1.1.1 - - - 0 5", "", "pattern nobody 0 1"] {
        assert!(kit.write("pattern1", bad).is_err(), "{bad}");
    }
    assert!(kit.write("pattern2", "drop").is_err() && kit.write("capacity", "-1").is_err());
}

#[test]
fn ports_are_kept_and_used_up() {
    let mut kit = Kit::<UdpRewriter>::with_ports("pattern 9.9.9.9 1024-1026 - - 0 0", 1, 1).unwrap();
    assert_eq!(shown(&kit.push(0, [udp(A, 1026, B, 20)])), ["0 9.9.9.9:1026 > 2.0.0.2:20"]);
    let more = kit.push(0, (1..5).map(|i| udp([1, 0, 0, 9], i, B, 20)));
    assert_eq!((more.len(), kit.dropped(Reason::PatternFull)), (2, 2));
    // For flows to another remote port, the same ports are still free.
    assert_eq!(kit.push(0, (1..5).map(|i| udp([1, 0, 0, 9], i, B, 21))).len(), 3);
    assert_eq!((kit.read("mapping_failures").unwrap().as_str(), kit.all_dropped()), ("3", 3));
    // Ports are free again when their flows have timed out.
    kit.at(300 * SECOND);
    assert_eq!(kit.push(0, (1..5).map(|i| udp([1, 0, 0, 9], i, B, 20))).len(), 3);
}

#[test]
fn what_is_exhausted_is_so_for_those_alone() {
    let mut kit = Kit::<IpRewriter>::with_ports("pattern - 1024-1025# - - 0 0", 1, 1).unwrap();
    let five = |client: u8, port| (0..5).map(move |i| udp([1, 0, 0, client], i, B, port)).collect::<Vec<_>>();
    for (client, port) in [(1, 20), (2, 20), (1, 21)] {
        assert_eq!(kit.push(0, five(client, port)).len(), 2, "{client} {port}");
    }
    assert_eq!(kit.push(0, (0..5).map(|i| tcp((A, i), (B, 20), "S", 1, 0, b""))).len(), 2);
    // A new pattern has free ports immediately, and the flows of the old pattern are gone.
    kit.write("pattern0", "pattern - 1026-1027# - - 0 0").unwrap();
    assert_eq!(kit.push(0, five(1, 20)).len(), 2);
    kit.write("clear", "").unwrap();
    assert_eq!(kit.push(0, five(1, 20)).len(), 2);
}

#[test]
fn what_does_not_vary_replaces() {
    let mut kit = Kit::<UdpRewriter>::with_ports("pattern 9.9.9.9 2000 - - 0 0", 1, 1).unwrap();
    kit.push(0, [udp(A, 1, B, 20), udp(A, 2, B, 20)]);
    assert_eq!(shown(&kit.push(0, [udp(B, 20, N, 2000)])), ["0 2.0.0.2:20 > 1.0.0.1:2"]);
    assert_eq!((kit.read("size").unwrap().as_str(), kit.read("table_size").unwrap().as_str()), ("2", "3"));
    assert_eq!(shown(&kit.push(0, [udp(A, 1, B, 20)])), ["0 9.9.9.9:2000 > 2.0.0.2:20"]);
}

#[test]
fn input_specifications() {
    // Packets of other protocols and later fragments pass only if the input has the specification `pass`.
    let later = |mut p: Packet| {
        p.data_mut()[7] = 3;
        p
    };
    let gre = || {
        let mut p = udp(A, 1, B, 2);
        p.data_mut()[9] = 47;
        p
    };
    for (spec, passes, size) in [
        ("pass 1", true, "0"),
        ("nochange", true, "0"),
        ("passthrough 0", true, "0"),
        ("keep 0 1", false, "1"),
        ("drop", false, "0"),
        ("discard", false, "0"),
        ("pattern - - - - 0 1", false, "1"),
    ] {
        let mut kit = Kit::<IpRewriter>::with_ports(spec, 1, 2).unwrap();
        let before = [gre(), later(udp(A, 1, B, 2))];
        let data: Vec<_> = before.iter().map(|p| p.data().to_vec()).collect();
        let out = kit.push(0, before);
        assert_eq!(out.len(), if passes { 2 } else { 0 }, "{spec}");
        assert!(out.iter().zip(data).all(|((_, p), d)| p.data() == d));
        assert_eq!(kit.dropped(Reason::NotRewritable), if passes { 0 } else { 2 });
        let out = kit.push(0, [udp(A, 1, B, 2)]);
        assert_eq!(out.len(), usize::from(spec != "drop" && spec != "discard"), "{spec}");
        assert!(out.iter().all(|(_, p)| p.data() == udp(A, 1, B, 2).data()), "{spec} changes nothing");
        assert_eq!(kit.read("size").unwrap(), size, "{spec}");
    }
    for (config, inputs) in [
        ("", 1),
        ("drop", 2),
        ("drop, drop", 1),
        ("keep 0 2", 1),
        ("pass 2", 1),
        ("nosuch", 1),
        ("pattern 0 1", 1),
        ("pattern 1.2.3.4 - - - 0", 1),
        ("drop 1", 1),
        ("foo bar", 1),
        ("drop, CAPACITY x", 1),
        ("drop, CAPACITY -1", 1),
    ] {
        assert!(Kit::<IpRewriter>::with_ports(config, inputs, 2).is_err(), "{config}");
    }
}

#[test]
fn no_checksum_stays_none_and_fragments_start() {
    let mut kit = Kit::<IpRewriter>::with_ports("pattern 9.9.9.9 1024# 3.0.0.3 53 0 0", 1, 1).unwrap();
    let mut p = udp(A, 1, B, 2);
    p.data_mut()[26..28].fill(0);
    let out = kit.push(0, [p]);
    assert_eq!(
        (shown(&out)[0].as_str(), &out[0].1.data()[26..28]),
        ("0 9.9.9.9:1024 > 3.0.0.3:53", &[0, 0][..])
    );
    let mut first = udp(A, 1, B, 2);
    first.data_mut()[6] = 0x20;
    assert_eq!(kit.push(0, [first])[0].1.data()[20..22], [4, 0]);
}

#[test]
fn timeouts() {
    let config = "pattern 9.9.9.9 1024-65535 - - 0 1, UDP_TIMEOUT 30, UDP_STREAMING_TIMEOUT 60, TCP_TIMEOUT 100, TCP_DONE_TIMEOUT 10, TCP_NODATA_TIMEOUT 20, TCP_GUARANTEE 1";
    let mut kit = Kit::<IpRewriter>::with_ports(config, 1, 2).unwrap();
    let exp = |kit: &mut Kit<IpRewriter>, h: &str| {
        let t = kit.read(h).unwrap();
        t.lines().next().and_then(|l| l.rsplit_once("exp")).map(|e| e.1.to_string())
    };
    let port = kit.push(0, [udp(A, 5000, B, 20)]).len() as u16 * 5000;
    assert_eq!(exp(&mut kit, "udp_table").unwrap(), "30");
    kit.push(0, [udp(B, 20, N, port), udp(A, 5000, B, 20)]);
    assert_eq!(exp(&mut kit, "udp_table").unwrap(), "60");
    kit.at(59 * SECOND);
    assert_eq!(exp(&mut kit, "udp_table").unwrap(), "1");
    kit.at(60 * SECOND + 1000);
    assert_eq!(exp(&mut kit, "udp_table"), None);
    let (a, b, n) = ((A, 7000), (B, 80), (N, 7000));
    let mut step = |from, to, flags: &str, text: &[u8], want: &str| {
        assert_eq!(kit.push(0, [tcp(from, to, flags, 1, 1, text)]).len(), 1);
        assert_eq!(exp(&mut kit, "tcp_table").unwrap(), want, "{flags}");
    };
    step(a, b, "S", b"", "20");
    step(b, n, "SA", b"", "20");
    step(a, b, "A", b"", "20");
    step(a, b, "A", b"x", "20");
    step(b, n, "A", b"y", "100");
    step(a, b, "FA", b"", "100");
    step(b, n, "FA", b"", "10");
    step(a, b, "A", b"", "10");
    step(a, b, "S", b"", "20");
    step(b, n, "R", b"", "10");
    // The sweep removes expired flows, without any lookup.
    assert!(kit.next_timer().is_some());
    kit.expire().unwrap();
    assert_eq!(kit.next_timer(), None);
}

#[test]
fn capacity_and_guarantee() {
    let mut kit = Kit::<UdpRewriter>::with_ports(
        "pattern 9.9.9.9 1024-65535# - - 0 1, MAPPING_CAPACITY 1, GUARANTEE 0",
        1,
        2,
    )
    .unwrap();
    for i in 0..5 {
        assert_eq!(kit.push(0, [udp(A, i, B, 20)]).len(), 1);
    }
    assert_eq!(
        (kit.read("size").unwrap().as_str(), kit.read("mapping_failures").unwrap().as_str()),
        ("1", "0")
    );
    assert!(kit.read("table").unwrap().starts_with("(1.0.0.1, 4, "));
    let mut kit =
        Kit::<UdpRewriter>::with_ports("pattern 9.9.9.9 1024-65535# - - 0 1, CAPACITY 2", 1, 2).unwrap();
    assert_eq!(kit.push(0, (0..4).map(|i| udp(A, i, B, 20))).len(), 2);
    assert_eq!(kit.dropped(Reason::TableFull), 2);
    kit.at(3 * SECOND);
    kit.push(0, [udp(A, 1, B, 20)]);
    kit.at(5 * SECOND);
    // The last packet of the flow from port 0 is five seconds old, so this flow is evicted. The last packet of the flow
    // from port 1 is two seconds old, so this flow stays.
    assert_eq!(kit.push(0, [udp(A, 7, B, 20), udp(A, 8, B, 20)]).len(), 1);
    let table = kit.read("table").unwrap();
    assert!(
        table.contains("(1.0.0.1, 1,") && table.contains("(1.0.0.1, 7,") && table.lines().count() == 4,
        "{table}"
    );
    kit.write("capacity", "0").unwrap();
    assert_eq!(kit.read("size").unwrap(), "2", "guaranteed");
    kit.at(60 * SECOND);
    kit.write("capacity", "1").unwrap();
    assert_eq!(kit.read("size").unwrap(), "1");
    kit.write("capacity", "0").unwrap();
    assert!(kit.push(0, [udp(A, 9, B, 20)]).is_empty());
}

#[test]
fn annotations() {
    let mut kit = Kit::<UdpRewriter>::with_ports("keep 0 1, REPLY_ANNO PAINT, DST_ANNO false", 1, 2).unwrap();
    let mut p = udp(A, 1, B, 2);
    p.set_anno_u8(anno::find("PAINT", 1).unwrap(), 42);
    let out = kit.push(0, [p, udp(B, 2, A, 1)]);
    assert_eq!(out.iter().map(|(_, p)| p.paint()).collect::<Vec<_>>(), [42, 42]);
    assert!(out.iter().all(|(_, p)| p.dst_ip() == 0));
}

#[test]
fn every_length_and_any_header() {
    let mut random = Random::new(3, "cut");
    let whole = tcp((A, 1), (B, 2), "SA", 1, 1, b"0123456789012345678901234567890123456789");
    for n in 0..=60 {
        let mut kit = Kit::<IpRewriter>::with_ports("pattern 9.9.9.9 1024-65535# - - 0 1", 1, 2).unwrap();
        for _ in 0..20 {
            let mut p = packet(&whole.data()[..n]);
            p.set_network_header(0, 20.min(n));
            if n > 20 && random.below(2) == 0 {
                let at = random.below(n as u64) as usize;
                p.data_mut()[at] ^= random.next_u32() as u8;
            }
            let out = kit.push(0, [p]).len() as u64;
            assert!(out <= 1);
        }
        let none = kit.push(0, [packet(&whole.data()[..n])]);
        assert!(none.is_empty() && kit.dropped(Reason::NoIpHeader) >= 1);
    }
}

#[test]
fn batches_are_as_single_packets() {
    let run = |batch: usize| {
        let mut kit = Kit::<IpRewriter>::with_ports(
            "pattern 9.9.9.9 1024-1200 - - 0 1, CAPACITY 150, GUARANTEE 0",
            1,
            2,
        )
        .unwrap();
        let mut random = Random::new(9, "batches");
        let mut seen = Vec::new();
        let all: Vec<_> = (0..2000)
            .map(|_| match random.below(3) {
                0 => udp(A, random.below(300) as u16, B, random.below(3) as u16),
                1 => udp(B, random.below(3) as u16, N, 1024 + random.below(177) as u16),
                _ => tcp(
                    (A, random.below(50) as u16),
                    (B, 80),
                    ["S", "A", "FA", "R"][random.below(4) as usize],
                    1,
                    1,
                    b"z",
                ),
            })
            .map(|p| p.data().to_vec())
            .collect();
        for chunk in all.chunks(batch) {
            let out = kit.push(0, chunk.iter().map(|d| ip(d)));
            seen.extend(out.into_iter().map(|(o, p)| (o, p.data().to_vec())));
        }
        seen.sort();
        assert_eq!(seen.len() as u64 + kit.all_dropped(), 2000);
        (seen, sorted(&kit.read("udp_table").unwrap()).join("\n"), kit.all_dropped())
    };
    let one = run(1);
    for batch in [2, 3, 32, 64, 65, 256] {
        assert!(run(batch) == one, "batch {batch}");
    }
}

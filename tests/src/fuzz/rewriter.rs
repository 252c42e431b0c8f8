// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz target for rewriters with arbitrary patterns. Packets with correct checksums must keep correct
//! checksums.

use super::at_most;
use castanet_element::kit::{Kit, packet};
use castanet_element::prelude::*;
use castanet_elements::nat;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

/// Input specifications used in place of invalid ones.
const SPECS: &[&str] = &[
    "pattern 9.9.9.9 1024-1031 - - 0 1",
    "pattern 9.9.9.9-9.9.9.12# 5-6 - - 1 0",
    "pattern 9.9.9.0/30? - 0 1",
    "pattern - - 10.0.0.1 80 0 1",
    "pattern 10.0.0.1 7 10.0.0.2 7 0 0",
    "keep 0 1",
    "pass 1",
    "drop",
];

/// Builds a packet with few possible addresses and ports, so that replies match flows.
fn made([kind, addrs, sport, dport, what]: [u8; 5]) -> Option<Vec<u8>> {
    let ip = |n: u8| [[10, 0, 0, 1], [10, 0, 0, 2], [9, 9, 9, 9], [9, 9, 9, 10]][usize::from(n & 3)];
    let port = |n: u8| match n >> 7 {
        0 => u16::from(n & 7),
        _ => 1024 + u16::from(n & 15),
    };
    let (sport, dport, text) = (port(sport), port(dport), vec![what; usize::from(what & 15)]);
    let b = PacketBuilder::ipv4(ip(addrs), ip(addrs >> 2), 9);
    let mut out = Vec::new();
    match kind & 7 {
        0..=2 => b.udp(sport, dport).write(&mut out, &text),
        3 | 4 => {
            let mut b = b.tcp(sport, dport, u32::from(what), 9);
            for (bit, set) in [1u8, 2, 4, 8].into_iter().enumerate() {
                b = match (kind >> 3 & set != 0, bit) {
                    (true, 0) => b.syn(),
                    (true, 1) => b.ack(u32::from(what)),
                    (true, 2) => b.fin(),
                    (true, _) => b.rst(),
                    _ => b,
                };
            }
            b.write(&mut out, &text)
        }
        5 => b.icmpv4_echo_request(sport, 1).write(&mut out, &text),
        6 => b.icmpv4_echo_reply(dport, 1).write(&mut out, &text),
        _ => b.write(&mut out, etherparse::IpNumber(kind >> 3), &text),
    }
    .ok()?;
    Some(out)
}

/// Whether every checksum of a packet is correct.
fn is_right(data: &[u8]) -> bool {
    let Ok(s) = SlicedPacket::from_ip(data) else { return true };
    let Some(NetSlice::Ipv4(net)) = &s.net else { return true };
    let h = net.header().to_header();
    let transport = match &s.transport {
        Some(TransportSlice::Udp(u)) => {
            let t = u.to_header();
            t.checksum == 0 || t.calc_checksum_ipv4(&h, u.payload()).is_ok_and(|c| c == t.checksum)
        }
        Some(TransportSlice::Tcp(u)) => {
            let t = u.to_header();
            t.calc_checksum_ipv4(&h, u.payload()).is_ok_and(|c| c == t.checksum)
        }
        Some(TransportSlice::Icmpv4(i)) => i.icmp_type().calc_checksum(i.payload()) == i.checksum(),
        _ => true,
    };
    h.header_checksum == h.calc_header_checksum() && transport
}

fn drive<T: Build + Element>(text: &str, fallback: &str, write: &str, packets: &[u8]) {
    const ROOM: u64 = 20;
    let bounds = format!("CAPACITY {ROOM}, GUARANTEE 1, REPLY_ANNO 16");
    let with = |specs: &str| Kit::<T>::with_ports(&format!("{specs}, {bounds}"), 2, 2);
    let Ok(mut kit) = with(text).or_else(|_| with(fallback)) else { return };
    let (mut sent, mut out) = (0, 0);
    let (records, _) = packets.as_chunks::<8>();
    for [time, raw, rest @ ..] in records.iter().take(256) {
        kit.at(i64::from(sent as u32) * i64::from(*time) * 10_000_000);
        let [head @ .., last] = rest;
        let Some(mut data) = made(*head) else { continue };
        let good = raw & 1 == 0 && is_right(&data);
        if !good {
            // Truncate the packet, and change one of its remaining bytes.
            data.truncate(usize::from(*last));
            let n = data.len().max(1);
            if let Some(b) = data.get_mut(usize::from(*raw) % n) {
                *b ^= last;
            }
        }
        let mut p = packet(&data);
        if raw & 2 == 0 || good {
            p.set_network_header(0, data.first().map_or(20, |b| usize::from(b & 15) * 4));
        }
        sent += 1;
        for (_, p) in kit.push(usize::from(raw >> 7), [p]) {
            out += 1;
            assert!(!good || is_right(p.data()), "{text}: {:02x?} became {:02x?}", data, p.data());
        }
        if sent == 100 {
            let _ = kit.write("pattern0", write);
        }
    }
    assert_eq!(sent, out + kit.all_dropped(), "{text}");
    let mut number = |h: &str| kit.read(h).ok().and_then(|t| t.parse::<u64>().ok());
    let (size, entries, failures) = (number("size"), number("table_size"), number("mapping_failures"));
    assert!(
        size.is_some_and(|s| s <= ROOM && entries.is_some_and(|e| s <= e && e <= 2 * s)),
        "{text}: {size:?} {entries:?}"
    );
    assert!(failures.is_some_and(|f| f <= kit.all_dropped()), "{text}");
    for h in ["table", "udp_table", "tcp_table", "patterns", "pattern0", "pattern1"] {
        let _ = kit.read(h);
    }
    assert!(kit.write("clear", "").is_ok() && kit.read("table_size").as_deref() == Ok("0"));
}

/// Sends packets through a rewriter. The first byte of `data` selects the class of the rewriter. The second byte
/// selects default input specifications. Two texts follow, each ended by NUL. The first text has input specifications;
/// if they are invalid, the defaults are used. The second text is written to the handler `pattern0` after 100 packets.
/// The rest describes packets, each in 8 bytes.
pub fn rewriter(data: &[u8]) {
    let Some(([class, specs], rest)) = at_most(data, 4096).split_first_chunk() else { return };
    let mut parts = rest.splitn(3, |b| *b == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (text, write) = (text(), text());
    let packets = parts.next().unwrap_or_default();
    let spec = |n: u8| SPECS[usize::from(n) % SPECS.len()];
    let fallback = format!("{}, {}", spec(*specs), spec(specs / 8));
    match class % 6 {
        0 => drive::<nat::ip_rewriter::IpRewriter>(&text, &fallback, &write, packets),
        1 => drive::<nat::tcp_rewriter::TcpRewriter>(&text, &fallback, &write, packets),
        2 => drive::<nat::udp_rewriter::UdpRewriter>(&text, &fallback, &write, packets),
        3 => drive::<nat::ip_addr_rewriter::IpAddrRewriter>(&text, &fallback, &write, packets),
        4 => drive::<nat::ip_addr_pair_rewriter::IpAddrPairRewriter>(&text, &fallback, &write, packets),
        _ => drive::<nat::icmp_ping_rewriter::IcmpPingRewriter>(&text, &fallback, &write, packets),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of IPAddrRewriter, IPAddrPairRewriter and ICMPPingRewriter.

use super::*;
use crate::nat::icmp_ping_rewriter::IcmpPingRewriter;
use crate::nat::ip_addr_pair_rewriter::IpAddrPairRewriter;
use crate::nat::ip_addr_rewriter::IpAddrRewriter;
use castanet_element::kit::Kit;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const N: [u8; 4] = [9, 9, 9, 9];

#[test]
fn addresses() {
    let mut kit = Kit::<IpAddrRewriter>::with_ports("pattern 9.9.9.9 - 0 1, drop", 2, 2).unwrap();
    let out =
        kit.push(0, [udp(A, 10, B, 20), tcp((A, 1), (B, 2), "S", 1, 0, b""), udp(A, 5, [3, 0, 0, 3], 5)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect();
    assert_eq!(shown, ["0 9.9.9.9:10 > 2.0.0.2:20", "0 9.9.9.9:1 > 2.0.0.2:2", "0 9.9.9.9:5 > 3.0.0.3:5"]);
    assert_eq!(out[0].1.dst_addr().octets(), B);
    let out = kit.push(1, [udp(B, 20, N, 10), udp([7, 7, 7, 7], 1, N, 9)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect();
    assert_eq!(shown, ["1 2.0.0.2:20 > 1.0.0.1:10", "1 7.7.7.7:1 > 1.0.0.1:9"]);
    assert_eq!(out[0].1.dst_addr().octets(), A);
    let table = kit.read("table").unwrap();
    assert_eq!(table, "1.0.0.1 => 9.9.9.9 [*0 1] i0 exp7200\n9.9.9.9 => 1.0.0.1 [0 *1] i0 exp7200\n");
    // Later fragments and all protocols are rewritten. Where a whole packet has its checksum, a later
    // fragment has data, which stays unchanged.
    let mut later = udp(A, 10, B, 20);
    later.data_mut()[7] = 9;
    castanet_wire::Ipv4Header::from_prefix_mut(later.data_mut()).unwrap().set_checksum20();
    let out = kit.push(0, [later]);
    assert_eq!(show(&out[0].1), "9.9.9.9 > 2.0.0.2");
    assert_eq!(out[0].1.data()[20..], udp(A, 10, B, 20).data()[20..]);
    let out = kit.push(0, [echo(A, B, true, 7), echo(B, N, false, 7)]);
    let shown: Vec<_> = out.iter().map(|(_, p)| show(p)).collect();
    assert_eq!(shown, ["9.9.9.9 > 2.0.0.2 icmp 8", "2.0.0.2 > 1.0.0.1 icmp 0"]);
    assert_eq!(kit.read("size").unwrap(), "1");
    assert!(kit.push(1, [udp(B, 1, [8, 8, 8, 8], 1)]).is_empty());
    assert!(Kit::<IpAddrRewriter>::with_ports("pattern 9.9.9.9 3.0.0.3 0 1", 1, 2).is_err());
    // With a range, each host gets an address of its own.
    let mut kit = Kit::<IpAddrRewriter>::with_ports("pattern 9.9.9.0/30# - 0 0", 1, 1).unwrap();
    let out = kit.push(0, (1..4).map(|i| udp([1, 0, 0, i], 1, B, 2)));
    let shown: Vec<_> = out.iter().map(|(_, p)| show(p)).collect();
    assert_eq!(shown, ["9.9.9.1:1 > 2.0.0.2:2", "9.9.9.2:1 > 2.0.0.2:2"]);
    assert_eq!(kit.dropped(Reason::PatternFull), 1);
}

#[test]
fn pairs() {
    let mut kit = Kit::<IpAddrPairRewriter>::with_ports("pattern 9.9.9.9 3.0.0.3 0 1", 1, 2).unwrap();
    let out = kit.push(0, [udp(A, 10, B, 20), udp([3, 0, 0, 3], 20, N, 10)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {}", show(p))).collect();
    assert_eq!(shown, ["0 9.9.9.9:10 > 3.0.0.3:20", "1 2.0.0.2:20 > 1.0.0.1:10"]);
    let table = kit.read("table").unwrap();
    assert!(table.starts_with("(1.0.0.1, 2.0.0.2) => (9.9.9.9, 3.0.0.3) [*0 1] i0 exp7200\n"), "{table}");
}

fn echo(src: [u8; 4], dst: [u8; 4], request: bool, id: u16) -> Packet {
    let mut data = Vec::new();
    let b = PacketBuilder::ipv4(src, dst, 9);
    let b = if request { b.icmpv4_echo_request(id, 3) } else { b.icmpv4_echo_reply(id, 3) };
    b.write(&mut data, b"abc").unwrap();
    ip(&data)
}

fn id(p: &Packet) -> u16 {
    u16::from_be_bytes([p.data()[24], p.data()[25]])
}

#[test]
fn pings() {
    let mut kit = Kit::<IcmpPingRewriter>::with_ports("pattern 9.9.9.9 1024-2000# - - 0 1", 1, 2).unwrap();
    let out = kit.push(0, [echo(A, B, true, 7), echo([1, 0, 0, 2], B, true, 7), echo(A, B, true, 7)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {} {}", show(p), id(p))).collect();
    let first = "0 9.9.9.9 > 2.0.0.2 icmp 8 1024";
    assert_eq!(shown, [first, "0 9.9.9.9 > 2.0.0.2 icmp 8 1025", first]);
    let out = kit.push(0, [echo(B, N, false, 1025), echo(B, N, false, 1024)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {} {}", show(p), id(p))).collect();
    assert_eq!(shown, ["1 2.0.0.2 > 1.0.0.2 icmp 0 7", "1 2.0.0.2 > 1.0.0.1 icmp 0 7"]);
    let table = kit.read("table").unwrap();
    assert!(
        table.contains("(1.0.0.1, 7, 2.0.0.2, 0) => (9.9.9.9, 1024, 2.0.0.2, 0) [*0 1] i0 exp300"),
        "{table}"
    );
    // A reply does not begin a flow, and a request is not taken for a reply, even if its identifier is 0.
    assert!(kit.push(0, [echo(A, B, false, 9)]).is_empty());
    assert_eq!(kit.dropped(Reason::NoMapping), 1);
    let mut zero = Kit::<IcmpPingRewriter>::with_ports("pattern 9.9.9.9 0 3.0.0.3 5 0 1", 1, 2).unwrap();
    let out =
        zero.push(0, [echo(A, B, true, 7), echo([3, 0, 0, 3], N, true, 0), echo([3, 0, 0, 3], N, false, 0)]);
    let shown: Vec<_> = out.iter().map(|(o, p)| format!("{o} {} {}", show(p), id(p))).collect();
    assert_eq!(shown, ["0 9.9.9.9 > 3.0.0.3 icmp 8 0", "1 2.0.0.2 > 1.0.0.1 icmp 0 7"]);
    let mut other = echo(A, B, true, 7);
    other.data_mut()[20] = 13;
    assert!(kit.push(0, [other, udp(A, 1, B, 1)]).is_empty());
    assert_eq!(kit.dropped(Reason::NotRewritable), 2);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that rewriters never read ports from later fragments, which have data behind their IP header.

use super::offload::unfinished;
use super::*;
use crate::nat::ftp_port_mapper::FtpPortMapper;
use crate::nat::icmp_ping_rewriter::IcmpPingRewriter;
use crate::nat::icmp_rewriter::IcmpRewriter;
use crate::nat::ip_addr_pair_rewriter::IpAddrPairRewriter;
use crate::nat::ip_addr_rewriter::IpAddrRewriter;
use crate::nat::ip_rewriter::IpRewriter;
use crate::nat::tcp_rewriter::TcpRewriter;
use crate::nat::udp_rewriter::UdpRewriter;
use castanet_element::kit::Kit;
use castanet_wire::Ipv4Header;

const A: [u8; 4] = [1, 0, 0, 1];
const B: [u8; 4] = [2, 0, 0, 2];
const N: [u8; 4] = [9, 9, 9, 9];
const ROUTER: [u8; 4] = [5, 5, 5, 5];

fn copy(p: &Packet) -> Packet {
    ip(p.data())
}

/// Returns a copy of a packet with another fragment field (flags and offset).
fn with_word(p: &Packet, word: u16) -> Packet {
    let mut p = copy(p);
    let h = Ipv4Header::from_prefix_mut(p.data_mut()).unwrap();
    h.fragment.set(word);
    h.set_checksum20();
    p
}

/// Returns copies of a packet as later fragments: with each single bit of the offset and with all bits set,
/// each as the last fragment and as an earlier one.
fn later(p: &Packet) -> Vec<Packet> {
    let offsets = (0..13).map(|n| 1 << n).chain([0x1fff]);
    offsets.flat_map(|o| [o, 0x2000 | o]).map(|word| with_word(p, word)).collect()
}

fn ping(src: [u8; 4], dst: [u8; 4], request: bool, id: u16) -> Packet {
    let mut data = Vec::new();
    let b = PacketBuilder::ipv4(src, dst, 9);
    let b = if request { b.icmpv4_echo_request(id, 3) } else { b.icmpv4_echo_reply(id, 3) };
    b.write(&mut data, b"abcdefgh").unwrap();
    ip(&data)
}

/// An ICMP error that quotes a whole packet.
fn error(about: &Packet) -> Packet {
    let to = about.data()[12..16].try_into().unwrap();
    let mut data = Vec::new();
    let kind = etherparse::Icmpv4Type::Unknown { type_u8: 3, code_u8: 1, bytes5to8: [0; 4] };
    PacketBuilder::ipv4(ROUTER, to, 64).icmpv4(kind).write(&mut data, about.data()).unwrap();
    ip(&data)
}

/// Checks that later fragments with the bytes of a flow's packets belong to no flow and make none. Inputs drop
/// them or pass them unchanged.
fn not_of_a_flow<T: Build + Element>(forward: &Packet, reply: &Packet) {
    let mut kit = Kit::<T>::with_ports("pattern 9.9.9.9 1024# - - 0 1, drop, pass 2", 3, 3).unwrap();
    assert!(kit.push(0, later(forward)).is_empty(), "no flow yet");
    assert_eq!(kit.read("size").unwrap(), "0");
    for p in [forward, reply] {
        assert_eq!(kit.push(0, [copy(p)]).len(), 1);
        let first = with_word(p, 0x2000);
        assert_ne!(kit.push(0, [copy(&first)])[0].1.data(), first.data(), "the first fragment has ports");
    }
    let refused = kit.dropped(Reason::NotRewritable);
    for p in [forward, reply] {
        let fragments = later(p);
        // Batches and single packets take different paths.
        assert!(kit.push(0, fragments.iter().map(copy)).is_empty());
        assert!(fragments.iter().all(|f| kit.push(1, [copy(f)]).is_empty()));
        let out = kit.push(2, fragments.iter().map(copy));
        assert_eq!(out.len(), fragments.len());
        for ((output, out), f) in out.iter().zip(&fragments) {
            assert_eq!((*output, out.data()), (2, f.data()));
        }
    }
    assert_eq!(kit.dropped(Reason::NotRewritable) - refused, 4 * 28);
    assert_eq!((kit.all_dropped(), kit.read("size").unwrap().as_str()), (5 * 28, "1"));
}

#[test]
fn have_no_ports() {
    let datagrams = (udp(A, 10, B, 20), udp(B, 20, N, 1024));
    let segments = (tcp((A, 10), (B, 20), "S", 1, 0, b""), tcp((B, 20), (N, 1024), "SA", 1, 2, b""));
    not_of_a_flow::<IpRewriter>(&datagrams.0, &datagrams.1);
    not_of_a_flow::<IpRewriter>(&segments.0, &segments.1);
    not_of_a_flow::<UdpRewriter>(&datagrams.0, &datagrams.1);
    not_of_a_flow::<TcpRewriter>(&segments.0, &segments.1);
    not_of_a_flow::<IcmpPingRewriter>(&ping(A, B, true, 7), &ping(B, N, false, 1024));
}

/// Checks that later fragments get new addresses and keep every byte of their data.
fn new_addresses<T: Build + Element>(pattern: &str) {
    let mut kit = Kit::<T>::with_ports(pattern, 1, 2).unwrap();
    let segment = |from, to| tcp(from, to, "A", 1, 1, b"text");
    for (p, ends) in [
        (udp(A, 10, B, 20), "0 9.9.9.9 > 2.0.0.2"),
        (segment((A, 10), (B, 20)), "0 9.9.9.9 > 2.0.0.2"),
        (udp(B, 20, N, 10), "1 2.0.0.2 > 1.0.0.1"),
        (segment((B, 20), (N, 10)), "1 2.0.0.2 > 1.0.0.1"),
    ] {
        let fragments = later(&p);
        let out = kit.push(0, fragments.iter().map(copy));
        assert_eq!(out.len(), fragments.len());
        // A partial checksum makes no sense on a later fragment, so nothing changes at the offset that it
        // names.
        let marked = fragments.iter().flat_map(|f| {
            let mut f = copy(f);
            f.set_offload(unfinished(p.data(), 0, 0).offload());
            kit.push(0, [f])
        });
        for ((output, out), f) in out.into_iter().chain(marked).zip(fragments.iter().cycle()) {
            assert_eq!(format!("{output} {}", show(&out)), ends);
            assert_eq!((&out.data()[6..8], &out.data()[20..]), (&f.data()[6..8], &f.data()[20..]));
        }
    }
    assert_eq!(kit.read("size").unwrap(), "1");
}

#[test]
fn get_new_addresses() {
    new_addresses::<IpAddrRewriter>("pattern 9.9.9.9 - 0 1");
    new_addresses::<IpAddrPairRewriter>("pattern 9.9.9.9 - 0 1");
}

#[test]
fn of_errors_and_in_errors() {
    let elements = [
        ("icmp", "ICMPRewriter"),
        ("rw", "IPRewriter"),
        ("ping", "ICMPPingRewriter"),
        ("by_addr", "ICMPRewriter"),
        ("addr", "IPAddrRewriter"),
    ];
    let mut rig = Rig::new(&elements);
    let mut icmp: IcmpRewriter = rig.build("icmp", "rw ping", (1, 2)).unwrap();
    let mut rw: IpRewriter = rig.build("rw", "pattern 9.9.9.9 1024# - - 0 1", (1, 2)).unwrap();
    let mut pings: IcmpPingRewriter = rig.build("ping", "pattern 9.9.9.9 1024# - - 0 1", (1, 2)).unwrap();
    let mut by_addr: IcmpRewriter = rig.build("by_addr", "addr", (1, 2)).unwrap();
    let mut addr: IpAddrRewriter = rig.build("addr", "pattern 9.9.9.9 - 0 1", (1, 2)).unwrap();
    rig.init("icmp", &mut icmp).unwrap();
    rig.init("rw", &mut rw).unwrap();
    rig.init("ping", &mut pings).unwrap();
    rig.init("by_addr", &mut by_addr).unwrap();
    rig.init("addr", &mut addr).unwrap();
    for p in [udp(A, 10, B, 20), tcp((A, 11), (B, 80), "SA", 1, 9, b"data"), ping(A, B, true, 7)] {
        let sent = match p.data()[9] {
            1 => rig.push("ping", &mut pings, 0, vec![copy(&p)]).remove(0).1,
            _ => rig.push("rw", &mut rw, 0, vec![copy(&p)]).remove(0).1,
        };
        let good = error(&sent);
        let (out, back) = rig.push("icmp", &mut icmp, 0, vec![copy(&good)]).remove(0);
        assert_eq!((out, show(&back), &back.data()[28..]), (0, "5.5.5.5 > 1.0.0.1 icmp 3".into(), p.data()));
        // Fragments of an error stay unchanged. Errors that quote a later fragment stay unchanged too, because no flow
        // is known for a later fragment.
        let first = with_word(&good, 0x2000);
        let strange =
            later(&good).into_iter().chain([first]).chain(later(&sent).into_iter().map(|f| error(&f)));
        for e in strange {
            let before = e.data().to_vec();
            let (out, e) = rig.push("icmp", &mut icmp, 0, vec![e]).remove(0);
            assert_eq!((out, e.data()), (1, &before[..]));
        }
        // A rewriter of addresses alone needs no ports to find the flow.
        for f in later(&p) {
            let sent = rig.push("addr", &mut addr, 0, vec![copy(&f)]).remove(0).1;
            let (out, e) = rig.push("by_addr", &mut by_addr, 0, vec![error(&sent)]).remove(0);
            assert_eq!((out, show(&e), &e.data()[28..]), (0, "5.5.5.5 > 1.0.0.1 icmp 3".into(), f.data()));
        }
    }
}

#[test]
fn have_no_commands() {
    let mut rig = Rig::new(&[("ftp", "FTPPortMapper"), ("rw", "TCPRewriter")]);
    let mut ftp: FtpPortMapper = rig.build("ftp", "rw, rw, 0", (1, 1)).unwrap();
    let mut rw: TcpRewriter = rig.build("rw", "pattern 9.9.9.9 1024# - - 0 1", (1, 2)).unwrap();
    rig.init("ftp", &mut ftp).unwrap();
    rig.init("rw", &mut rw).unwrap();
    let (client, server) = ((A, 5000), (B, 21));
    rig.push("rw", &mut rw, 0, vec![tcp(client, server, "S", 0, 0, b"")]);
    let whole = tcp(client, server, "A", 1, 1, b"PORT 1,0,0,1,19,137\r\n");
    // The first fragment does not have the whole segment, so its checksum could not be updated.
    for mut p in later(&whole).into_iter().chain([with_word(&whole, 0x2000)]) {
        let before = p.data().to_vec();
        assert_eq!(rig.with("ftp", 1, |cx| ftp.action(&mut p, cx)).0, Verdict::Next);
        assert_eq!(p.data(), before);
    }
    let mut p = whole;
    assert_eq!(rig.with("ftp", 1, |cx| ftp.action(&mut p, cx)).0, Verdict::Next);
    assert!(p.data().ends_with(b"PORT 9,9,9,9,4,0\r\n"));
}

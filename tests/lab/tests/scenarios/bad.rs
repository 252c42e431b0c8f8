// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that must not be forwarded, and frames of unusual length.

use crate::net::{A, Net, QUIET, R0, both, castanet, from_a, hosts, ports, through};
use castanet_lab::frames::{self, Ip, checksum, icmp_in, ip_in};
use castanet_lab::router::configuration;
use castanet_lab::{Router, RouterKind};

/// Builds a valid packet, replaces some header bytes, and corrects the checksum.
fn forged(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut packet = Ip::udp("10.0.0.2", "10.0.1.2", b"payload").bytes();
    packet.splice(at..at + bytes.len(), bytes.iter().copied());
    packet.splice(10..12, [0, 0]);
    let sum = checksum(&packet[..20]);
    packet.splice(10..12, sum.to_be_bytes());
    packet
}

/// Returns frames that the router must drop. Linux recognises all invalid sources only with reverse-path
/// filtering, which would break other scenarios. So if Linux is the router, some sources are left out.
fn nothing(kind: RouterKind) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    // Wrong checksum, version, header length and total length (RFC 1812, 5.2.2).
    let mut wrong_sum = Ip::udp("10.0.0.2", "10.0.1.2", b"payload").bytes();
    wrong_sum[10] ^= 0x40;
    all.push(wrong_sum);
    all.push(forged(0, &[0x65]));
    all.push(forged(0, &[0x44]));
    all.push(forged(0, &[0x4f]));
    all.push(forged(2, &[0, 19]));
    all.push(forged(2, &[0x10, 0]));
    // Invalid source addresses (RFC 1812, 5.3.7).
    let always = ["127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0"];
    let ours = ["10.0.0.255", "10.0.1.255", "0.1.2.3", "240.0.0.1"];
    for from in always.into_iter().chain(ours.into_iter().filter(|_| kind != RouterKind::Kernel)) {
        all.push(Ip::udp(from, "10.0.1.2", b"martian").bytes());
    }
    // Linux does not treat class E destinations specially; it has no route to them.
    let always = ["127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.5"];
    for to in always.into_iter().chain(["240.0.0.1"].into_iter().filter(|_| kind != RouterKind::Kernel)) {
        all.push(Ip::udp("10.0.0.2", to, b"martian").bytes());
    }
    all.iter().map(|packet| frames::ethernet(R0, A, 0x0800, packet)).collect()
}

#[test]
fn martians_and_broken_headers_are_dropped() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let before = through(&mut a, &mut b, &nothing(kind));
        let leaked: Vec<_> = before.iter().filter(|f| f.bytes.get(12..14) == Some(&[8, 0])).collect();
        assert!(leaked.is_empty(), "{kind:?}: {leaked:?}");
        // No ICMP error is sent about the dropped packets.
        let said: Vec<_> = a.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).collect();
        assert!(said.iter().all(|m| m.ip.from.to_string() == "10.0.1.2"), "{kind:?}: {said:?}");
    }
}

#[test]
fn directed_broadcasts_are_not_forwarded() {
    // RFC 1812, 5.3.5.2 requires routers to forward directed broadcasts by default. RFC 2644 reverses this default.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let frames =
            ["10.0.1.255", "10.0.1.0", "10.0.0.255"].map(|to| from_a(&Ip::udp("10.0.0.2", to, b"all")));
        let before = through(&mut a, &mut b, &frames);
        let leaked: Vec<_> = before.iter().filter_map(|f| ip_in(&f.bytes)).collect();
        assert!(leaked.is_empty(), "{kind:?}: {leaked:?}");
    }
}

#[test]
fn link_broadcasts_are_not_forwarded() {
    // RFC 1812, 5.3.4.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let packet = Ip { id: 7, ..Ip::udp("10.0.0.2", "10.0.1.2", b"") }.bytes();
        let frames =
            [frames::BROADCAST, [1, 0, 0x5e, 0, 0, 5]].map(|to| frames::ethernet(to, A, 0x0800, &packet));
        let before = through(&mut a, &mut b, &frames);
        assert_eq!(before.iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "{kind:?}");
    }
}

#[test]
fn short_frames_do_no_harm() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let whole = from_a(&Ip::udp("10.0.0.2", "10.0.1.2", b"payload"));
        let question =
            frames::arp(1, (A, frames::address("10.0.0.2")), ([0; 6], frames::address("10.0.0.1")));
        let question = frames::ethernet(frames::BROADCAST, A, 0x0806, &question);
        let mut cut: Vec<Vec<u8>> = (14..whole.len()).map(|n| whole[..n].to_vec()).collect();
        cut.extend((14..question.len()).map(|n| question[..n].to_vec()));
        let before = through(&mut a, &mut b, &cut);
        assert_eq!(before.iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "{kind:?}");
    }
}

#[test]
fn padding_is_not_forwarded() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        // The shortest packet in a minimum-size frame, and one with long padding.
        let packet = Ip::udp("10.0.0.2", "10.0.1.2", b"");
        let (mut padded, mut long) = (from_a(&packet), from_a(&packet));
        padded.resize(60, 0xee);
        long.resize(1514, 0xee);
        let got = through(&mut a, &mut b, &[padded, long]);
        let lengths: Vec<_> =
            got.iter().filter(|f| ip_in(&f.bytes).is_some()).map(|f| f.bytes.len()).collect();
        assert_eq!(lengths, [42, 42], "{kind:?}");
    }
}

#[test]
fn sources_from_elsewhere_are_dropped_where_asked() {
    // RFC 1812, 5.3.8.
    let Some(lab) = crate::net::lab() else { return };
    let (a, r, b) = hosts(&lab);
    let text = configuration(
        &r,
        castanet(),
        &ports(1500, 1500),
        &[("10.7.0.0/16", "10.0.0.2")],
        &["--check-sources"],
    );
    let _r = Router::run(r, castanet(), &["-e", &text], 2);
    a.run("ping -c 1 -W 60 10.0.1.2").good();
    a.run("ping -c 1 -W 60 10.0.1.1").good();
    let (mut a, mut b) = (a.wire("eth0"), b.wire("eth0"));
    // Packets with invalid sources: a host behind the other interface, an address without a route, and the router's own
    // addresses. The last packet has a valid source: an address in a network behind host a, to which the router has a
    // route.
    let liars = ["10.0.1.9", "192.0.2.1", "10.0.0.1", "10.0.1.1"];
    let frames: Vec<_> =
        liars.into_iter().chain(["10.7.1.1"]).map(|from| from_a(&Ip::udp(from, "10.0.1.2", b""))).collect();
    let got = through(&mut a, &mut b, &frames);
    let got: Vec<_> = got.iter().filter_map(|f| ip_in(&f.bytes)).map(|ip| ip.from.to_string()).collect();
    assert_eq!(got, ["10.7.1.1"]);
    // No ICMP error is sent about the dropped packets.
    assert!(
        a.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).all(|m| m.ip.from.to_string() == "10.0.1.2")
    );
    assert!(b.rest(QUIET).iter().all(|f| icmp_in(&f.bytes).is_none()));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links with different MTUs.

use crate::net::{Net, QUIET, both, lab, ours};
use castanet_lab::frames::{icmp_in, ip_in};
use std::time::Duration;

#[test]
fn too_big_and_not_to_be_cut() {
    for kind in both() {
        let Some(lab) = lab() else { return };
        let net = Net::within(lab, kind, (1500, 1000), &[]);
        let (mut a, mut b) = net.wires();
        let text = net.a.run("ping -M do -s 1400 -c 1 -W 60 10.0.1.2").stdout;
        assert!(
            text.contains("From 10.0.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1000)"),
            "{kind:?}: {text}"
        );
        let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind == (3, 4)));
        // RFC 1191, section 4: the MTU is in the lower half of the unused field.
        assert_eq!(error.rest, [0, 0, 0x03, 0xe8]);
        // A packet of exactly the MTU passes.
        net.a.ip("route flush cache");
        let text = net.a.run("ping -M do -s 972 -c 1 -W 60 10.0.1.2").good();
        assert!(text.contains("1 received"), "{kind:?}: {text}");
        let lengths: Vec<_> =
            b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).map(|ip| ip.bytes.len()).collect();
        assert_eq!(lengths, [1000], "{kind:?}");
    }
}

#[test]
fn fragments_are_put_together_by_the_receiver() {
    for kind in both() {
        let Some(lab) = lab() else { return };
        let net = Net::within(lab, kind, (1500, 1000), &[]);
        let (_, mut b) = net.wires();
        // The host sends fragments with payloads of 1480, 1480 and 48 bytes. The router fragments them again:
        // payloads are multiples of 8 bytes, at most 980 (RFC 791, 3.2).
        net.a.ping(2, "-M dont -s 3000 10.0.1.2");
        let pieces: Vec<_> = b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).collect();
        let shapes: Vec<_> = pieces
            .iter()
            .map(|p| (p.bytes.len(), p.header.fragment_offset.value() * 8, p.header.more_fragments))
            .collect();
        let one = [(996, 0, true), (524, 976, true), (996, 1480, true), (524, 2456, true), (68, 2960, false)];
        assert_eq!(shapes, [one, one].concat(), "{kind:?}");
    }
}

#[test]
fn jumbo_frames_cross_whole() {
    for kind in both() {
        let Some(lab) = lab() else { return };
        let net = Net::within(lab, kind, (9000, 9000), &[]);
        let (_, mut b) = net.wires();
        net.a.ping(2, "-M do -s 8972 10.0.1.2");
        let lengths: Vec<_> =
            b.rest(QUIET).iter().filter_map(|f| ip_in(&f.bytes)).map(|ip| ip.bytes.len()).collect();
        assert_eq!(lengths, [9000, 9000], "{kind:?}");
    }
}

#[test]
fn tcp_finds_the_mtu_of_the_path() {
    let Some(lab) = lab() else { return };
    let net = Net::within(lab, ours(), (1500, 1000), &[]);
    // Only the router is configured with an MTU of 1000 for its second link; the hosts are not.
    net.r.host.ip("link set eth1 mtu 1500");
    net.b.ip("link set eth0 mtu 1500");
    let (_, mut b) = net.wires();
    let mut server = net.b.spawn("iperf3 -s -1 --forceflush");
    server.wait_for("listening", Duration::from_secs(200));
    net.a.run("iperf3 -c 10.0.1.2 -n 200K -J").good();
    assert!(server.wait(Duration::from_secs(200)).ok());
    let known = net.a.ip("route get 10.0.1.2");
    assert!(known.contains("mtu 1000"), "{known}");
    for frame in b.rest(QUIET) {
        let Some(ip) = ip_in(&frame.bytes) else { continue };
        assert!(ip.bytes.len() <= 1000 || frame.partial, "{} bytes", ip.bytes.len());
        assert!(!ip.header.is_fragmenting_payload(), "{ip:?}");
    }
}

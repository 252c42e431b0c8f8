// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMP errors about packets that the router cannot forward, and cases without an error.

use crate::net::{A, LAST, Net, QUIET, R0, both, from_a, from_b, ours};
use castanet_lab::frames::{self, BROADCAST, IcmpIn, Ip, address, icmp_in, ip_in, packet};
use castanet_lab::{RouterKind, Wire};
use std::time::Duration;

/// Waits for the next ICMP error from the router.
#[track_caller]
fn error(wire: &mut Wire) -> IcmpIn {
    wire.expect("error", |f| {
        icmp_in(&f.bytes).filter(|m| matches!(m.kind.0, 3 | 5 | 11 | 12) && m.ip.from.octets()[3] == 1)
    })
}

/// Returns the identification of the packet that an error concerns.
fn about(error: &IcmpIn) -> u16 {
    packet(&error.payload).map_or(0, |p| p.header.identification)
}

#[test]
fn time_to_live_runs_out() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let sent = Ip { ttl: 1, id: 77, ..Ip::udp("10.0.0.2", "10.0.1.2", &[0xab; 600]) };
        let lives = Ip { ttl: 2, id: 78, ..sent.clone() };
        a.send_all(&[from_a(&sent), from_a(&lives)]);
        let error = error(&mut a);
        assert_eq!((error.kind, error.rest), ((11, 0), [0; 4]), "{kind:?}");
        assert_eq!((error.ip.from, error.ip.to), (address("10.0.0.1"), address("10.0.0.2")));
        // Precedence 6 (RFC 1812, 4.3.2.5).
        assert_eq!(error.ip.header.dscp.value() >> 3, 6, "{kind:?}");
        // The error quotes as much of the packet as fits into 576 bytes (RFC 1812, 4.3.2.3), unmodified
        // (4.3.2.4, 5.3.1).
        assert_eq!(error.ip.bytes.len(), 576, "{kind:?}");
        assert_eq!(error.payload, sent.bytes()[..548], "{kind:?}");
        // The packet with the larger time to live arrives, with its time to live decremented.
        let arrived = b.expect("packet", |f| ip_in(&f.bytes).filter(|ip| ip.header.identification == 78));
        assert_eq!(arrived.header.time_to_live, 1);
        assert_eq!(arrived.payload, lives.payload);
    }
}

#[test]
fn errors_come_from_the_interface_that_they_leave_by() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        a.send(&from_a(&Ip { ttl: 1, ..Ip::udp("10.0.0.2", "10.0.1.2", b"") }));
        assert_eq!(error(&mut a).ip.from, address("10.0.0.1"), "{kind:?}");
        b.send(&from_b(&Ip { ttl: 1, ..Ip::udp("10.0.1.2", "10.0.0.2", b"") }));
        assert_eq!(error(&mut b).ip.from, address("10.0.1.1"), "{kind:?}");
        // A packet that arrives on eth0 with a source behind eth1: the error is sent on eth1, from the address
        // of eth1.
        a.send(&from_a(&Ip { ttl: 1, ..Ip::udp("10.0.1.2", "10.0.1.7", b"") }));
        assert_eq!(error(&mut b).ip.from, address("10.0.1.1"), "{kind:?}");
    }
}

#[test]
fn no_route() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        a.send(&from_a(&Ip { id: 5, ..Ip::udp("10.0.0.2", "172.16.0.1", b"") }));
        let error = error(&mut a);
        assert_eq!((error.kind, about(&error)), ((3, 0), 5), "{kind:?}");
        assert_eq!(error.ip.from, address("10.0.0.1"));
    }
}

#[test]
fn silent_neighbours_are_unreachable() {
    // RFC 1812, 5.2.7.1: a neighbour that has not answered ARP for some seconds is unreachable, and every
    // sender gets an error.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let lost = |id| from_a(&Ip { id, ..Ip::udp("10.0.0.2", "10.0.1.77", b"anybody?") });
        a.send_all(&[lost(1), lost(2)]);
        let mut told = Vec::new();
        for _ in 0..2 {
            let error = a.find(Duration::from_secs(200), |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 3));
            let error = error.unwrap_or_else(|| panic!("{kind:?}: nothing is said"));
            assert_eq!((error.kind, error.ip.from), ((3, 1), address("10.0.0.1")), "{kind:?}");
            told.push(about(&error));
        }
        assert_eq!(told, [1, 2], "{kind:?}");
        // Other packets are forwarded as before.
        let arrived = crate::net::through(&mut a, &mut b, &[]);
        assert!(arrived.iter().all(|f| ip_in(&f.bytes).is_none()));
    }
}

#[test]
fn the_router_has_no_such_port_or_protocol() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        for to in ["10.0.0.1", "10.0.1.1"] {
            let closed = Ip::udp("10.0.0.2", to, b"anybody?");
            a.send(&from_a(&closed));
            assert_eq!(error(&mut a).kind, (3, 3), "{kind:?}");
            a.send(&from_a(&Ip { protocol: 253, ..closed }));
            assert_eq!(error(&mut a).kind, (3, 2), "{kind:?}");
        }
    }
}

/// Packets that cannot be forwarded, but about which no ICMP error may be sent (RFC 1812, 4.3.2.7).
fn sacrosanct(kind: RouterKind) -> Vec<Vec<u8>> {
    let dying = |ip: Ip, id| Ip { ttl: 1, id, ..ip };
    let good = Ip::udp("10.0.0.2", "10.0.1.2", b"payload");
    let mut all = Vec::new();
    // ICMP errors.
    for (i, kind) in [3u8, 4, 5, 11, 12].into_iter().enumerate() {
        let quoted = &good.bytes()[..28];
        all.push(from_a(&dying(Ip::icmp("10.0.0.2", "10.0.1.2", kind, 0, [0; 4], quoted), 100 + i as u16)));
    }
    // Packets to a group address, by IP or Ethernet.
    for (i, to) in ["10.0.1.255", "10.0.0.255", "255.255.255.255", "224.0.0.5"].into_iter().enumerate() {
        all.push(from_a(&dying(Ip::udp("10.0.0.2", to, b""), 110 + i as u16)));
    }
    for (i, to) in [BROADCAST, [1, 0, 0x5e, 0, 0, 5]].into_iter().enumerate() {
        all.push(frames::ethernet(to, A, 0x0800, &dying(good.clone(), 120 + i as u16).bytes()));
    }
    // Later fragments.
    all.push(from_a(&Ip { offset: 100, ..dying(good.clone(), 130) }));
    all.push(from_a(&Ip { offset: 1, more: true, ..dying(good, 131) }));
    // Packets whose source address does not belong to a single host. Linux recognises the last two only with
    // a filter that would break other scenarios.
    let nobody = ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.255", "240.0.0.1"];
    for (i, from) in nobody.into_iter().take(if kind == RouterKind::Kernel { 4 } else { 6 }).enumerate() {
        all.push(from_a(&dying(Ip::udp(from, "10.0.1.2", b""), 140 + i as u16)));
    }
    all
}

#[test]
fn no_error_about_errors_groups_fragments_and_invalid_sources() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let mut frames = sacrosanct(kind);
        // The last packet is a first fragment, so it causes an error. If this error arrives first, the packets before
        // have caused none.
        frames.push(from_a(&Ip { ttl: 1, id: LAST, more: true, ..Ip::udp("10.0.0.2", "10.0.1.2", &[0; 8]) }));
        a.send_all(&frames);
        let error = error(&mut a);
        assert_eq!((error.kind, about(&error)), ((11, 0), LAST), "{kind:?}: {error:?}");
        // No error went to another host, and no packet was forwarded.
        let leaked: Vec<_> = b.rest(QUIET).into_iter().filter_map(|f| ip_in(&f.bytes)).collect();
        assert!(leaked.is_empty(), "{kind:?}: {leaked:?}");
    }
}

#[test]
fn errors_about_frames_with_trailers_are_right() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        let sent = Ip { ttl: 1, ..Ip::udp("10.0.0.2", "10.0.1.2", b"short") };
        let mut frame = from_a(&sent);
        frame.resize(60, 0xee);
        a.send(&frame);
        // The padding of the frame is not quoted.
        assert_eq!(error(&mut a).payload, sent.bytes(), "{kind:?}");
    }
}

#[test]
fn errors_are_limited_in_rate() {
    // RFC 1812, 4.3.2.8. The configured limit is 1000 per second, with bursts of 20.
    let Some(net) = Net::new(ours()) else { return };
    let (mut a, mut b) = net.wires();
    let dying: Vec<_> =
        (0..600).map(|id| from_a(&Ip { ttl: 1, id, ..Ip::udp("10.0.0.2", "10.0.1.2", b"") })).collect();
    let start = std::time::Instant::now();
    a.send_all(&dying);
    a.send(&from_a(&Ip { id: LAST, ..Ip::udp("10.0.0.2", "10.0.1.2", b"") }));
    // Valid packets are forwarded meanwhile.
    b.expect("packet", |f| ip_in(&f.bytes).filter(|ip| ip.header.identification == LAST));
    // The first 20 errors, one burst, are always sent. Up to 600 may be sent, because on a busy machine the packets
    // may come so slowly that none exceeds the limit.
    for _ in 0..20 {
        assert_eq!(error(&mut a).kind, (11, 0));
    }
    let more = a.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).filter(|m| m.kind == (11, 0)).count();
    // Errors may wait in a queue, so their number is compared with the time from the first packet to the last error.
    let seconds = start.elapsed().as_secs_f64();
    let errors = 20 + more;
    let most = 20.0 + 1000.0 * seconds + 1.0;
    assert!(errors as f64 <= most, "{errors} errors in {seconds} s");
    // After a pause, errors are sent again.
    std::thread::sleep(Duration::from_millis(50));
    a.send(&dying[0]);
    error(&mut a);
}

#[test]
fn the_router_takes_no_frames_of_others() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let other = Ip { id: 9, ..Ip::udp("10.0.0.2", "10.0.1.2", b"") };
        let stray = frames::ethernet([2, 0, 0, 0, 7, 7], A, 0x0800, &other.bytes());
        let unknown = frames::ethernet(R0, A, 0x88b5, &other.bytes());
        let before = crate::net::through(&mut a, &mut b, &[stray, unknown]);
        assert_eq!(before.iter().filter_map(|f| ip_in(&f.bytes)).count(), 0, "{kind:?}");
    }
}

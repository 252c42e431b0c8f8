// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests ARP in the router.

use crate::net::{A, B, Net, QUIET, R0, R1, both, castanet, from_a, hosts, lab, ours};
use castanet_lab::frames::{self, BROADCAST, Ip, address, arp_in, ip_in};
use castanet_lab::{Process, Router, Wire};
use std::time::Duration;

/// An address in b's network that no host has. The test itself answers ARP requests for it.
const UNUSED: &str = "10.0.1.50";
const UNUSED_ETHER: [u8; 6] = [2, 0, 0, 0, 9, 9];

#[test]
fn questions_for_the_router_are_answered() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let mut a = net.a.wire("eth0");
        let (me, router) = (address("10.0.0.2"), address("10.0.0.1"));
        let ask = |target| frames::ethernet(BROADCAST, A, 0x0806, &frames::arp(1, (A, me), ([0; 6], target)));
        // The router must not answer the first request, which is for an unused address. So the first reply must
        // be that to the second request.
        a.send_all(&[ask(address("10.0.0.99")), ask(router)]);
        let answer = a.expect("answer", |f| arp_in(&f.bytes).filter(|arp| !arp.asks));
        assert_eq!(answer.frame_to, A);
        assert_eq!(answer.from, (R0.to_vec(), router.octets().to_vec()), "{kind:?}");
        assert_eq!(answer.to, (A.to_vec(), me.octets().to_vec()));
        let more = a.rest(QUIET).iter().filter_map(|f| arp_in(&f.bytes)).filter(|arp| !arp.asks).count();
        assert_eq!(more, 0, "{kind:?}: answered once");
        // Unicast requests, with which hosts verify entries (RFC 1122, 2.3.2.1), are answered too.
        a.send(&frames::ethernet(R0, A, 0x0806, &frames::arp(1, (A, me), ([0; 6], router))));
        a.expect("answer to unicast", |f| arp_in(&f.bytes).filter(|arp| !arp.asks));
    }
}

/// Waits for a request for [`UNUSED`]. Returns its Ethernet destination.
fn question(b: &mut Wire) -> [u8; 6] {
    let ask =
        b.expect("question", |f| arp_in(&f.bytes).filter(|a| a.asks && a.to.1 == address(UNUSED).octets()));
    assert_eq!(ask.from, (R1.to_vec(), vec![10, 0, 1, 1]));
    ask.frame_to
}

/// Answers an ARP request for [`UNUSED`].
fn answer(b: &mut Wire) {
    let body = frames::arp(2, (UNUSED_ETHER, address(UNUSED)), (R1, address("10.0.1.1")));
    b.send(&frames::ethernet(R1, UNUSED_ETHER, 0x0806, &body));
}

/// Builds a packet for [`UNUSED`] with an identification.
fn packet(id: u16) -> Vec<u8> {
    from_a(&Ip { id, ..Ip::udp("10.0.0.2", UNUSED, b"held") })
}

/// Returns the identification of a packet delivered to [`UNUSED`]; `None` for other frames.
fn arrived(frame: &castanet_lab::Frame) -> Option<u16> {
    let ip = ip_in(&frame.bytes).filter(|ip| ip.to == address(UNUSED))?;
    assert_eq!(frame.bytes.get(..12), Some(&[UNUSED_ETHER, R1].concat()[..]));
    Some(ip.header.identification)
}

#[test]
fn held_packets_leave_in_order() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = (net.a.wire("eth0"), net.b.wire("eth0"));
        a.send_all(&(1..=8).map(packet).collect::<Vec<_>>());
        assert_eq!(question(&mut b), BROADCAST);
        let early = b.rest(QUIET).iter().filter_map(arrived).count();
        assert_eq!(early, 0);
        answer(&mut b);
        let order = [(); 8].map(|()| b.expect("held packet", arrived));
        assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8], "{kind:?}");
        // There are no more requests, because the address is known now.
        a.send(&packet(9));
        b.expect("packet", |f| {
            assert_eq!(arp_in(&f.bytes), None);
            arrived(f).filter(|id| *id == 9)
        });
    }
}

#[test]
fn the_router_asks_a_host_once_and_both_learn() {
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let mut b = net.b.wire("eth0");
        net.a.ping(3, "10.0.1.2");
        let questions: Vec<_> =
            b.rest(QUIET).iter().filter_map(|f| arp_in(&f.bytes)).filter(|a| a.asks).collect();
        assert_eq!(questions.len(), 1, "{kind:?}: {questions:?}");
        assert_eq!((questions[0].frame_to, &questions[0].to.1), (BROADCAST, &vec![10, 0, 1, 2]));
        let known = net.b.neighbour(address("10.0.1.1")).unwrap_or_default();
        assert!(known.contains("02:00:00:00:02:02"), "{kind:?}: {known}");
    }
}

#[test]
fn old_entries_are_probed_by_unicast_and_those_too_old_by_broadcast() {
    // On a machine of any speed, an entry becomes older than the times of 1 s and 2 s, but never older than an hour.
    for (times, too_old) in [("POLL_TIMEOUT 1s, TIMEOUT 1h", false), ("POLL_TIMEOUT 1s, TIMEOUT 2s", true)] {
        let Some(lab) = lab() else { return };
        let (a, r, b) = hosts(&lab);
        let mut new = a.command(castanet());
        new.args(["new", "ip-router", "eth0=10.0.0.1/24", "eth1=10.0.1.1/24"]);
        let text = Process::start(new).wait(Duration::from_secs(200)).good();
        let long = "ENTRY_CAPACITY 8192)";
        assert!(text.contains(&format!("ARPQuerier($dev:net, $dev:eth, {long}")), "{text}");
        let text = text.replace(long, &format!("{times})"));
        let _r = Router::run(r, castanet(), &["-e", &text], 2);
        let (mut a, mut b) = (a.wire("eth0"), b.wire("eth0"));
        a.send(&packet(1));
        assert_eq!(question(&mut b), BROADCAST);
        answer(&mut b);
        b.expect("first packet", |f| arrived(f).filter(|id| *id == 1));
        std::thread::sleep(Duration::from_millis(if too_old { 2200 } else { 1200 }));
        a.send(&packet(2));
        if too_old {
            // The packet is held, and a request is broadcast.
            assert_eq!(question(&mut b), BROADCAST);
            assert_eq!(b.rest(QUIET).iter().filter_map(arrived).count(), 0);
            // A reply refreshes the entry.
            answer(&mut b);
            b.expect("second packet", |f| arrived(f).filter(|id| *id == 2));
            continue;
        }
        // The packet is sent, and a unicast request goes to the host, which does not answer.
        let (mut went, mut probes) = (0, 0);
        b.expect("packet and question", |frame| {
            went += usize::from(arrived(frame) == Some(2));
            probes += usize::from(arp_in(&frame.bytes).is_some_and(|q| q.asks && q.frame_to == UNUSED_ETHER));
            (went > 0 && probes > 0).then_some(())
        });
        for frame in b.rest(QUIET) {
            went += usize::from(arrived(&frame) == Some(2));
        }
        assert_eq!(went, 1);
    }
}

#[test]
fn answers_of_groups_are_not_believed() {
    // RFC 1812, 3.3.2: a reply that claims a broadcast or multicast Ethernet address must be ignored.
    let Some(net) = Net::new(ours()) else { return };
    let (mut a, mut b) = (net.a.wire("eth0"), net.b.wire("eth0"));
    a.send(&packet(1));
    question(&mut b);
    for group in [BROADCAST, [1, 0, 0x5e, 0, 0, 1]] {
        let body = frames::arp(2, (group, address(UNUSED)), (R1, address("10.0.1.1")));
        b.send(&frames::ethernet(R1, B, 0x0806, &body));
    }
    let sent =
        b.rest(QUIET).iter().filter(|f| ip_in(&f.bytes).is_some_and(|ip| ip.to == address(UNUSED))).count();
    assert_eq!(sent, 0);
    answer(&mut b);
    b.expect("packet", arrived);
}

#[test]
fn a_host_with_another_address_is_reachable_when_it_asks() {
    // The kernel is not tested as the router: for one second after Linux has learnt the Ethernet address of a
    // host, it ignores another address of this host.
    let Some(net) = Net::new(ours()) else { return };
    net.a.ping(1, "10.0.1.2");
    // Host a's kernel deletes its ARP entry for the router, and sends an ARP request from the new address.
    net.a.ip("link set eth0 address 02:00:00:00:07:07");
    // The reply to this ping is lost if the router still sends to the old address.
    net.a.ping(1, "10.0.1.2");
}

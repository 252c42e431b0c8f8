// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets addressed to the router, and header fields that it must not change.

use crate::net::{B, Net, QUIET, R1, both, castanet, from_a, hosts, lab, ours, through};
use castanet_lab::Router;
use castanet_lab::frames::{self, Ip, arp_in, icmp_in, ip_in, packet};
use std::net::Ipv4Addr;

#[test]
fn packets_for_the_router_may_be_at_their_end() {
    // RFC 1812, 4.2.2.9: the time to live of packets delivered locally is ignored.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        for address in ["10.0.0.1", "10.0.1.1"] {
            let text = net.a.run(&format!("ping -c 1 -t 1 -W 60 {address}")).good();
            assert!(text.contains("1 received"), "{kind:?}: {text}");
        }
    }
}

#[test]
fn echoes_return_all_that_was_sent() {
    // RFC 1812, 4.3.3.6.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        let data: Vec<u8> = (0..=255).cycle().take(1400).collect();
        a.send(&from_a(&Ip::icmp("10.0.0.2", "10.0.1.1", 8, 0, [1, 2, 3, 4], &data)));
        let reply = a.expect("reply", |f| icmp_in(&f.bytes).filter(|m| m.rest == [1, 2, 3, 4]));
        assert_eq!((reply.kind, reply.payload), ((0, 0), data), "{kind:?}");
        assert_eq!(reply.ip.from.to_string(), "10.0.1.1", "{kind:?}: from the address that was asked");
    }
}

#[test]
fn echoes_in_fragments_are_answered_in_fragments() {
    // RFC 1812, 4.2.2.8 and 4.3.3.6.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        for address in ["10.0.0.1", "10.0.1.1"] {
            let text = net.a.ping(2, &format!("-s 4000 {address}"));
            assert!(text.contains("4008 bytes from"), "{kind:?}: {text}");
        }
    }
}

#[test]
fn unknown_icmp_messages_are_ignored() {
    // RFC 1812, 4.3.2.1.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        for (kind, code) in [(200, 0), (40, 7), (0, 0), (3, 200)] {
            a.send(&from_a(&Ip::icmp("10.0.0.2", "10.0.0.1", kind, code, [0; 4], b"what?")));
        }
        a.send(&from_a(&Ip::icmp("10.0.0.2", "10.0.0.1", 8, 0, [9; 4], b"")));
        a.expect("reply to the last", |f| {
            let message = icmp_in(&f.bytes)?;
            assert_eq!(message.rest, [9; 4], "{kind:?}: {message:?}");
            Some(())
        });
    }
}

#[test]
fn broadcasts_for_the_router_get_no_echo() {
    // RFC 1812, 4.3.3.6 permits a router to ignore echo requests to broadcast addresses. This prevents smurf
    // attacks. Linux ignores them too.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, _) = net.wires();
        for to in ["10.0.0.255", "10.0.1.255", "255.255.255.255"] {
            a.send(&from_a(&Ip::icmp("10.0.0.2", to, 8, 0, [7; 4], b"")));
        }
        let replies =
            a.rest(QUIET).iter().filter_map(|f| icmp_in(&f.bytes)).filter(|m| m.rest == [7; 4]).count();
        assert_eq!(replies, 0, "{kind:?}");
    }
}

#[test]
fn unrelated_fields_are_not_changed() {
    // The router must not change unused bits (RFC 1812, 4.2.2.3), the type of service (4.2.2.4), the
    // identification, flags and payload.
    for kind in both() {
        let Some(net) = Net::new(kind) else { return };
        let (mut a, mut b) = net.wires();
        let mut sent = from_a(&Ip { whole: true, ..Ip::udp("10.0.0.2", "10.0.1.2", b"payload") });
        // Sets all bits of the type of service, the reserved flag and "don't fragment", and corrects the
        // checksum.
        (sent[15], sent[20]) = (0xff, 0xc0);
        sent.splice(24..26, [0, 0]);
        let sum = frames::checksum(&sent[14..34]);
        sent.splice(24..26, sum.to_be_bytes());
        let got = through(&mut a, &mut b, &[sent.clone()]);
        let got: Vec<_> = got.iter().filter(|f| ip_in(&f.bytes).is_some()).collect();
        assert_eq!(got.len(), 1, "{kind:?}");
        // Only time to live and checksum differ.
        for (i, (was, is)) in sent.iter().zip(&got[0].bytes).enumerate().skip(14) {
            assert!(was == is || matches!(i, 22 | 24 | 25), "{kind:?}: byte {i} is {is:#x}, was {was:#x}");
        }
        assert_eq!((got[0].bytes[22], got[0].bytes.len()), (63, sent.len()));
    }
}

#[test]
fn the_longest_prefix_wins() {
    // RFC 1812, 5.2.4.3. Gateways 8, 9 and 10 do not exist, but the test answers ARP for them with a different
    // Ethernet address each.
    let gateway = |n: u8| [2, 0, 0, 0, 8, n];
    let routes = [
        ("10.8.0.0/13", "10.0.1.8"),
        ("10.9.0.0/16", "10.0.1.9"),
        ("10.9.7.0/24", "10.0.1.10"),
        ("0.0.0.0/0", "10.0.1.2"),
    ];
    let table = [
        ("10.9.7.7", gateway(10)),
        ("10.9.8.7", gateway(9)),
        ("10.10.0.1", gateway(8)),
        ("10.15.255.255", gateway(8)),
        ("10.7.255.255", B),
        ("10.16.0.1", B),
        ("8.8.8.8", B),
    ];
    for kind in both() {
        let Some(lab) = lab() else { return };
        let net = Net::within(lab, kind, (1500, 1500), &routes);
        let (mut a, mut b) = net.wires();
        let mut answers = net.b.wire("eth0");
        for (to, next) in table {
            a.send(&from_a(&Ip::udp("10.0.0.2", to, b"")));
            let went = b.expect("packet", |f| {
                if let Some(arp) = arp_in(&f.bytes).filter(|arp| arp.asks && arp.to.1[3] > 2) {
                    let from = (gateway(arp.to.1[3]), Ipv4Addr::new(10, 0, 1, arp.to.1[3]));
                    let body = frames::arp(2, from, (R1, frames::address("10.0.1.1")));
                    answers.send(&frames::ethernet(R1, from.0, 0x0806, &body));
                }
                let found = ip_in(&f.bytes).filter(|ip| ip.to.to_string() == to);
                found.and_then(|_| f.bytes.first_chunk::<6>().copied())
            });
            assert_eq!(went, next, "{kind:?}: {to}");
        }
    }
}

#[test]
fn the_configuration_in_conf_routes() {
    // The other scenarios run the output of `castanet new ip-router`; this one runs the configuration in conf/.
    let Some(lab) = lab() else { return };
    let (a, r, b) = hosts(&lab);
    let conf = castanet_tests::binary::root().join("conf/ip-router.click");
    // Renames a device, as a user might. The configuration uses the devices' own Ethernet addresses.
    r.ip("link set eth1 down");
    r.ip("link set eth1 name uplink");
    r.ip("link set uplink up");
    let words = [conf.to_str().unwrap_or_default(), "DEV1=uplink", "ELSEWHERE=10.0.1.2 2"];
    let r = Router::run(r, castanet(), &words, 2);
    b.ip("addr add 172.16.0.1/32 dev lo");
    for address in ["10.0.0.1", "10.0.1.1", "10.0.1.2", "172.16.0.1"] {
        let text = a.ping(2, address);
        assert!(!text.contains("DUP"), "{address}: {text}");
    }
    let text = a.run("traceroute -n -q 1 -w 30,0,0 172.16.0.1").good();
    assert!(text.contains(" 1  10.0.0.1 ") && text.contains(" 2  172.16.0.1 "), "{text}");
    // The router stops on request and has reported no error.
    let ended = r.stop();
    assert!(ended.as_ref().is_some_and(|o| o.ok() && o.stderr.is_empty()), "{ended:?}");
}

#[test]
fn errors_say_which_packet_they_are_about() {
    // RFC 1812, 4.3.2.3: an error quotes the header, options included, and at least 8 more bytes.
    let Some(net) = Net::new(ours()) else { return };
    let (mut a, _) = net.wires();
    let options = vec![7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let sent = Ip { ttl: 1, id: 4711, options, ..Ip::udp("10.0.0.2", "10.0.1.2", &[1; 20]) };
    a.send(&from_a(&sent));
    let error = a.expect("error", |f| icmp_in(&f.bytes).filter(|m| m.kind.0 == 11));
    let quoted = packet(&error.payload);
    assert_eq!(quoted.map(|q| (q.header.identification, q.payload.len())), Some((4711, 28)));
}

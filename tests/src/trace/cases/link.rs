// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test cases of the link layer: ARP, broadcasts, frames for other hosts, runts.
use std::net::Ipv4Addr;

use super::{BROADCAST, EVERYBODY, Maker};
use crate::trace::build::arp;
use crate::trace::hosts::{ROUTER, ROUTER_MAC, mac, near};

impl Maker<'_> {
    pub(super) fn address_resolution(&mut self) {
        let (router, router_mac) = (ROUTER[self.interface], ROUTER_MAC[self.interface]);
        for n in 0..12 {
            // Requests for the router: broadcast or unicast, with and without padding.
            let host = near(self.interface, 30 + n);
            let host_mac = mac(self.interface, host);
            let question = arp(1, host_mac, host, [0; 6], router);
            let padding = if n % 2 == 0 { &[0u8; 18][..] } else { &[] };
            let dst = if n % 4 == 3 { router_mac } else { BROADCAST };
            self.push_frame(dst, host_mac, 0x0806, &[&question[..], padding].concat());
        }
        for _ in 0..4 {
            let (asker, wanted) = (self.here(), self.here());
            let asker_mac = mac(self.interface, asker);
            // Requests for another host, for the sender itself, and for the router's address on the other network.
            for target in [wanted, asker, ROUTER[1 - self.interface]] {
                let question = arp(1, asker_mac, asker, [0; 6], target);
                self.push_frame(BROADCAST, asker_mac, 0x0806, &question);
            }
            // A reply that repeats a known mapping; a reverse request (RFC 903); truncated packets.
            let answer = arp(2, asker_mac, asker, router_mac, router);
            self.push_frame(router_mac, asker_mac, 0x0806, &answer);
            self.push_frame(BROADCAST, asker_mac, 0x0806, &arp(3, asker_mac, asker, asker_mac, asker));
            let cut = 8 + self.random.below(20);
            self.push_frame(BROADCAST, asker_mac, 0x0806, &arp(1, asker_mac, asker, [0; 6], router)[..cut]);
            self.push_frame(router_mac, asker_mac, 0x0806, &answer[..cut]);
        }
    }

    pub(super) fn broadcasts(&mut self) {
        let router_mac = ROUTER_MAC[self.interface];
        let net = near(self.interface, 0);
        let directed = Ipv4Addr::new(net.octets()[0], 255, 255, 255);
        let other_directed = Ipv4Addr::new(near(1 - self.interface, 0).octets()[0], 255, 255, 255);
        let group = Ipv4Addr::new(224, 0, 0, 5);
        for _ in 0..3 {
            let src = self.here();
            let src_mac = mac(self.interface, src);
            let unicast = self.there();
            // Link-level broadcasts. If the IP destination is the router or a broadcast address, the router delivers
            // the packet to the host. It drops the others.
            for dst in [EVERYBODY, directed, net, ROUTER[self.interface], unicast] {
                let packet = self.udp_between(src, dst, 25).bytes();
                self.push_frame(BROADCAST, src_mac, 0x0800, &packet);
            }
            let packet = self.udp_between(src, group, 25).bytes();
            self.push_frame([1, 0, 0x5e, 0, 0, 5], src_mac, 0x0800, &packet);
            // Packets that are broadcast or multicast by IP address, but not by Ethernet address. A broadcast
            // for the other network is delivered to the host, but not forwarded.
            for dst in [EVERYBODY, directed, net, other_directed, group] {
                let packet = self.udp_between(src, dst, 26).bytes();
                self.push_frame(router_mac, src_mac, 0x0800, &packet);
            }
            // A link-level broadcast must cause no error, even if its time to live expires.
            let packet = self.udp_between(src, unicast, 27).ttl(1).bytes();
            self.push_frame(BROADCAST, src_mac, 0x0800, &packet);
        }
    }

    pub(super) fn not_for_the_router(&mut self) {
        let (router_mac, host) = (ROUTER_MAC[self.interface], self.here());
        let host_mac = mac(self.interface, host);
        for length in [0, 1, 6, 12, 13, 14, 15, 20, 30, 33] {
            // Runts.
            let packet = self.udp(0);
            let mut frame = self.framed(packet.src, &packet.bytes());
            frame.data.truncate(length);
            self.cases.push(vec![frame]);
        }
        for kind in [0x86dd, 0x88cc, 0x8100, 0x0026, 0x0801, 0x8137] {
            let payload = self.data(46);
            self.push_frame(router_mac, host_mac, kind, &payload);
        }
        for _ in 0..4 {
            // Frames for another host's Ethernet address, as when a switch floods a frame.
            let packet = self.udp(20).bytes();
            self.push_frame([2, 9, 9, 9, 9, 9], host_mac, 0x0800, &packet);
        }
    }
}

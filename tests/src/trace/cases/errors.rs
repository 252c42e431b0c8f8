// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test cases: packets that are too big, fragments, ICMP messages, and packets that cause redirects.
use std::net::Ipv4Addr;

use super::Maker;
use crate::trace::build::Ipv4;
use crate::trace::hosts::near;

impl Maker<'_> {
    pub(super) fn too_big(&mut self) {
        for size in [1472, 1473, 1600, 2000, 2960, 3900] {
            let packet = self.udp(size);
            self.push(&packet);
            let packet = self.udp(size).df();
            self.push(&packet);
        }
        // A record route stays in the first fragment, source routes are copied into each fragment, and
        // no-operations need not be copied.
        let routes = [&[1, 7, 7, 4, 0, 0, 0, 0][..], &[1, 131, 7, 8, 2, 0, 0, 7]].concat();
        for size in [1465, 2200] {
            let packet = self.udp(size).options(&routes);
            self.push(&packet);
        }
        // Fragments that are too big: the middle and last fragment of a packet that was fragmented with another
        // MTU.
        for (offset, more) in [(250, true), (500, false)] {
            let (src, dst, id, data) = (self.here(), self.there(), self.id(), self.data(2000));
            self.push(&Ipv4::new(src, dst, id, 17, data).fragment(offset, more));
        }
        // A fragment other than the first must cause no error.
        let (src, dst, id, data) = (self.here(), self.there(), self.id(), self.data(2000));
        self.push(&Ipv4::new(src, dst, id, 17, data).fragment(250, false).df());
    }

    pub(super) fn fragments(&mut self) {
        for ttl in [64, 64, 64, 1] {
            let (src, dst, id) = (self.here(), self.there(), self.id());
            let whole = self.udp_between(src, dst, 2000);
            let pieces = [(0, 800, true), (800, 1600, true), (1600, 2008, false)].map(|(from, to, more)| {
                let payload = whole.payload[from..to].to_vec();
                let offset = u16::try_from(from / 8).unwrap_or(0);
                let piece = Ipv4::new(src, dst, id, 17, payload).fragment(offset, more).ttl(ttl);
                self.framed(src, &piece.bytes())
            });
            self.cases.push(pieces.to_vec());
        }
    }

    pub(super) fn icmp(&mut self) {
        for n in 0..6u8 {
            let (src, dst, id, data) = (self.here(), self.there(), self.id(), self.data(56));
            self.push(&Ipv4::icmp(src, dst, id, (if n % 2 == 0 { 8 } else { 0 }, 0), [0, 7, 0, n], &data));
            // An echo request whose time to live expires causes an error.
            let id = self.id();
            self.push(&Ipv4::icmp(src, dst, id, (8, 0), [0, 8, 0, n], &data).ttl(1));
        }
        for (kind, code) in [(3, 1), (3, 4), (4, 0), (5, 1), (11, 0), (12, 0)] {
            // An ICMP error is forwarded. If its time to live expires, no error is sent about it (RFC 1812,
            // 4.3.2.7).
            let (src, dst) = (self.here(), self.there());
            let about = self.udp_between(dst, src, 10).bytes();
            for ttl in [64, 1] {
                let id = self.id();
                self.push(&Ipv4::icmp(src, dst, id, (kind, code), [0; 4], &about[..28]).ttl(ttl));
            }
        }
    }

    pub(super) fn redirects(&mut self) {
        for n in 0..8u8 {
            let src = near(self.interface, 5 + n % 2);
            let behind = if self.interface == 0 { 4 } else { 3 };
            let mut targets = vec![near(self.interface, 8), Ipv4Addr::new(behind, 8, n, 1)];
            if self.interface == 1 {
                targets.push(Ipv4Addr::new(60, n, 0, 1));
            }
            for dst in targets {
                let packet = self.udp_between(src, dst, 24);
                self.push(&packet);
            }
        }
        // A redirect combined with an expiring time to live, and with a packet that is too big.
        let (src, dst) = (near(self.interface, 5), near(self.interface, 8));
        let packet = self.udp_between(src, dst, 24).ttl(1);
        self.push(&packet);
        let packet = self.udp_between(src, dst, 1700).df();
        self.push(&packet);
        // An ICMP error must cause no redirect.
        let id = self.id();
        self.push(&Ipv4::icmp(src, dst, id, (3, 3), [0; 4], &[0x45; 28]));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test cases: invalid IP headers, expiring packets, packets without a route, and packets for the router
//! itself.
use std::net::Ipv4Addr;

use super::{EVERYBODY, Maker};
use crate::trace::build::Ipv4;
use crate::trace::hosts::{ROUTER, SILENT, near};

impl Maker<'_> {
    pub(super) fn times_to_live(&mut self) {
        for ttl in [0, 1, 2] {
            for size in [0, 18, 100, 519, 520, 521, 1400, 1472] {
                // With 520 bytes of data, the error with its quotation is exactly 576 bytes long.
                let packet = self.udp(size).ttl(ttl);
                self.push(&packet);
            }
            let (src, dst, id) = (self.here(), self.there(), self.id());
            self.push(&Ipv4::tcp(src, dst, id, (1025, 80), 1, 2, &[]).ttl(ttl).df());
        }
        // Packets from a host behind a gateway, and from a silent host. The first error is sent to the gateway. The
        // second error is held forever.
        let far = if self.interface == 0 { 4 } else { 3 };
        for src in [Ipv4Addr::new(far, 1, 2, 3), near(self.interface, SILENT[0])] {
            let dst = self.there();
            let packet = self.udp_between(src, dst, 40).ttl(1);
            self.push(&packet);
        }
    }

    pub(super) fn bad_headers(&mut self) {
        for n in 0..10 {
            // Arbitrary wrong checksums, including zero and two that are off by one.
            let packet = self.udp(30);
            self.push_changed(&packet, false, |bytes| match n {
                0 => bytes[10..12].fill(0),
                1 => bytes[11] ^= 1,
                2 => bytes[10] ^= 0x80,
                _ => bytes[8] ^= 1 << (n % 8),
            });
        }
        for length in [0u16, 1, 10, 19, 59, 61, 62, 1500, 65535] {
            // The packet has 58 bytes. Each of these lengths is too short for a header, or longer than the packet. The
            // length 59 exceeds the packet by one byte.
            let packet = self.udp(30);
            self.push_changed(&packet, true, |bytes| bytes[2..4].copy_from_slice(&length.to_be_bytes()));
        }
        for (first, options) in [(0x40, 0), (0x44, 0), (0x4f, 0), (0x4f, 8), (0x55, 0), (0x65, 0), (0x05, 0)]
        {
            let packet = self.udp(4).options(&vec![1; options]);
            self.push_changed(&packet, true, |bytes| bytes[0] = first);
        }
        for _ in 0..2 {
            // A header longer than the total length.
            let packet = self.udp(40).options(&[1; 8]);
            self.push_changed(&packet, true, |bytes| bytes[2..4].copy_from_slice(&24u16.to_be_bytes()));
        }
        for captured in [20, 33, 34, 60, 100] {
            // Frames of which only the first bytes are captured.
            let packet = self.udp(200);
            let mut frame = self.framed(packet.src, &packet.bytes());
            frame.captured = captured;
            self.cases.push(vec![frame]);
        }
    }

    pub(super) fn padding(&mut self) {
        for extra in [1, 6, 18, 28, 400] {
            for _ in 0..3 {
                let packet = self.udp(0);
                let filler = self.data(extra);
                self.push_changed(&packet, false, |bytes| bytes.extend(filler));
            }
        }
    }

    pub(super) fn martians(&mut self) {
        let sources = [
            EVERYBODY,
            Ipv4Addr::new(1, 255, 255, 255),
            Ipv4Addr::new(2, 255, 255, 255),
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::LOCALHOST,
            Ipv4Addr::new(127, 200, 1, 1),
            Ipv4Addr::new(224, 0, 0, 1),
            Ipv4Addr::new(240, 0, 0, 1),
        ];
        for src in sources {
            let dst = self.there();
            let packet = self.udp_between(src, dst, 8);
            self.push(&packet);
            let packet = self.udp_between(src, ROUTER[self.interface], 8);
            self.push(&packet);
        }
        for dst in [[127, 0, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0], [240, 0, 0, 9], [239, 1, 1, 1]] {
            let src = self.here();
            let packet = self.udp_between(src, dst.into(), 8);
            self.push(&packet);
        }
    }

    pub(super) fn for_the_router(&mut self) {
        for n in 0..5u8 {
            for address in ROUTER {
                let (src, id, data) = (self.here(), self.id(), self.data(56));
                let ttl = self.random.pick(&[0, 1, 64]);
                self.push(&Ipv4::icmp(src, address, id, (8, 0), [1, 1, 0, n], &data).ttl(ttl));
                let packet = self.udp_between(src, address, 100);
                self.push(&packet);
            }
        }
        let (src, id, data) = (self.here(), self.id(), self.data(1480));
        self.push(&Ipv4::new(src, ROUTER[self.interface], id, 17, data).fragment(0, true));
        // Three packets for the router: one longer than any MTU, one with padding, and one with options that
        // are processed only when a packet is forwarded.
        let packet = self.udp_between(src, ROUTER[self.interface], 3900);
        self.push(&packet);
        let packet = self.udp_between(src, ROUTER[self.interface], 0);
        self.push_changed(&packet, false, |bytes| bytes.extend([0; 18]));
        let packet = self.udp_between(src, ROUTER[self.interface], 0).options(&[7, 7, 4, 0, 0, 0, 0]);
        self.push(&packet);
    }

    pub(super) fn unreachable(&mut self) {
        for n in 0..5u8 {
            // There is no route to 5.0.0.0/8.
            let src = self.here();
            let packet = self.udp_between(src, Ipv4Addr::new(5, n, 0, 1), 60);
            self.push(&packet);
        }
        let (src, id) = (self.here(), self.id());
        self.push(&Ipv4::icmp(src, Ipv4Addr::new(5, 5, 5, 5), id, (3, 1), [0; 4], &[0x45; 28]));
        // Next hops that never answer.
        for n in 0..8 {
            let (src, dst) = (self.here(), near(1 - self.interface, SILENT[n % 2]));
            let packet = self.udp_between(src, dst, 10 * n);
            self.push(&packet);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames from malicious or broken hosts. The same seed produces the same frames.

use crate::frames::{self, BROADCAST, Ether, Ip, checksum};
use std::net::Ipv4Addr;

/// The IP options of mutated packets; some are malformed.
const OPTIONS: [&[u8]; 8] = [
    &[],
    &[7, 7, 4, 0, 0, 0, 0, 0],
    &[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    &[131, 7, 4, 10, 0, 1, 7, 0],
    &[137, 11, 4, 10, 0, 0, 1, 10, 0, 1, 2, 0],
    &[7, 255, 4, 0],
    &[68, 0, 0, 0],
    &[0x94, 4, 0, 0],
];

/// The hosts and addresses that the frames use.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The host that sends.
    pub host: (Ether, Ipv4Addr),
    /// The router's interface on the link to that host.
    pub router: (Ether, Ipv4Addr),
    /// A host behind the router.
    pub beyond: Ipv4Addr,
}

/// Makes frames with a random number generator (xorshift64*).
pub struct Hostile {
    scene: Scene,
    state: u64,
}

impl Hostile {
    /// Creates a generator for a scene.
    pub fn new(scene: Scene, seed: u64) -> Hostile {
        Hostile { scene, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.number()).unwrap_or(0).checked_rem(n).unwrap_or(0)
    }

    fn one_of<T: Copy>(&mut self, all: &[T], other: T) -> T {
        let i = self.below(all.len());
        all.get(i).copied().unwrap_or(other)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut all: Vec<u8> = Vec::with_capacity(n + 8);
        while all.len() < n {
            let number = self.state;
            self.number();
            all.extend_from_slice(&number.to_le_bytes());
        }
        all.truncate(n);
        all
    }

    fn ether(&mut self) -> Ether {
        let mut address = [0; 6];
        address.iter_mut().for_each(|b| *b = self.number() as u8);
        address
    }

    fn address(&mut self) -> Ipv4Addr {
        let near = |from: Ipv4Addr, last: u64| {
            let [a, b, c, _] = from.octets();
            Ipv4Addr::new(a, b, c, last as u8)
        };
        let Scene { host, router, beyond } = self.scene;
        match self.below(8) {
            0 => host.1,
            1 => router.1,
            2 | 3 => beyond,
            4 => near(beyond, self.number()),
            5 => near(host.1, self.number()),
            _ => Ipv4Addr::from_bits(self.number() as u32),
        }
    }

    /// Generates a frame of random bytes, usually addressed to the router.
    pub fn noise(&mut self) -> Vec<u8> {
        let to = match self.below(4) {
            0 => self.ether(),
            1 => BROADCAST,
            _ => self.scene.router.0,
        };
        let kind = self.number() as u16;
        let kind = self.one_of(&[0x0800, 0x0800, 0x0806, 0x8100, 0x86dd, kind], kind);
        // Linux discards frames that end inside or right after their VLAN tag before packet sockets see them,
        // and does not count them.
        let length = self.below(1501).max(if kind == 0x8100 { 6 } else { 0 });
        let mut body = self.bytes(length);
        // Half of the frames with the IP type begin like an IP header.
        if self.below(2) == 0
            && let Some(first) = body.first_mut()
        {
            *first = 0x45;
        }
        frames::ethernet(to, self.scene.host.0, kind, &body)
    }

    /// Generates a valid packet of any type that the router handles.
    fn packet(&mut self) -> Ip {
        let (from, to) = (self.address().to_string(), self.address().to_string());
        let length = self.one_of(&[0, 1, 8, 60, 500, 1400], 0);
        let payload = self.bytes(length);
        let mut ip = match self.below(4) {
            0 => Ip::icmp(&from, &to, 8, 0, [0, 1, 0, 1], &payload),
            1 => {
                let kind = self.number() as u8;
                Ip::icmp(&from, &to, kind, 0, [0; 4], &payload)
            }
            _ => Ip::udp(&from, &to, &payload),
        };
        ip.ttl = self.one_of(&[0, 1, 2, 64, 255], 64);
        ip.id = self.number() as u16;
        ip.whole = self.below(4) == 0;
        ip.options = self.one_of(&OPTIONS, &[]).to_vec();
        if self.below(8) == 0 {
            (ip.more, ip.offset) = (self.below(2) == 0, self.number() as u16 & 0x1fff);
        }
        if self.below(16) == 0 {
            ip.protocol = self.number() as u8;
        }
        ip
    }

    /// Generates a packet and changes some of its bytes. Half of these packets get a correct header checksum
    /// again.
    pub fn mutated(&mut self) -> Vec<u8> {
        let mut bytes = self.packet().bytes();
        for _ in 0..self.below(4) {
            // Most of the changes are in the header.
            let span = if self.below(4) == 0 { bytes.len() } else { bytes.len().min(60) };
            let at = self.below(span);
            if let Some(b) = bytes.get_mut(at) {
                *b = self.number() as u8;
            }
        }
        if self.below(2) == 0 {
            let header = usize::from(bytes.first().copied().unwrap_or(0) & 15) * 4;
            if let (20.., Some(sum)) = (header, bytes.get_mut(10..12)) {
                sum.fill(0);
                let right = checksum(bytes.get(..header).unwrap_or(&bytes));
                bytes.splice(10..12, right.to_be_bytes());
            }
        }
        if self.below(8) == 0 {
            let short = self.below(bytes.len());
            bytes.truncate(short);
        }
        frames::ethernet(self.scene.router.0, self.scene.host.0, 0x0800, &bytes)
    }

    /// Generates an ARP packet, usually a request or reply, in the name of another host. Its address mapping may
    /// be false, and the packet may be malformed.
    pub fn arp(&mut self) -> Vec<u8> {
        let Scene { host, router, .. } = self.scene;
        let claimed = loop {
            // The host does not claim its own address.
            let address = self.address();
            if address != host.1 {
                break address;
            }
        };
        let (liar, target) = (self.ether(), self.address());
        let operation = self.one_of(&[1, 1, 2, 2, 2, 3, 0], 1);
        let mut body = frames::arp(operation, (liar, claimed), (router.0, target));
        if self.below(8) == 0 {
            let at = self.below(body.len());
            if let Some(b) = body.get_mut(at) {
                *b = self.number() as u8;
            }
            let length = self.below(60);
            body.resize(length, 0xee);
        }
        let to = self.one_of(&[router.0, BROADCAST], router.0);
        frames::ethernet(to, liar, 0x0806, &body)
    }

    /// Generates an unsolicited ARP reply that maps some address, inside or outside this network, to some
    /// station.
    pub fn spoof(&mut self) -> Vec<u8> {
        let Scene { host, router, .. } = self.scene;
        let claimed = Ipv4Addr::from_bits(self.number() as u32);
        let liar = self.ether();
        frames::ethernet(router.0, liar, 0x0806, &frames::arp(2, (liar, claimed), (router.0, host.1)))
    }

    /// Generates a packet to any address in the network behind the router, or in the host's own network.
    pub fn scan(&mut self) -> Vec<u8> {
        let [a, b, c, _] = self.one_of(&[self.scene.beyond, self.scene.host.1], self.scene.beyond).octets();
        let last = self.below(250) + 3;
        let to = format!("{a}.{b}.{c}.{last}");
        let ip = Ip::udp(&self.scene.host.1.to_string(), &to, &[0; 1400]);
        frames::ethernet(self.scene.router.0, self.scene.host.0, 0x0800, &ip.bytes())
    }

    /// Generates fragments that overlap, contradict each other, never become complete, or exceed the maximum packet
    /// length. The router reassembles fragments that are addressed to itself, and forwards fragments for the host
    /// behind it unchanged.
    pub fn fragments(&mut self) -> Vec<Vec<u8>> {
        let Scene { host, router, beyond } = self.scene;
        let to = self.one_of(&[router.1, router.1, beyond], router.1).to_string();
        let id = self.number() as u16;
        let mut ip = Ip::icmp(&host.1.to_string(), &to, 8, 0, [0, 1, 0, 1], &[0xab; 1400]);
        (ip.id, ip.payload) = (id, ip.payload.get(..1400).unwrap_or_default().to_vec());
        let piece = |offset: usize, length: usize, more: bool| {
            let payload = ip.payload.iter().copied().cycle().skip(offset % 1400).take(length).collect();
            let offset = u16::try_from(offset / 8).unwrap_or(0x1fff).min(0x1fff);
            let one = Ip { offset, more, payload, ..ip.clone() };
            frames::ethernet(router.0, host.0, 0x0800, &one.bytes())
        };
        let some = self.below(170) * 8;
        match self.below(6) {
            // Teardrop: the second fragment is inside the first.
            0 => vec![piece(0, 40, true), piece(24, 4, false)],
            // Ping of death: with the IP header, two of the fragments end beyond byte 65535. One ends far beyond it,
            // the other just beyond it.
            1 => vec![piece(0, 1400, true), piece(65_528, 1400, false), piece(65_120, 400, false)],
            // Two fragments that both claim to be the last, and data beyond their ends.
            2 => vec![
                piece(800, 80, false),
                piece(400, 80, false),
                piece(some + 880, 80, true),
                piece(0, 400, true),
            ],
            // The same fragment twice, and between these a fragment that overlaps it.
            3 => {
                vec![piece(0, 800, true), piece(some, 160, true), piece(0, 800, true), piece(800, 600, false)]
            }
            // Never complete, so that fragments accumulate.
            4 => vec![piece(some, 1400, true)],
            // Valid fragments in reverse order. The reassembled packet is answered.
            _ => vec![piece(1200, 200, false), piece(800, 400, true), piece(0, 800, true)],
        }
    }
}

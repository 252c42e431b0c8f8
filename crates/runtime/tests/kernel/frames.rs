// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random frames: mostly valid IPv4 and ARP, often changed in a byte or cut.

/// The devices and hosts that frames name.
#[derive(Clone, Copy)]
pub struct Net {
    /// The hosts whose packets are most frequent.
    pub often: &'static [[u8; 4]],
    /// Hosts, networks and routers.
    pub hosts: &'static [[u8; 4]],
}

/// The networks of conf/ip-router.click.
pub const ROUTED: Net = Net {
    often: &[[10, 0, 0, 2], [10, 0, 1, 2]],
    hosts: &[
        [10, 0, 0, 2],
        [10, 0, 1, 2],
        [10, 0, 0, 1],
        [10, 0, 1, 1],
        [10, 0, 0, 255],
        [10, 0, 1, 77],
        [192, 168, 1, 1],
        [224, 0, 0, 5],
        [255, 255, 255, 255],
        [127, 0, 0, 1],
        [0, 0, 0, 0],
    ],
};

/// A seeded generator.
pub struct Random {
    state: u64,
    net: Net,
    /// The frame before.
    last: Vec<u8>,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random::of_net(seed, ROUTED)
    }
    pub fn of_net(seed: u64, net: Net) -> Random {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
        Random { state, net, last: Vec::new() }
    }
    /// SplitMix64 (Steele, Lea and Flood, figure 15).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A frame for the device with the address 2:0:0:0:0:0 or another.
    pub fn frame(&mut self) -> Vec<u8> {
        self.frame_for(0)
    }

    /// A frame, mostly to the address 2:0:0:0:0:`device`.
    pub fn frame_for(&mut self, device: u8) -> Vec<u8> {
        let mine = [2, 0, 0, 0, 0, device];
        let to = match self.below(12) {
            0 => [0xff; 6],
            1 => [1, 0, 0x5e, 0, 0, 1],
            2 => [2, 0, 0, 0, 9, 9],
            _ => mine,
        };
        let from = if self.one_in(10) { mine } else { [2, 0, 0, 0, 1, 2] };
        let mut frame = [to, from].concat();
        match self.below(10) {
            0 => {
                let hosts = self.net.hosts;
                let who = self.of(&hosts[..3]);
                frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + self.below(2) as u8]);
                frame.extend(from);
                frame.extend(who);
                frame.extend(mine);
                frame.extend(self.of(&[hosts[2], hosts[3], [10, 0, 0, 9]]));
            }
            1 => {
                frame.extend(self.of(&[[0x86, 0xdd], [0x81, 0], [9, 9]]));
                frame.extend((0..self.below(60)).map(|i| i as u8));
            }
            2 if self.one_in(2) => {
                frame.extend([0x81, 0]);
                frame.extend(self.of(&[[0, 0], [0, 7], [0xa0, 7], [0x10, 0], [0x5f, 0xff]]));
                frame.extend([8, 0]);
                let ip = self.ip();
                frame.extend(ip);
            }
            _ => {
                frame.extend([8, 0]);
                let ip = self.ip();
                frame.extend(ip);
            }
        }
        if self.one_in(8) {
            let at = self.below(frame.len() as u64) as usize;
            frame[at] = self.next() as u8;
        }
        match self.below(12) {
            0 => frame.truncate(14.max(self.below(frame.len() as u64) as usize)),
            1 => {}
            _ => frame.resize(frame.len().max(60), 0),
        }
        frame
    }

    /// A frame as [`Random::frame_for`] makes it, often changed in several places, or a changed copy of the one before.
    pub fn mutated_for(&mut self, device: u8) -> Vec<u8> {
        let again = self.one_in(4) && !self.last.is_empty();
        let mut frame = if again { self.last.clone() } else { self.frame_for(device) };
        let changes = if again { 1 + self.below(3) } else { self.below(8).saturating_sub(5) };
        for _ in 0..changes {
            let at = self.below(frame.len() as u64) as usize;
            // The headers matter most.
            let at = if self.one_in(4) { at } else { at.min(self.below(56) as usize) };
            match self.below(8) {
                0 => frame.truncate(14.max(at)),
                1 => frame.extend((0..self.below(40)).map(|i| i as u8)),
                2 => frame[at] = self.of(&[0, 1, 0x7f, 0x80, 0xff]),
                3 => frame[at] = frame[at].wrapping_add(self.of(&[1, 255])),
                4 => frame[at] = self.next() as u8,
                _ => frame[at] ^= 1 << self.below(8),
            }
        }
        // A changed header mostly has a right checksum again, so that it passes further.
        let ip = frame.get(14).map_or(0, |b| 4 * usize::from(b & 15));
        if changes > 0 && !self.one_in(3) && ip >= 20 && frame.len() >= 14 + ip {
            frame[24..26].fill(0);
            let sum = checksum(&frame[14..14 + ip]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        self.last.clone_from(&frame);
        frame
    }

    /// An IPv4 packet.
    fn ip(&mut self) -> Vec<u8> {
        let Net { often, hosts } = self.net;
        let src = if self.one_in(4) { self.of(hosts) } else { self.of(often) };
        let dst = if self.one_in(4) { self.of(hosts) } else { self.of(often) };
        let options: usize = if self.one_in(10) { 4 * (1 + self.below(10) as usize) } else { 0 };
        let longest = if self.one_in(20) { 1500 } else { 80 };
        let payload = self.below(longest) as usize;
        let header = 20 + options;
        let mut ip = vec![0x40 | (header / 4) as u8, self.next() as u8];
        ip.extend(((header + payload) as u16).to_be_bytes());
        ip.extend([self.next() as u8, self.next() as u8]);
        ip.extend(self.of(&[[0, 0], [0x40, 0], [0x20, 0], [0, 9]]));
        ip.push(self.of(&[0, 1, 2, 64, 255]));
        ip.push(self.of(&[1, 6, 17, 50]));
        ip.extend([0, 0]);
        ip.extend(src);
        ip.extend(dst);
        ip.extend(
            (0..options).map(|i| if i == 0 { self.of(&[0, 1, 7, 68, 131]) } else { self.below(12) as u8 }),
        );
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        // A UDP checksum of 0 means none, and 0xffff is a computed one of 0 (RFC 768).
        let sum = self.of(&[None, None, Some(0), Some(0xff)]);
        ip.extend((0..payload).map(|i| match (i, sum) {
            (6 | 7, Some(sum)) => sum,
            (0 | 2, _) => 0,
            (1 | 3, _) => self.of(&[22, 53, 80, 8]),
            (13, _) => self.of(&[2, 0x10, 0x12]),
            _ => self.next() as u8,
        }));
        ip
    }
}

/// The checksum of a header whose checksum field is 0 (RFC 1071).
pub fn checksum(header: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in header.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

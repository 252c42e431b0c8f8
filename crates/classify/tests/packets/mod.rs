// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random IPv4 packets built with etherparse, and the random number generator.
#![allow(dead_code, clippy::unwrap_used)]

use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, TcpHeader, UdpHeader};

/// A seeded random number generator (xorshift).
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// A small set of values of each kind, so that tests often match packets.
pub const ADDRESSES: [[u8; 4]; 6] =
    [[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 9, 9], [10, 0, 0, 1], [10, 255, 0, 1], [224, 0, 0, 1]];
pub const PORTS: [u16; 8] = [0, 22, 53, 80, 1023, 1024, 8080, 65535];
pub const PROTOS: [u8; 7] = [1, 2, 6, 6, 17, 17, 132];
pub const SMALL: [u8; 6] = [0, 1, 5, 63, 64, 255];
pub const ETHERS: [[u8; 6]; 3] = [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 6], [0xff; 6]];

/// An Ethernet header (or nothing) and a packet, starting at its IP header.
pub fn packet(rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let ether = if rng.chance(4) {
        Vec::new()
    } else {
        [&rng.pick(&ETHERS)[..], &rng.pick(&ETHERS)[..], &[8, 0]].concat()
    };
    let proto = rng.pick(&PROTOS);
    let (sport, dport) = (rng.pick(&PORTS), rng.pick(&PORTS));
    let transport = match proto {
        6 => {
            let mut tcp = TcpHeader::new(sport, dport, 0x01020304, rng.pick(&PORTS));
            tcp.acknowledgment_number = 0x0a000001;
            (tcp.syn, tcp.ack, tcp.fin) = (rng.chance(2), rng.chance(2), rng.chance(3));
            (tcp.rst, tcp.psh, tcp.urg) = (rng.chance(4), rng.chance(3), rng.chance(5));
            tcp.to_bytes().to_vec()
        }
        17 => UdpHeader { source_port: sport, destination_port: dport, length: 8, checksum: 0 }
            .to_bytes()
            .to_vec(),
        1 => vec![rng.pick(&[0, 3, 8, 11]), rng.pick(&SMALL), 0, 0, 0, 1, 0, 2],
        _ => [&sport.to_be_bytes()[..], &dport.to_be_bytes(), &[0, 1, 2, 3]].concat(),
    };
    let mut ip =
        Ipv4Header::new(transport.len() as u16, rng.pick(&SMALL), IpNumber(proto), [0; 4], [0; 4]).unwrap();
    (ip.source, ip.destination) = (rng.pick(&ADDRESSES), rng.pick(&ADDRESSES));
    ip.dscp = IpDscp::try_new(rng.below(64) as u8).unwrap();
    ip.ecn = IpEcn::try_new(rng.below(4) as u8).unwrap();
    ip.identification = rng.pick(&PORTS);
    (ip.dont_fragment, ip.more_fragments) = (rng.chance(2), rng.chance(4));
    if rng.chance(4) {
        ip.fragment_offset = IpFragOffset::try_new(rng.pick(&[1, 185, 0x1fff])).unwrap();
    }
    if rng.chance(4) {
        ip.options = Ipv4Options::from([1u8; 4]);
    }
    ip.total_len = (ip.header_len() + transport.len()) as u16;
    let mut network = ip.to_bytes().to_vec();
    network.extend(transport);
    if rng.chance(2) {
        network.extend([0u8; 6]);
    }
    (ether, network)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequence of frames on an interface: a packet of each flow, then ARP, then packets of the flows in short
//! runs, mixed with special cases.
use std::net::Ipv4Addr;

use super::build::{Ipv4, arp, ether};
use super::hosts::{ANSWERING, GATEWAYS, LATE, ROUTER, ROUTER_MAC, mac, near};
use super::{Random, Wire, cases};

/// The number of flow frames on each interface.
const FLOW_FRAMES: usize = 1500;

const BROADCAST: [u8; 6] = [0xff; 6];

/// One direction of a connection.
struct Flow {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    ports: (u16, u16),
    tcp: bool,
    /// The typical payload size.
    size: usize,
    sequence: u32,
}

impl Flow {
    fn next(&mut self, random: &mut Random, ids: &mut u16) -> Ipv4 {
        *ids += 1;
        // Usually the typical size, sometimes a random one.
        let size = if random.below(8) == 0 { random.below(300) } else { self.size };
        let data: Vec<u8> = (0..size).map(|_| random.next().to_le_bytes()[0]).collect();
        let packet = if self.tcp {
            let sequence = self.sequence;
            self.sequence = sequence.wrapping_add(u32::try_from(size).unwrap_or(0));
            Ipv4::tcp(self.src, self.dst, *ids, self.ports, sequence, 0x10, &data).df()
        } else {
            Ipv4::udp(self.src, self.dst, *ids, self.ports, &data)
        };
        packet.ttl(random.pick(&[2, 3, 17, 63, 64, 128, 255]))
    }
}

/// Returns the hosts reached through an interface: on its network and behind its gateways.
fn hosts(interface: usize) -> Vec<Ipv4Addr> {
    let own = ANSWERING.iter().map(|last| near(interface, *last));
    let behind = GATEWAYS[interface].iter().flat_map(|(_, net)| [(0, 1), (44, 9)].map(|(b, d)| (*net, b, d)));
    own.chain(behind.map(|(a, b, d)| Ipv4Addr::new(a, b, 0, d))).collect()
}

fn flows(interface: usize, random: &mut Random) -> Vec<Flow> {
    let (sources, destinations) = (hosts(interface), hosts(1 - interface));
    let sizes = [0, 18, 18, 18, 50, 50, 100, 200, 536, 1024, 1460];
    (0..28u16)
        .map(|n| Flow {
            src: random.pick(&(sources.iter().map(|ip| ip.octets()).collect::<Vec<_>>())).into(),
            // Every destination is used, so that every next hop is resolved.
            dst: destinations[usize::from(n) % destinations.len()],
            ports: (1024 + n, random.pick(&[53, 80, 123, 443, 5001])),
            tcp: n % 3 == 0,
            size: random.pick(&sizes),
            sequence: u32::from(n) * 1_000_003,
        })
        .collect()
}

/// Generates all frames that arrive on an interface, in order.
pub(super) fn frames(interface: usize, random: &mut Random, ids: &mut u16) -> Vec<Wire> {
    let mut flows = flows(interface, random);
    let to_router = |packet: &Ipv4| {
        Wire::from(ether(ROUTER_MAC[interface], mac(interface, packet.src), 0x0800, &packet.bytes()))
    };
    let mut frames = Vec::new();

    // One packet of each flow. The router does not know any next hop yet and must resolve each.
    for flow in &mut flows {
        frames.push(to_router(&flow.next(random, ids)));
    }
    // A host sends an ARP request first. Then the replies to the router's requests arrive, interleaved with
    // packets.
    let first = near(interface, ANSWERING[0]);
    let question = arp(1, mac(interface, first), first, [0; 6], ROUTER[interface]);
    frames.push(ether(BROADCAST, mac(interface, first), 0x0806, &question).into());
    let answer = |last: u8| {
        let host = near(interface, last);
        let arp = arp(2, mac(interface, host), host, ROUTER_MAC[interface], ROUTER[interface]);
        // Real replies are padded to the minimum Ethernet frame length.
        Wire::from(ether(ROUTER_MAC[interface], mac(interface, host), 0x0806, &[&arp[..], &[0; 18]].concat()))
    };
    let gateways = GATEWAYS[interface].iter().map(|(gateway, _)| *gateway);
    for last in ANSWERING.iter().copied().filter(|last| *last != LATE).chain(gateways) {
        frames.push(answer(last));
        let flow = random.below(flows.len());
        frames.push(to_router(&flows[flow].next(random, ids)));
    }

    // The special cases are spread evenly between the runs of flow frames. The late ARP reply comes after a quarter
    // of the flow frames.
    let mut specials = cases::all(interface, random, ids);
    shuffle(&mut specials, random);
    let every = FLOW_FRAMES / specials.len().max(1);
    let mut specials = specials.into_iter();
    let (mut sent, mut due) = (0, 0);
    while sent < FLOW_FRAMES {
        let flow = random.below(flows.len());
        let run = [1, 1, 2, 4, 8, 12][random.below(6)].min(FLOW_FRAMES - sent);
        for _ in 0..run {
            // Long packets come in short runs, to keep the trace small.
            if flows[flow].size > 500 && random.below(3) > 0 {
                break;
            }
            frames.push(to_router(&flows[flow].next(random, ids)));
            sent += 1;
            due += 1;
            if sent == FLOW_FRAMES / 4 {
                frames.push(answer(LATE));
            }
        }
        while due >= every.max(1) {
            due -= every.max(1);
            frames.extend(specials.next().into_iter().flatten());
        }
    }
    frames.extend(specials.flatten());
    frames
}

/// Fisher-Yates shuffle.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

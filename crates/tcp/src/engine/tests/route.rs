// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source routes of connections (RFC 9293, section 3.9.2.1).

use super::{Engine, Ipv4Addr, Route, SocketAddrV4, User, address, bytes, engine, give, packets, settings};
use crate::engine::{Flow, IcmpError};
use castanet_wire::ipv4::Ipv4Header;
use castanet_wire::{Be16, Be32, checksum};

const NOW: i64 = 1_000_000_000_000;

/// A host on the way.
fn hop(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 9, n)
}
fn over(hops: &[u8], to: usize) -> Route {
    let hops: Vec<Ipv4Addr> = hops.iter().map(|n| hop(*n)).collect();
    Route::over(false, &hops, address(to)).unwrap()
}

/// The hosts on the way each send a packet on along its source route, which begins after a no-operation (RFC 791, section 3.1). Returns
/// their numbers.
fn travel(packet: &mut [u8]) -> Vec<u8> {
    let mut visited = Vec::new();
    loop {
        let ip = *Ipv4Header::checked(packet, true).unwrap();
        let [a, b, c, n] = ip.dst.get().to_be_bytes();
        if [a, b, c] != [10, 0, 9] {
            return visited;
        }
        visited.push(n);
        assert_eq!(packet[20..22], [1, 131]);
        let at = 20 + usize::from(packet[23]);
        let next = u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
        packet[at..at + 4].copy_from_slice(&[a, b, c, n]);
        packet[23] += 4;
        let header = &mut packet[..ip.header_len()];
        let ip = Ipv4Header::from_prefix_mut(header).unwrap();
        (ip.dst, ip.checksum) = (Be32::new(next), Be16::new(0));
        let sum = checksum::checksum(header);
        Ipv4Header::from_prefix_mut(header).unwrap().checksum = Be16::new(sum);
    }
}

/// Two hosts, and the ways that the packets of each have taken.
struct Pair {
    ends: [Engine; 2],
    users: [User; 2],
    ways: [Vec<Vec<u8>>; 2],
    largest: usize,
}

impl Pair {
    fn new(change: impl Fn(&mut super::Settings)) -> Pair {
        let users = [User::default(), User::default()];
        let ends = [0, 1].map(|n| {
            users[n].0.lock().write = bytes(50_000, n as u64);
            let mut settings = settings(n);
            change(&mut settings);
            let mut e = engine(n, settings, users[n].clone());
            e.pass_time(NOW);
            e
        });
        Pair { ends, users, ways: Default::default(), largest: 0 }
    }
    fn open(&mut self, route: Route) -> Flow {
        self.ends[0].connect_along(route, None, SocketAddrV4::new(address(1), 80), 0, NOW).unwrap()
    }
    /// Delivers the packets that an end has sent. Returns their number.
    fn deliver(&mut self, from: usize) -> usize {
        let all = packets(&mut self.ends[from]);
        for mut packet in all.iter().cloned() {
            self.largest = self.largest.max(packet.len());
            let way = travel(&mut packet);
            self.ways[from].push(way);
            give(&mut self.ends[1 - from], &packet, NOW).unwrap();
        }
        all.len()
    }
    /// Delivers packets until there are none.
    fn exchange(&mut self) {
        while self.deliver(0) + self.deliver(1) > 0 {}
        let [a, b] = [0, 1].map(|n| self.users[n].0.lock());
        assert!(a.read == b.write && b.read == a.write, "{} {}", a.read.len(), b.read.len());
    }
}

/// MUST-51 and MUST-53: all packets take the route, in both directions. Section 3.7.1: its options are part of the packet size.
#[test]
fn a_route_leads_there_and_back() {
    for super_packets in [false, true] {
        let mut p = Pair::new(|s| s.super_packets = super_packets);
        p.open(over(&[1, 2, 3], 1));
        p.exchange();
        assert!(p.ways[0].len() > 30 && p.ways[0].iter().all(|way| *way == [1, 2, 3]), "{:?}", p.ways);
        assert!(p.ways[1].len() > 30 && p.ways[1].iter().all(|way| *way == [3, 2, 1]), "{:?}", p.ways);
        assert_eq!(p.largest, 1500);
        let counts = p.ends.each_ref().map(|e| e.counts().routed.get());
        assert_eq!(counts, [1, 0].map(|n: usize| p.ways[n].len() as u64));
    }
}

#[test]
fn without_a_route_packets_go_directly() {
    let mut p = Pair::new(|_| ());
    p.open(Route::DIRECT);
    p.exchange();
    assert!(p.ways.iter().flatten().all(Vec::is_empty));
    assert_eq!(p.largest, 1500);
}

/// SHLD-24: a route that arrives later replaces the earlier one. MUST-52: it does not replace that of the user.
#[test]
fn later_routes_replace_earlier_ones() {
    let mut p = Pair::new(|_| ());
    p.open(over(&[1], 1));
    p.deliver(0);
    p.deliver(1);
    // The next packets come along another route, in place of the one that the user gave.
    let mut redirected = packets(&mut p.ends[0]);
    for packet in &mut redirected {
        assert_eq!(travel(packet), [1]);
        packet[27] = 7;
        let header = &mut packet[..28];
        Ipv4Header::from_prefix_mut(header).unwrap().checksum = Be16::new(0);
        let sum = checksum::checksum(header);
        Ipv4Header::from_prefix_mut(header).unwrap().checksum = Be16::new(sum);
        give(&mut p.ends[1], packet, NOW).unwrap();
    }
    assert!(!redirected.is_empty());
    p.ways[1].clear();
    assert!(p.deliver(1) > 0);
    assert!(p.ways[1].iter().all(|way| *way == [7]), "{:?}", p.ways);
    // They have come back along it, but the user of the first end has given its route.
    p.ways[0].clear();
    assert!(p.deliver(0) > 0);
    assert!(p.ways[0].iter().all(|way| *way == [1]), "{:?}", p.ways);
    p.exchange();
}

/// A connection that this end opens without a route does not take one over.
#[test]
fn only_passive_opens_take_over_routes() {
    let mut p = Pair::new(|_| ());
    p.open(Route::DIRECT);
    p.deliver(0);
    let mut answer = packets(&mut p.ends[1]).remove(0);
    // As if the answer had come over a host.
    let mut ip = Ipv4Header::from_prefix(&answer).unwrap().to_bytes().to_vec();
    ip.extend([1, 131, 7, 8, 10, 0, 9, 5]);
    ip[0] = 0x47;
    ip[3] += 8;
    ip[10..12].fill(0);
    let sum = checksum::checksum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    answer.splice(..20, ip);
    give(&mut p.ends[0], &answer, NOW).unwrap();
    p.exchange();
    assert!(p.ways[0].iter().all(Vec::is_empty));
}

/// An end that is flooded answers along the way back too, and the connection that follows has the route of its first segment.
#[test]
fn cookies_are_sent_along_the_route() {
    let mut p = Pair::new(|s| s.backlog = 0);
    p.open(over(&[4, 5], 1));
    p.exchange();
    assert!(p.ways[1].iter().all(|way| *way == [5, 4]), "{:?}", p.ways);
    assert_eq!(p.ends[1].counts().cookies_accepted.get(), 1);
}

/// A router quotes a packet as it is on its way: to another host than the peer. The sizes that it says are those with the route.
#[test]
fn errors_about_routed_packets_find_their_connection() {
    let mut p = Pair::new(|s| s.path_mtu = true);
    let flow = p.open(over(&[1], 1));
    p.deliver(0);
    p.deliver(1);
    let out = packets(&mut p.ends[0]);
    let large = out.iter().find(|p| p.len() == 1500).unwrap();
    let error = super::icmp_about_all(large, 3, 4, 1000);
    let read = IcmpError::read(&error[20..]).unwrap();
    assert_eq!((read.flow, read.size, read.mtu), (flow, 1492, 992));
    give(&mut p.ends[0], &error, NOW).unwrap();
    assert_eq!(p.ends[0].counts().size_errors.get(), 1);
    p.largest = 0;
    p.exchange();
    assert_eq!(p.ends[0].counts().size_errors.get(), 1);
}

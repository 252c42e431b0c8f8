// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated bridges and LANs, and the tree that a computation of shortest paths gives for them.
#![allow(clippy::unwrap_used)]

use super::bpdu::{Bpdu, BridgeId, Times};
use super::protocol::{Bridge, PortState, Role, SECOND};
use castanet_element::Random;
use castanet_wire::EtherAddr;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Short times, so that less simulated time has to pass.
pub const TIMES: Times = Times { max_age: 6 * SECOND, hello: SECOND, forward_delay: 4 * SECOND };

/// The numbers of a bridge and of one of its ports.
pub type BridgePort = (usize, usize);

enum Event {
    /// A bridge is switched on.
    Start(usize),
    /// A message arrives at a LAN, from a port.
    Message(BridgePort, Bpdu),
    /// At this time, a bridge may have to call `Bridge::expire`.
    Timer(usize),
}

/// Bridges, the LANs that their ports are on, and the queue of future events.
pub struct Net {
    pub now: i64,
    pub bridges: Vec<Option<Bridge>>,
    ids: Vec<BridgeId>,
    costs: Vec<u32>,
    /// The LAN of each port of each bridge; `None` once the port is disconnected.
    pub lans: Vec<Vec<Option<usize>>>,
    delays: Vec<i64>,
    queue: BinaryHeap<Reverse<(i64, u64)>>,
    events: BTreeMap<u64, Event>,
    next: u64,
    /// Messages sent.
    pub messages: usize,
}

impl Net {
    /// Makes a net whose bridges are switched on within the first five seconds.
    pub fn new(lans: Vec<Vec<Option<usize>>>, random: &mut Random) -> Net {
        let n = lans.len();
        let most = lans.iter().flatten().flatten().max().map_or(0, |m| m + 1);
        let id = |random: &mut Random, i: usize| {
            let [a, b] = [random.below(4), random.below(256)];
            BridgeId::new(0x8000 + (a as u16) * 0x1000, EtherAddr([2, b as u8, 0, 0, 0, i as u8]))
        };
        let mut net = Net {
            now: 0,
            bridges: (0..n).map(|_| None).collect(),
            ids: (0..n).map(|i| id(random, i)).collect(),
            costs: (0..n).map(|_| 1 + random.below(3) as u32).collect(),
            lans,
            delays: (0..most).map(|_| (random.below(100) + 1) as i64 * 1_000_000).collect(),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next: 0,
            messages: 0,
        };
        for i in 0..n {
            let at = random.below(5_000) as i64 * 1_000_000;
            net.at(at, Event::Start(i));
        }
        net
    }

    fn at(&mut self, time: i64, event: Event) {
        self.queue.push(Reverse((time, self.next)));
        self.events.insert(self.next, event);
        self.next += 1;
    }

    fn after(&mut self, i: usize) {
        let Some(bridge) = &mut self.bridges[i] else { return };
        let sent: Vec<_> = bridge.sent().collect();
        let next = bridge.next();
        for (port, message) in sent {
            self.messages += 1;
            // Each message is read back from its bytes.
            let message = Bpdu::parse(&message.frame(EtherAddr::ZERO)).unwrap();
            if let Some(lan) = self.lans[i][port] {
                let at = self.now + self.delays[lan];
                self.at(at, Event::Message((i, port), message));
            }
        }
        if let Some(t) = next {
            self.at(t.max(self.now), Event::Timer(i));
        }
    }

    /// Runs the simulation until a time, and calls `watch` after each event.
    pub fn run(&mut self, until: i64, mut watch: impl FnMut(&Net)) {
        while let Some(&Reverse((time, key))) = self.queue.peek() {
            if time > until {
                break;
            }
            self.queue.pop();
            self.now = time;
            match self.events.remove(&key).unwrap() {
                Event::Start(i) => {
                    let ports = self.lans[i].len();
                    self.bridges[i] = Some(Bridge::new(self.ids[i], TIMES, self.costs[i], ports, time));
                    self.after(i);
                }
                Event::Timer(i) => {
                    let bridge = self.bridges[i].as_mut().unwrap();
                    if bridge.next().is_some_and(|t| t <= time) {
                        bridge.expire(time);
                        self.after(i);
                    }
                }
                Event::Message((from, port), message) => {
                    let Some(lan) = self.lans[from][port] else { continue };
                    for place in self.on(lan).into_iter().filter(|p| *p != (from, port)) {
                        if let Some(bridge) = &mut self.bridges[place.0] {
                            bridge.receive(place.1, message, time);
                            self.after(place.0);
                        }
                    }
                }
            }
            watch(self);
        }
        self.now = until;
    }

    /// The ports on a LAN.
    fn on(&self, lan: usize) -> Vec<BridgePort> {
        let all = self.lans.iter().enumerate();
        let all = all.flat_map(|(i, ports)| ports.iter().enumerate().map(move |(p, l)| ((i, p), *l)));
        all.filter(|(_, l)| *l == Some(lan)).map(|(port, _)| port).collect()
    }

    fn lan_count(&self) -> usize {
        self.delays.len()
    }

    /// Whether frames could circulate, because forwarding ports connect LANs and bridges in a cycle.
    pub fn has_loop(&self) -> bool {
        let mut group: Vec<usize> = (0..self.lans.len() + self.lan_count()).collect();
        fn find(group: &mut [usize], mut x: usize) -> usize {
            while group[x] != x {
                group[x] = group[group[x]];
                x = group[x];
            }
            x
        }
        for (i, ports) in self.lans.iter().enumerate() {
            for (port, lan) in ports.iter().enumerate() {
                let state = self.bridges[i].as_ref().and_then(|b| b.state(port));
                if let (Some(lan), Some(PortState::Forwarding)) = (lan, state) {
                    let (a, b) = (find(&mut group, i), find(&mut group, self.lans.len() + lan));
                    if a == b {
                        return true;
                    }
                    group[a] = b;
                }
            }
        }
        false
    }

    /// Computes the root and cost of each bridge, and the role of each port, from shortest paths.
    pub fn tree(&self) -> (Vec<(BridgeId, u32)>, Vec<Vec<Role>>) {
        let n = self.lans.len();
        // In each connected part of the net, the bridge with the lowest identifier is the root. The loop
        // relaxes costs until nothing changes.
        let mut best: Vec<(BridgeId, u32)> = self.ids.iter().map(|id| (*id, 0)).collect();
        loop {
            let before = best.clone();
            for lan in 0..self.lan_count() {
                let on = self.on(lan);
                for &(a, _) in &on {
                    for &(b, _) in &on {
                        let through = (best[a].0, best[a].1 + self.costs[b]);
                        if a != b && through < best[b] {
                            best[b] = through;
                        }
                    }
                }
            }
            if best == before {
                break;
            }
        }
        // The designated port of a LAN is the one nearest to the root, by cost, bridge and port.
        let offer = |(i, port): BridgePort| (best[i].1, self.ids[i], port);
        let mut roles: Vec<Vec<Role>> = self.lans.iter().map(|p| vec![Role::Alternate; p.len()]).collect();
        let mut chosen = BTreeMap::new();
        for lan in 0..self.lan_count() {
            if let Some(&(i, port)) = self.on(lan).iter().min_by_key(|p| offer(**p)) {
                roles[i][port] = Role::Designated;
                chosen.insert(lan, (i, port));
            }
        }
        for i in 0..n {
            for (port, lan) in self.lans[i].iter().enumerate() {
                if lan.is_none() {
                    roles[i][port] = Role::Designated;
                }
            }
            if best[i].0 == self.ids[i] {
                continue;
            }
            let ways = self.lans[i].iter().enumerate().filter_map(|(port, lan)| {
                let from = *chosen.get(&(*lan)?)?;
                (from.0 != i).then_some((offer(from), port))
            });
            let (_, port) = ways.min().unwrap();
            roles[i][port] = Role::Root;
        }
        (best, roles)
    }

    /// Returns the root and cost that each bridge reports, and the roles of its ports.
    pub fn said(&self) -> (Vec<(BridgeId, u32)>, Vec<Vec<Role>>) {
        let all = || self.bridges.iter().map(|b| b.as_ref().unwrap());
        let roles = all().map(|b| (0..b.ports()).map(|p| b.role(p).unwrap()).collect()).collect();
        (all().map(Bridge::root).collect(), roles)
    }

    /// Whether all ports of the tree forward, and all other ports block.
    pub fn is_settled(&self) -> bool {
        self.bridges.iter().flatten().all(|b| {
            (0..b.ports()).all(|p| match b.role(p) {
                Some(Role::Alternate) => b.state(p) == Some(PortState::Blocking),
                _ => b.state(p) == Some(PortState::Forwarding),
            })
        })
    }
}

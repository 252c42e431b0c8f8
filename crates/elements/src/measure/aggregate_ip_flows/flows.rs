// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows in bounded memory: which are known, how long, and the fragments that belong to them.

use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;
use castanet_wire::tcp::flag;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// The most flows that are known.
pub const MOST_FLOWS: usize = 1 << 20;
/// The most first fragments that are remembered.
pub const MOST_FRAGMENTS: usize = 1 << 14;
/// The most later fragments that wait for their first one.
pub const MOST_WAITING: usize = 1 << 10;
/// How many flows are looked at for one that is idle when one has to go.
const TRIES: usize = 16;

/// The two ends of a flow, the lesser first, and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    low: (u32, u16),
    high: (u32, u16),
    kind: u8,
}

impl Key {
    /// From source and destination; whether the packet goes from the lesser to the greater.
    pub fn new(src: (u32, u16), dst: (u32, u16), kind: u8) -> (Key, bool) {
        let up = src <= dst;
        let (low, high) = if up { (src, dst) } else { (dst, src) };
        (Key { low, high, kind }, up)
    }
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its number.
    pub aggregate: u32,
    /// Its ends.
    key: Key,
    /// Whether its first packet went from the lesser end to the greater.
    up: bool,
    /// When its first packet came.
    pub first: i64,
    /// When its last packet came.
    pub last: i64,
    /// Packets in either direction.
    pub packets: [u64; 2],
    /// Which directions were closed, as bits.
    closed: u8,
}

impl Flow {
    /// The source of its first packet.
    pub fn src(&self) -> (u32, u16) {
        if self.up { self.key.low } else { self.key.high }
    }
    /// The destination of its first packet.
    pub fn dst(&self) -> (u32, u16) {
        if self.up { self.key.high } else { self.key.low }
    }
    fn is_over(&self, now: i64, timeouts: &Timeouts) -> bool {
        let timeout = match self.key.kind {
            protocol::TCP if self.closed == 3 => timeouts.tcp_done,
            protocol::TCP => timeouts.tcp,
            _ => timeouts.udp,
        };
        now.saturating_sub(self.last) > timeout
    }
    fn paint(&self, up: bool) -> u8 {
        u8::from(self.up != up)
    }
}

/// How long flows may be idle, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP flows.
    pub tcp: i64,
    /// TCP flows after their end.
    pub tcp_done: i64,
    /// UDP flows.
    pub udp: i64,
}

/// The number of a flow and the direction of a packet in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number.
    pub aggregate: u32,
    /// 0 in the direction of the first packet, 1 in the other.
    pub paint: u8,
}

/// All flows that are known.
pub struct Table {
    /// How many there may be.
    most: usize,
    map: HashMap<Key, Flow>,
    /// The keys of all flows, and when they were put here, roughly in the order in which they were last used.
    order: VecDeque<(Key, i64)>,
    last: u32,
}

impl Default for Table {
    fn default() -> Table {
        Table::new(MOST_FLOWS)
    }
}

impl Table {
    /// With room for so many.
    pub fn new(most: usize) -> Table {
        Table { most, map: HashMap::new(), order: VecDeque::new(), last: 0 }
    }
    /// How many flows are known.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The flow of a packet, if it is known.
    pub fn find(&self, key: Key, up: bool, now: i64, timeouts: &Timeouts) -> Option<Seen> {
        let flow = self.map.get(&key).filter(|f| !f.is_over(now, timeouts))?;
        Some(Seen { aggregate: flow.aggregate, paint: flow.paint(up) })
    }

    /// Counts a packet in its flow, which may be a new one. `gone` is called with a flow that ends by that.
    pub fn packet(
        &mut self,
        key: Key,
        up: bool,
        flags: u8,
        now: i64,
        timeouts: &Timeouts,
        mut gone: impl FnMut(&Flow),
    ) -> Seen {
        let next = self.last.wrapping_add(1).max(1);
        let fresh = Flow { aggregate: next, key, up, first: now, last: now, packets: [0; 2], closed: 0 };
        if self.map.len() >= self.most && !self.map.contains_key(&key) {
            self.evict(&mut gone);
        }
        let flow = match self.map.entry(key) {
            Entry::Occupied(e) => {
                let flow = e.into_mut();
                if flow.is_over(now, timeouts) || flow.closed == 3 && super::begins(flags) {
                    gone(flow);
                    *flow = fresh;
                    self.last = next;
                }
                flow
            }
            Entry::Vacant(e) => {
                self.order.push_back((key, now));
                self.last = next;
                e.insert(fresh)
            }
        };
        let paint = flow.paint(up);
        flow.last = flow.last.max(now);
        if let Some(n) = flow.packets.get_mut(usize::from(paint)) {
            *n = n.wrapping_add(1);
        }
        if flags & flag::RST != 0 {
            flow.closed = 3;
        } else if flags & flag::FIN != 0 {
            flow.closed |= 1 << paint;
        }
        Seen { aggregate: flow.aggregate, paint }
    }

    /// Makes room for one: the first that was not used since it was last looked at.
    fn evict(&mut self, gone: &mut impl FnMut(&Flow)) {
        for tried in 0..TRIES {
            let Some((key, since)) = self.order.pop_front() else { return };
            let used = self.map.get(&key).map(|f| f.last);
            match used {
                Some(last) if last > since && tried + 1 < TRIES => self.order.push_back((key, last)),
                _ => {
                    if let Some(flow) = self.map.remove(&key) {
                        gone(&flow);
                    }
                    return;
                }
            }
        }
    }

    /// Forgets flows that are over.
    pub fn reap(&mut self, now: i64, timeouts: &Timeouts, mut gone: impl FnMut(&Flow)) {
        let mut over: Vec<Flow> = self.map.extract_if(|_, f| f.is_over(now, timeouts)).map(|f| f.1).collect();
        if over.is_empty() {
            return;
        }
        over.sort_unstable_by_key(|f| f.aggregate);
        over.iter().for_each(&mut gone);
        let map = &self.map;
        self.order.retain(|(key, _)| map.contains_key(key));
    }

    /// All flows, in the order of their numbers.
    pub fn into_flows(self) -> Vec<Flow> {
        let mut all: Vec<Flow> = self.map.into_values().collect();
        all.sort_unstable_by_key(|f| f.aggregate);
        all
    }
}

/// The fields that all fragments of a packet share (RFC 791 section 3.2).
type Identity = ([u8; 8], [u8; 2], u8);

fn identity(ip: &[u8; 20]) -> Identity {
    let addresses = ip.last_chunk().copied().unwrap_or_default();
    (addresses, [ip[4], ip[5]], ip[9])
}

/// First fragments, so that later ones find their flow, and later ones that came before their first one.
pub struct Fragments {
    timeout: i64,
    map: HashMap<Identity, (Seen, i64)>,
    order: VecDeque<(Identity, i64)>,
    /// Later fragments, with the time of their arrival and what they share with the first one.
    waiting: VecDeque<(Packet, Identity, i64)>,
}

impl Fragments {
    /// They are remembered for so many nanoseconds.
    pub fn new(timeout: i64) -> Fragments {
        Fragments { timeout, map: HashMap::new(), order: VecDeque::new(), waiting: VecDeque::new() }
    }
    /// Takes over what is known of fragments (hot swap).
    pub fn go_on_from(&mut self, old: &mut Fragments) {
        std::mem::swap(&mut self.map, &mut old.map);
        std::mem::swap(&mut self.order, &mut old.order);
        std::mem::swap(&mut self.waiting, &mut old.waiting);
    }
    /// How many later fragments wait.
    pub fn held(&self) -> usize {
        self.waiting.len()
    }
    /// Has a later fragment wait for its first one; the one that loses its place, if there are too many.
    pub fn wait(&mut self, p: Packet, now: i64) -> Option<Packet> {
        let Some(ip) = p.ip_header().copied() else { return Some(p) };
        self.waiting.push_back((p, identity(&ip), now));
        if self.waiting.len() > MOST_WAITING { self.waiting.pop_front().map(|w| w.0) } else { None }
    }
    /// The fragments that have waited for this first one, in the order of their arrival.
    pub fn released(&mut self, ip: &[u8; 20]) -> impl Iterator<Item = Packet> + use<> {
        let identity = identity(ip);
        let (gone, left) = self.waiting.drain(..).partition::<VecDeque<_>, _>(|w| w.1 == identity);
        self.waiting = left;
        gone.into_iter().map(|w| w.0)
    }
    /// A fragment that has waited too long.
    pub fn given_up(&mut self, now: i64) -> Option<Packet> {
        let timeout = self.timeout;
        self.waiting.pop_front_if(|w| now.saturating_sub(w.2) > timeout).map(|w| w.0)
    }
    /// All fragments that wait.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> {
        self.waiting.drain(..).map(|w| w.0)
    }
    /// Forgets all.
    pub fn clear(&mut self) {
        self.map.clear();
        self.order.clear();
    }
    /// Remembers a first fragment.
    pub fn first(&mut self, ip: &[u8; 20], seen: Seen, now: i64) {
        let old = |time: i64| now.saturating_sub(time) > self.timeout;
        while self.order.front().is_some_and(|o| old(o.1) || self.order.len() >= MOST_FRAGMENTS) {
            if let Some((identity, time)) = self.order.pop_front()
                && self.map.get(&identity).is_some_and(|f| f.1 == time)
            {
                self.map.remove(&identity);
            }
        }
        let identity = identity(ip);
        self.map.insert(identity, (seen, now));
        self.order.push_back((identity, now));
    }
    /// The flow of the first fragment, if that came; for a later fragment.
    pub fn find(&self, ip: &[u8; 20], now: i64) -> Option<Seen> {
        let (seen, time) = self.map.get(&identity(ip))?;
        (now.saturating_sub(*time) <= self.timeout).then_some(*seen)
    }
    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

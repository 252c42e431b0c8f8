// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of flows, in bounded memory, and the fragments that belong to flows.

use castanet_element::prelude::*;
use castanet_wire::ipv4::protocol;
use castanet_wire::tcp::flag;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Largest number of flows that are stored.
pub const MOST_FLOWS: usize = 1 << 20;
/// Largest number of first fragments that are remembered.
pub const MOST_FRAGMENTS: usize = 1 << 14;
/// Largest number of later fragments that wait for their first fragment.
pub const MOST_WAITING: usize = 1 << 10;
/// Largest number of flows that are examined to find an idle flow to remove.
const TRIES: usize = 16;

/// The two ends of a flow (address and port each), the lower end first, and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    low: (u32, u16),
    high: (u32, u16),
    kind: u8,
}

impl Key {
    /// Makes a key from source and destination. Also returns whether the packet goes from the lower end to
    /// the higher.
    pub fn new(src: (u32, u16), dst: (u32, u16), kind: u8) -> (Key, bool) {
        let up = src <= dst;
        let (low, high) = if up { (src, dst) } else { (dst, src) };
        (Key { low, high, kind }, up)
    }
}

/// A TCP or UDP flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The number of the flow: the aggregate annotation of its packets.
    pub aggregate: u32,
    /// The two ends of the flow, and its protocol.
    key: Key,
    /// Whether the first packet of the flow went from the lower end (by address, then port) to the higher.
    up: bool,
    /// The time of the flow's first packet, in nanoseconds.
    pub first: i64,
    /// The time of the flow's last packet, in nanoseconds.
    pub last: i64,
    /// The number of packets in each direction.
    pub packets: [u64; 2],
    /// The directions that were closed by a FIN, one bit per direction. An RST sets both bits.
    closed: u8,
}

impl Flow {
    /// Returns the source of the flow's first packet.
    pub fn src(&self) -> (u32, u16) {
        if self.up { self.key.low } else { self.key.high }
    }
    /// Returns the destination of the flow's first packet.
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
    /// The limit for TCP flows.
    pub tcp: i64,
    /// The limit for TCP flows that were reset or closed by both ends.
    pub tcp_done: i64,
    /// The limit for UDP flows.
    pub udp: i64,
}

/// The number of a flow and the direction of a packet in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number of the flow.
    pub aggregate: u32,
    /// 0 in the direction of the first packet, 1 in the other.
    pub paint: u8,
}

/// All flows that are stored.
pub struct Table {
    /// The largest number of flows that are stored.
    most: usize,
    map: HashMap<Key, Flow>,
    /// The keys of all flows, approximately in the order of their last packets. Each key is stored with the `last` that
    /// its flow had when the key was queued.
    order: VecDeque<(Key, i64)>,
    last: u32,
}

impl Default for Table {
    fn default() -> Table {
        Table::new(MOST_FLOWS)
    }
}

impl Table {
    /// Makes an empty table for at most `most` flows.
    pub fn new(most: usize) -> Table {
        Table { most, map: HashMap::new(), order: VecDeque::new(), last: 0 }
    }
    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns the flow of a packet, if the flow is stored and has not ended.
    pub fn find(&self, key: Key, up: bool, now: i64, timeouts: &Timeouts) -> Option<Seen> {
        let flow = self.map.get(&key).filter(|f| !f.is_over(now, timeouts))?;
        Some(Seen { aggregate: flow.aggregate, paint: flow.paint(up) })
    }

    /// Counts a packet in its flow, and creates the flow if necessary. Calls `gone` with each flow that ends as a
    /// result.
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

    /// Removes a flow to free space: the first flow in `order` that has had no packet since it was queued. If the first
    /// [`TRIES`] flows have all had packets, the last of these is removed.
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

    /// Removes ended flows and calls `gone` for each.
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

    /// Returns all flows, in the order of their numbers.
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

/// Remembers first fragments, so that later fragments find their flow. Holds later fragments that came before
/// their first fragment.
pub struct Fragments {
    timeout: i64,
    map: HashMap<Identity, (Seen, i64)>,
    order: VecDeque<(Identity, i64)>,
    /// Later fragments that wait, each with the identity it shares with its first fragment, and its time of
    /// arrival.
    waiting: VecDeque<(Packet, Identity, i64)>,
}

impl Fragments {
    /// Creates an empty store that remembers fragments for `timeout` nanoseconds.
    pub fn new(timeout: i64) -> Fragments {
        Fragments { timeout, map: HashMap::new(), order: VecDeque::new(), waiting: VecDeque::new() }
    }
    /// Takes over the fragments of the old element (hot swap).
    pub fn go_on_from(&mut self, old: &mut Fragments) {
        std::mem::swap(&mut self.map, &mut old.map);
        std::mem::swap(&mut self.order, &mut old.order);
        std::mem::swap(&mut self.waiting, &mut old.waiting);
    }
    /// Returns the number of fragments that wait for their first fragment.
    pub fn held(&self) -> usize {
        self.waiting.len()
    }
    /// Makes a later fragment wait for its first fragment. Returns a fragment that cannot wait: `p` if it has
    /// no IP header, or the oldest if too many fragments wait.
    pub fn wait(&mut self, p: Packet, now: i64) -> Option<Packet> {
        let Some(ip) = p.ip_header().copied() else { return Some(p) };
        self.waiting.push_back((p, identity(&ip), now));
        if self.waiting.len() > MOST_WAITING { self.waiting.pop_front().map(|w| w.0) } else { None }
    }
    /// Removes and returns the fragments that have waited for this first fragment, in the order of their
    /// arrival.
    pub fn released(&mut self, ip: &[u8; 20]) -> impl Iterator<Item = Packet> + use<> {
        let identity = identity(ip);
        let (gone, left) = self.waiting.drain(..).partition::<VecDeque<_>, _>(|w| w.1 == identity);
        self.waiting = left;
        gone.into_iter().map(|w| w.0)
    }
    /// Removes and returns a fragment that has waited too long.
    pub fn given_up(&mut self, now: i64) -> Option<Packet> {
        let timeout = self.timeout;
        self.waiting.pop_front_if(|w| now.saturating_sub(w.2) > timeout).map(|w| w.0)
    }
    /// Removes and returns all fragments that wait.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> {
        self.waiting.drain(..).map(|w| w.0)
    }
    /// Forgets all first fragments.
    pub fn clear(&mut self) {
        self.map.clear();
        self.order.clear();
    }
    /// Remembers the flow of a first fragment, for the later fragments of the same packet.
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
    /// Finds the flow of a later fragment, if its first fragment has come.
    pub fn find(&self, ip: &[u8; 20], now: i64) -> Option<Seen> {
        let (seen, time) = self.map.get(&identity(ip))?;
        (now.saturating_sub(*time) <= self.timeout).then_some(*seen)
    }
    /// Returns the number of first fragments that are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

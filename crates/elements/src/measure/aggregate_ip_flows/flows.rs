// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of flows, in bounded memory.

use crate::measure::small_keys::SmallKeys;
use castanet_wire::ipv4::protocol;
use castanet_wire::tcp::flag;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

/// Largest number of flows that are stored.
pub const MOST_FLOWS: usize = 1 << 20;
/// Largest number of flows that are examined to find an idle flow to remove.
const TRIES: usize = 16;

/// The two ends of a flow (address and port each), the lower end first, and its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    low: (u32, u16),
    high: (u32, u16),
    kind: u8,
}

/// Hashes the key as two words.
impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, to: &mut H) {
        let word = |(addr, port): (u32, u16)| u64::from(addr) | u64::from(port) << 32;
        to.write_u64(word(self.low) | u64::from(self.kind) << 48);
        to.write_u64(word(self.high));
    }
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
    pub key: Key,
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

/// The facts about a packet that the table needs.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The flow of the packet.
    pub key: Key,
    /// Whether the packet goes from the lower end of the flow to the higher.
    pub up: bool,
    /// The TCP flags; 0 for UDP.
    pub flags: u8,
    /// The time of the packet, in nanoseconds.
    pub now: i64,
}

/// All flows that are stored.
pub struct Table {
    /// The largest number of flows that are stored.
    most: usize,
    map: HashMap<Key, Flow, SmallKeys>,
    /// The keys of all flows, approximately in the order of their last packets. Each key is stored with the `last` that
    /// its flow had when the key was queued.
    order: VecDeque<(Key, i64)>,
}

impl Table {
    /// Makes an empty table for at most `most` flows.
    pub fn new(most: usize) -> Table {
        Table { most, map: HashMap::default(), order: VecDeque::new() }
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

    /// Counts a packet in its flow, and creates the flow if necessary. `number` returns the number for a new flow.
    /// Calls `gone` with each flow that ends as a result.
    pub fn packet(
        &mut self,
        packet: Arrival,
        timeouts: &Timeouts,
        number: impl FnOnce() -> u32,
        mut gone: impl FnMut(&Flow),
    ) -> Seen {
        let Arrival { key, up, flags, now } = packet;
        let fresh =
            || Flow { aggregate: number(), key, up, first: now, last: now, packets: [0; 2], closed: 0 };
        if self.map.len() >= self.most && !self.map.contains_key(&key) {
            self.evict(&mut gone);
        }
        let flow = match self.map.entry(key) {
            Entry::Occupied(e) => {
                let flow = e.into_mut();
                if flow.is_over(now, timeouts) || flow.closed == 3 && super::begins(flags) {
                    gone(flow);
                    *flow = fresh();
                }
                flow
            }
            Entry::Vacant(e) => {
                self.order.push_back((key, now));
                e.insert(fresh())
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

    /// Moves ended flows to `over`.
    pub fn reap(&mut self, now: i64, timeouts: &Timeouts, over: &mut Vec<Flow>) {
        let before = over.len();
        over.extend(self.map.extract_if(|_, f| f.is_over(now, timeouts)).map(|f| f.1));
        if over.len() > before {
            let map = &self.map;
            self.order.retain(|(key, _)| map.contains_key(key));
        }
    }

    /// Removes all flows. Returns them in the order of their last packets, approximately.
    pub fn drain(&mut self) -> impl Iterator<Item = Flow> {
        let mut map = std::mem::take(&mut self.map);
        std::mem::take(&mut self.order).into_iter().filter_map(move |(key, _)| map.remove(&key))
    }

    /// Stores a flow of another table. Calls `gone` with the flow that is removed for it, if the table is full.
    pub fn insert(&mut self, flow: Flow, mut gone: impl FnMut(&Flow)) {
        if self.map.len() >= self.most {
            self.evict(&mut gone);
        }
        self.order.push_back((flow.key, flow.last));
        if let Some(before) = self.map.insert(flow.key, flow) {
            gone(&before);
        }
    }
}

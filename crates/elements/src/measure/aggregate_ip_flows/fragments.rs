// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fragments that belong to flows: first fragments that are remembered, and later fragments that wait.

use super::flows::Seen;
use castanet_element::prelude::*;
use std::collections::{HashMap, VecDeque};

/// Largest number of first fragments that are remembered.
pub const MOST_FRAGMENTS: usize = 1 << 14;
/// Largest number of later fragments that wait for their first fragment.
pub const MOST_WAITING: usize = 1 << 10;

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
    /// Takes over the fragments of another store (hot swap).
    pub fn take_from(&mut self, other: &mut Fragments) {
        self.map.extend(other.map.drain());
        self.order.extend(other.order.drain(..));
        self.waiting.extend(other.waiting.drain(..));
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

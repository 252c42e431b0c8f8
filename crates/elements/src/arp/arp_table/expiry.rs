// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes expired entries from an ARP table. When a capacity is exceeded, removes entries or waiting packets.

use super::state::{Inner, Lost, State};
use castanet_element::prelude::*;
use std::collections::VecDeque;

impl State {
    /// Makes the addresses of expired entries unknown. Removes expired entries that had no address, entries that
    /// expired long ago, and packets that have waited too long.
    #[inline]
    pub(super) fn expire_old(&self, inner: &mut Inner, now: i64, lost: &mut Lost) {
        if now >= inner.expires {
            self.expire_now(inner, now, lost);
        }
    }
    #[cold]
    fn expire_now(&self, inner: &mut Inner, now: i64, lost: &mut Lost) {
        inner.expires = i64::MAX;
        let settings = inner.settings;
        while let Some((&turn, &ip)) = inner.order.range(inner.checked.saturating_add(1)..).next() {
            let Some(e) = inner.entries.get_mut(&ip) else { break };
            if !settings.expired(now.saturating_sub(e.updated)) {
                inner.expires = settings.end(e.updated);
                break;
            }
            inner.checked = turn;
            // The copies of the entry in the queriers' caches need no invalidation, because they expire at the same
            // time.
            if e.known() || e.expired {
                e.expired = true;
                inner.unknown.insert(turn);
            } else {
                let held = inner.remove(turn);
                self.lose(held, Reason::ArpTimeout, lost);
            }
        }
        while let Some((&turn, &ip)) = inner.order.range(..=inner.checked).next() {
            let Some(e) = inner.entries.get(&ip) else { break };
            let removal = settings.removal(e.updated);
            if now < removal {
                inner.expires = inner.expires.min(removal);
                break;
            }
            let held = inner.remove(turn);
            self.lose(held, Reason::ArpTimeout, lost);
        }
        while let Some(&(until, ip)) = inner.waiting.front() {
            if now < until {
                inner.expires = inner.expires.min(until);
                break;
            }
            inner.waiting.pop_front();
            if let Some(e) = inner.entries.get_mut(&ip).filter(|e| e.until == until && !e.known()) {
                let held = std::mem::take(&mut e.held);
                inner.held = inner.held.saturating_sub(held.len());
                self.lose(held, Reason::ArpTimeout, lost);
            }
        }
    }
    pub(super) fn slim_entries(&self, inner: &mut Inner, lost: &mut Lost) {
        let capacity = inner.settings.entry_capacity;
        if capacity == 0 || inner.entries.len() <= capacity as usize {
            return;
        }
        let target = inner.settings.slimmed(capacity).max(1);
        while inner.entries.len() > target {
            let held = inner.remove_for_room();
            self.lose(held, Reason::ArpQueueFull, lost);
        }
        self.invalidate();
    }
    /// Makes room for `more` waiting packets. If they would exceed the capacity, drops packets that wait.
    pub(super) fn slim_packets(&self, inner: &mut Inner, more: usize, lost: &mut Lost) {
        let capacity = inner.settings.capacity;
        let held = inner.held.saturating_add(more);
        if capacity == 0 || held <= capacity as usize {
            return;
        }
        let mut surplus = held.saturating_sub(inner.settings.slimmed(capacity));
        for ip in inner.order.values() {
            let Some(e) = inner.entries.get_mut(ip) else { continue };
            let n = surplus.min(e.held.len());
            surplus -= n;
            inner.held -= n;
            self.lose(e.held.drain(..n), Reason::ArpQueueFull, lost);
            if surplus == 0 {
                break;
            }
        }
    }
}

impl Inner {
    /// If `waiting` has become long, removes the records that no longer match an entry.
    pub(super) fn slim_waiting(&mut self) {
        if self.waiting.len() > 64 + 2 * self.entries.len() {
            let entries = &self.entries;
            self.waiting.retain(|(until, ip)| entries.get(ip).is_some_and(|e| e.until == *until));
        }
    }
    /// Removes the entry that was updated longest ago. Returns the packets that waited for it.
    fn remove_first(&mut self) -> VecDeque<Packet> {
        let turn = self.order.first_key_value().map_or(0, |o| *o.0);
        self.remove(turn)
    }
    /// Removes the oldest entry with an unknown address, or the oldest of all if no address is unknown. Returns the
    /// packets that waited for it. Unknown addresses go first, so that packets to non-existent hosts cannot push out
    /// the entries of real hosts. The newest entry stays, because the space is needed for this entry.
    fn remove_for_room(&mut self) -> VecDeque<Packet> {
        let unknown = self.unknown.first().copied().filter(|&turn| turn != self.turns);
        match unknown {
            Some(turn) => self.remove(turn),
            None => self.remove_first(),
        }
    }
    /// Removes the entry with key `turn` in `order`. Returns the packets that waited for it.
    fn remove(&mut self, turn: u64) -> VecDeque<Packet> {
        self.unknown.remove(&turn);
        let gone = self.order.remove(&turn).and_then(|ip| self.entries.remove(&ip));
        let held = gone.map(|e| e.held).unwrap_or_default();
        self.held = self.held.saturating_sub(held.len());
        held
    }
}

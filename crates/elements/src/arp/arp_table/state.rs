// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table behind ARPTable and ARPQuerier: the Ethernet addresses of IP addresses, and the packets that wait for
//! them.
//!
//! One lock protects the table. To avoid taking the lock, queriers cache an entry until its next query or its expiry is
//! due. An atomic number, the generation, shows whether cached entries are still valid.

use super::copies::Copies;
use super::entry::{Entry, Settings};
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};

/// Packets that were removed from the table, each with its drop reason.
pub type Lost = Vec<(Packet, Reason)>;

#[derive(Default)]
pub(super) struct Inner {
    pub(super) settings: Settings,
    pub(super) entries: HashMap<u32, Entry>,
    /// The IP addresses of all entries, in the order of their updates. The key is `Entry::turn`.
    pub(super) order: BTreeMap<u64, u32>,
    /// The keys in `order` of the entries whose Ethernet address is unknown.
    pub(super) unknown: BTreeSet<u64>,
    /// The greatest key in `order` of an entry that was found to have expired. All entries with smaller keys have
    /// expired too.
    pub(super) checked: u64,
    /// The key of the latest update in `order`.
    pub(super) turns: u64,
    pub(super) held: usize,
    /// The earliest time at which an entry may expire or a packet may time out, in nanoseconds. Every look-up compares
    /// the current time with it.
    pub(super) expires: i64,
    /// How long packets wait for a reply, in nanoseconds; 0: until their entry expires. A table that takes over the
    /// entries of another keeps its own value.
    pub(super) patience: i64,
    /// The IP addresses that packets wait for, each with the time when these packets time out, earliest first. An item
    /// is outdated if its time differs from `until` in the table's entry of the address. Outdated items are skipped.
    pub(super) waiting: VecDeque<(i64, u32)>,
}

/// An ARP table, which queriers and workers share.
pub struct State {
    inner: Mutex<Inner>,
    /// Incremented whenever a known address changes, or is removed before it expires.
    generation: AtomicU32,
    copies: Copies,
    drops: SharedCount,
}

impl State {
    /// Makes an empty table.
    pub fn new(settings: Settings) -> State {
        State {
            inner: Mutex::new(Inner { settings, ..Inner::default() }),
            generation: AtomicU32::new(1),
            copies: Copies::default(),
            drops: SharedCount::default(),
        }
    }
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
    /// Sets the capacities and times.
    pub fn configure(&self, settings: Settings) {
        let mut inner = self.lock();
        inner.settings = settings;
        inner.expires = 0;
    }
    /// Sets how long packets wait for a reply before the table removes them, in nanoseconds.
    pub fn give_up_after(&self, patience: i64) {
        self.lock().patience = patience;
    }
    /// Returns the generation. A copy of an entry is valid only in the generation in which it was made.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }
    /// Makes all cached copies of entries invalid, by starting a new generation.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        self.copies.clear();
    }
    pub(super) fn copies(&self) -> &Copies {
        &self.copies
    }
    /// Returns the count of packets that the table dropped.
    pub fn drops(&self) -> &SharedCount {
        &self.drops
    }
    /// Returns the numbers of entries and of waiting packets.
    pub fn size(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.entries.len(), inner.held)
    }
    pub(super) fn lose(&self, packets: impl IntoIterator<Item = Packet>, reason: Reason, lost: &mut Lost) {
        let before = lost.len();
        lost.extend(packets.into_iter().map(|p| (p, reason)));
        self.drops.add((lost.len() - before) as u64);
    }

    /// Sets the Ethernet address of an IP address, or makes it unknown if `ether` is the broadcast address. Waiting
    /// packets stay in the table.
    pub fn insert(&self, ip: u32, ether: EtherAddr, now: i64, lost: &mut Lost) {
        let mut inner = self.lock();
        self.put_known(&mut inner, ip, ether, now, lost);
    }

    fn put_known(&self, inner: &mut Inner, ip: u32, ether: EtherAddr, now: i64, lost: &mut Lost) {
        self.expire_old(inner, now, lost);
        if inner.put(ip, ether, now).is_some_and(|old| !old.is_broadcast() && old != ether) {
            self.invalidate();
        }
        self.slim_entries(inner, lost);
    }

    /// Learns an address from an ARP packet, and returns the packets that waited for it. `workers` is explained at
    /// [`LookUp`](super::LookUp).
    ///
    /// An existing entry is always updated. A new entry is made only if `create` is true (RFC 826, packet reception).
    /// Returns `None` if nothing was learnt.
    pub fn answer(
        &self,
        ip: u32,
        ether: EtherAddr,
        now: i64,
        workers: bool,
        create: bool,
        lost: &mut Lost,
    ) -> Option<VecDeque<Packet>> {
        // Hold the lock throughout, because no other worker may see the new address before `releasing` is set.
        let mut inner = self.lock();
        let inner = &mut *inner;
        self.expire_old(inner, now, lost);
        let before = inner.entries.get(&ip).map(|e| (e.known().then_some(e.ether), e.queried));
        if before.is_none() && !create {
            return None;
        }
        self.put_known(inner, ip, ether, now, lost);
        let Some(e) = inner.entries.get_mut(&ip) else { return Some(VecDeque::new()) };
        if let Some((Some(old), before)) = before {
            e.queried = before.claimed(old != ether, now);
        }
        if e.releasing {
            // A worker is already sending earlier packets to this address. The same worker will then send the packets
            // that wait now.
            return Some(VecDeque::new());
        }
        e.releasing = workers && !e.held.is_empty();
        let held = std::mem::take(&mut e.held);
        inner.held = inner.held.saturating_sub(held.len());
        Some(held)
    }

    /// Called when the packets that [`State::answer`] or [`State::look_up`] returned have been sent. Returns the
    /// packets that have begun to wait since, and their Ethernet address. `None` if there are none; other workers may
    /// then send to the address again.
    pub fn release(&self, ip: u32) -> Option<(EtherAddr, VecDeque<Packet>)> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let e = inner.entries.get_mut(&ip)?;
        e.releasing = e.known() && !e.held.is_empty();
        if !e.releasing {
            return None;
        }
        let held = std::mem::take(&mut e.held);
        inner.held = inner.held.saturating_sub(held.len());
        Some((e.ether, held))
    }

    /// Makes the Ethernet address of an IP address unknown, but keeps its entry.
    pub fn delete(&self, ip: u32, now: i64, lost: &mut Lost) {
        let exists = self.lock().entries.contains_key(&ip);
        if exists {
            self.insert(ip, EtherAddr::BROADCAST, now, lost);
        }
    }

    /// Removes all entries and waiting packets.
    pub fn clear(&self, lost: &mut Lost) {
        let mut inner = self.lock();
        inner.order.clear();
        inner.unknown.clear();
        inner.waiting.clear();
        (inner.held, inner.checked, inner.expires) = (0, 0, i64::MAX);
        let entries = std::mem::take(&mut inner.entries);
        self.lose(entries.into_values().flat_map(|e| e.held), Reason::Cleared, lost);
        self.invalidate();
    }

    /// Removes expired entries, and packets that have waited too long. Returns the time of the next expiry, if there is
    /// one.
    pub fn expire(&self, now: i64, lost: &mut Lost) -> Option<i64> {
        let mut inner = self.lock();
        self.expire_old(&mut inner, now, lost);
        let waits = inner.waiting.front().map_or(i64::MAX, |w| w.0);
        Some(inner.expires.min(waits)).filter(|&t| t < i64::MAX && !inner.entries.is_empty())
    }

    /// Takes over the entries and waiting packets of another table.
    pub fn take_over(&self, old: &State, lost: &mut Lost) {
        // Lock one table after the other. It is not necessary to hold both locks at once, because two tables never take
        // over from each other at the same time.
        let mut from = {
            let mut old = old.lock();
            let (settings, patience) = (old.settings, old.patience);
            std::mem::replace(&mut *old, Inner { settings, patience, ..Inner::default() })
        };
        old.invalidate();
        // By now, the workers have sent all packets that they had taken from the table.
        from.entries.values_mut().for_each(|e| e.releasing = false);
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.entries.is_empty() {
            // An empty table takes over the other table as a whole, which is fast however large that table is.
            let (settings, patience) = (inner.settings, inner.patience);
            *inner = Inner { settings, patience, expires: 0, ..std::mem::take(&mut from) };
        }
        for ip in from.order.into_values() {
            let Some(mut e) = from.entries.remove(&ip) else { continue };
            inner.turns += 1;
            inner.expires = inner.expires.min(inner.settings.end(e.updated));
            e.turn = inner.turns;
            inner.order.insert(e.turn, ip);
            if !e.known() {
                inner.unknown.insert(e.turn);
            }
            inner.held += e.held.len();
            if let Some(mine) = inner.entries.insert(ip, e) {
                inner.order.remove(&mine.turn);
                inner.unknown.remove(&mine.turn);
                inner.held -= mine.held.len();
                self.lose(mine.held, Reason::Cleared, lost);
            }
        }
        inner.wait_as_patience_says();
        self.slim_entries(inner, lost);
        self.slim_packets(inner, 0, lost);
        self.invalidate();
    }

    /// Returns the entries as text, one per line, oldest first: `IP KNOWN ETHER AGE`.
    pub fn list(&self, now: i64) -> String {
        let inner = self.lock();
        let mut out = String::new();
        let mut all: Vec<_> =
            inner.order.values().filter_map(|ip| Some((ip, inner.entries.get(ip)?))).collect();
        // Sort by age, because `order` may differ: a packet to an expired address makes its entry younger, but does not
        // move it in `order`.
        all.sort_by_key(|(_, e)| e.updated);
        for (ip, e) in all {
            let ip = std::net::Ipv4Addr::from_bits(*ip);
            let age = now.saturating_sub(e.updated);
            out.push_str(&format!("{ip} {} {} {}\n", u8::from(e.known()), e.ether, Timestamp(age).show()));
        }
        out
    }
}

impl Inner {
    /// Recomputes the times when waiting packets time out, after entries came from a table with another `patience`.
    fn wait_as_patience_says(&mut self) {
        self.waiting.clear();
        if self.patience == 0 {
            return;
        }
        for (&ip, e) in self.entries.iter_mut().filter(|(_, e)| !e.held.is_empty() && !e.known()) {
            // If `until` is set, keep it. If not, the packets count as waiting since the last update of their entry.
            if e.until == 0 {
                e.until = e.updated.saturating_add(self.patience);
            }
            self.waiting.push_back((e.until, ip));
        }
        self.waiting.make_contiguous().sort_unstable();
        self.expires = self.expires.min(self.waiting.front().map_or(i64::MAX, |w| w.0));
    }

    /// Adds a packet to those that wait for an IP address. The address must have an entry.
    pub(super) fn hold(&mut self, ip: u32, packet: Packet) {
        if let Some(e) = self.entries.get_mut(&ip) {
            e.held.push_back(packet);
            self.held += 1;
        }
    }
    /// Updates or adds an entry. Returns the Ethernet address that the entry had before.
    pub(super) fn put(&mut self, ip: u32, ether: EtherAddr, now: i64) -> Option<EtherAddr> {
        self.turns += 1;
        let turn = self.turns;
        self.expires = self.expires.min(self.settings.end(now));
        let new = Entry::new(ether, now, turn);
        let old = match self.entries.get_mut(&ip) {
            Some(e) => {
                self.order.remove(&e.turn);
                self.unknown.remove(&e.turn);
                let held = std::mem::take(&mut e.held);
                let (releasing, until) = (e.releasing, e.until);
                Some(std::mem::replace(e, Entry { held, releasing, until, ..new }).ether)
            }
            None => {
                self.entries.insert(ip, new);
                None
            }
        };
        self.order.insert(turn, ip);
        if ether.is_broadcast() {
            self.unknown.insert(turn);
        }
        old
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table behind ARPTable and ARPQuerier: which Ethernet address an IP address has, and the packets that wait
//! for it.
//!
//! Everything goes through one lock, but queriers keep what they learnt from it until something has to happen, and
//! see from one atomic number whether it still holds.

use super::entry::{Entry, Settings};
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The result of a look-up.
#[derive(Debug)]
pub enum Found {
    /// The address; the packet may go, as may all others before `until`.
    Known {
        /// The address.
        ether: EtherAddr,
        /// The packet.
        packet: Packet,
        /// When the entry has to be looked up again.
        until: i64,
        /// Whether it is time to ask whether the address is still right.
        query: bool,
        /// Whether the query is to be broadcast: the host of that address may not be the right one, or gave no answer.
        lost: bool,
        /// Packets that waited for this address and go before.
        held: VecDeque<Packet>,
    },
    /// The packet waits.
    Held {
        /// Whether it is time for a query.
        query: bool,
        /// Whether it is the first that waits for this address.
        first: bool,
    },
}

/// Packets that lost their place, and why.
pub type Lost = Vec<(Packet, Reason)>;

#[derive(Default)]
pub(super) struct Inner {
    pub(super) settings: Settings,
    pub(super) entries: HashMap<u32, Entry>,
    /// Addresses in the order of their updates.
    pub(super) order: BTreeMap<u64, u32>,
    /// Which of these are not known.
    pub(super) unknown: BTreeSet<u64>,
    /// All entries up to this place are expired.
    pub(super) checked: u64,
    /// The place of the last update.
    pub(super) turns: u64,
    pub(super) held: usize,
    /// Before this time no entry is too old, and no packet is given up: what every look-up compares with.
    pub(super) expires: i64,
    /// How long packets wait until they are given up; 0: as long as their entry lives. It belongs to the table, as its settings do,
    /// and does not move with the entries.
    pub(super) patience: i64,
    /// For which addresses packets wait, and until when, in order. Records of entries that are gone are skipped.
    pub(super) waiting: VecDeque<(i64, u32)>,
}

/// A table, shared by queriers and workers.
pub struct State {
    inner: Mutex<Inner>,
    /// Changes whenever a known address changes or goes away before its time.
    generation: AtomicU32,
    drops: AtomicU64,
}

impl State {
    /// An empty table.
    pub fn new(settings: Settings) -> State {
        State {
            inner: Mutex::new(Inner { settings, ..Inner::default() }),
            generation: AtomicU32::new(1),
            drops: AtomicU64::new(0),
        }
    }
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Sets capacities and times.
    pub fn configure(&self, settings: Settings) {
        let mut inner = self.lock();
        inner.settings = settings;
        inner.expires = 0;
    }
    /// Has packets given up that have waited so long without an answer.
    pub fn give_up_after(&self, patience: i64) {
        self.lock().patience = patience;
    }
    /// The generation for which a copy of an entry is valid: it counts up when one may have become wrong.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }
    /// Makes all copies of entries invalid.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }
    /// Packets that were thrown out.
    pub fn drops(&self) -> u64 {
        self.drops.load(Ordering::Relaxed)
    }
    /// Number of entries, and of packets that wait.
    pub fn size(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.entries.len(), inner.held)
    }
    pub(super) fn lose(&self, packets: impl IntoIterator<Item = Packet>, reason: Reason, lost: &mut Lost) {
        let before = lost.len();
        lost.extend(packets.into_iter().map(|p| (p, reason)));
        self.drops.fetch_add((lost.len() - before) as u64, Ordering::Relaxed);
    }

    /// Looks an address up. An unknown one keeps the packet; what has to make room is added to `lost`. `poll` is
    /// the age from which a known address is asked for again; 0: never.
    ///
    /// With `workers`, several look up: until [`State::release`] finds nothing any more, packets wait behind those that
    /// are given here, so that none overtakes another on its way through another worker.
    pub fn look_up(
        &self,
        ip: u32,
        packet: Packet,
        poll: i64,
        now: i64,
        workers: bool,
        lost: &mut Lost,
    ) -> Found {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let settings = inner.settings;
        self.expire_old(inner, now, lost);
        if inner.entries.get(&ip).is_some_and(|e| e.known() && e.releasing) {
            self.slim_packets(inner, 1, lost);
            inner.hold(ip, packet);
            return Found::Held { query: false, first: false };
        }
        if let Some(e) = inner.entries.get_mut(&ip)
            && e.known()
        {
            e.releasing = workers && !e.held.is_empty();
            e.end_doubt(now);
            let due = e.poll_due(poll);
            let query = now >= due && e.query(now);
            let next = due.max(e.next_query());
            let held = std::mem::take(&mut e.held);
            inner.held = inner.held.saturating_sub(held.len());
            return Found::Known {
                ether: e.ether,
                packet,
                until: settings.end(e.updated).min(next),
                query,
                lost: e.is_lost(),
                held,
            };
        }
        if !inner.entries.contains_key(&ip) {
            inner.put(ip, EtherAddr::BROADCAST, now);
            self.slim_entries(inner, lost);
        }
        let (mut query, mut first) = (false, false);
        if let Some(e) = inner.entries.get_mut(&ip) {
            if e.expired {
                // As long as packets come to it, the entry is just expired.
                e.updated = e.updated.max(now.saturating_sub(settings.timeout));
            }
            query = e.query(now);
            first = e.held.is_empty();
            if first && inner.patience > 0 {
                e.until = now.saturating_add(inner.patience);
                inner.waiting.push_back((e.until, ip));
                inner.expires = inner.expires.min(e.until);
            }
            let cap = settings.entry_packet_capacity as usize;
            if cap > 0 && e.held.len() >= cap {
                // The latest packet is the one worth saving (RFC 1122 section 2.3.2.2).
                let surplus = e.held.len() - cap + 1;
                inner.held = inner.held.saturating_sub(surplus);
                self.lose(e.held.drain(..surplus), Reason::ArpQueueFull, lost);
            }
        }
        // The packet itself is never the one that makes room.
        self.slim_packets(inner, 1, lost);
        inner.hold(ip, packet);
        inner.slim_waiting();
        Found::Held { query, first }
    }

    /// Makes an address known, or unknown when it is the broadcast one. Its waiting packets stay where they are.
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

    /// Learns an address from an ARP packet and gives the packets that waited for it. As to `workers`, see [`State::look_up`].
    ///
    /// An entry is updated by any reply; one is made only with `create` (RFC 826, packet reception). Otherwise there is
    /// none, and nothing was learnt.
    pub fn answer(
        &self,
        ip: u32,
        ether: EtherAddr,
        now: i64,
        workers: bool,
        create: bool,
        lost: &mut Lost,
    ) -> Option<VecDeque<Packet>> {
        // No other worker may see the address before it is marked as being released.
        let mut inner = self.lock();
        let inner = &mut *inner;
        self.expire_old(inner, now, lost);
        let before =
            inner.entries.get(&ip).map(|e| (e.known().then_some(e.ether), e.queries, e.queried, e.doubt));
        if before.is_none() && !create {
            return None;
        }
        self.put_known(inner, ip, ether, now, lost);
        let Some(e) = inner.entries.get_mut(&ip) else { return Some(VecDeque::new()) };
        if let Some((Some(old), queries, queried, doubt)) = before {
            e.doubt = Entry::claimed(doubt, old != ether);
            if e.doubt.is_some() {
                // The pace of queries stays, so that two hosts with one address do not cause more of them.
                (e.queries, e.queried) = (queries, queried);
            }
        }
        if e.releasing {
            // The worker that releases the packets before takes these too.
            return Some(VecDeque::new());
        }
        e.releasing = workers && !e.held.is_empty();
        let held = std::mem::take(&mut e.held);
        inner.held = inner.held.saturating_sub(held.len());
        Some(held)
    }

    /// When the packets given by [`State::answer`] or [`State::look_up`] have gone their way: those that came to wait
    /// meanwhile, with their address, or none, and then others may pass.
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

    /// Makes an address unknown; its entry stays.
    pub fn delete(&self, ip: u32, now: i64, lost: &mut Lost) {
        let exists = self.lock().entries.contains_key(&ip);
        if exists {
            self.insert(ip, EtherAddr::BROADCAST, now, lost);
        }
    }

    /// Forgets everything.
    pub fn clear(&self, lost: &mut Lost) {
        let mut inner = self.lock();
        inner.order.clear();
        inner.unknown.clear();
        (inner.held, inner.checked, inner.expires) = (0, 0, i64::MAX);
        let entries = std::mem::take(&mut inner.entries);
        self.lose(entries.into_values().flat_map(|e| e.held), Reason::Cleared, lost);
        self.invalidate();
    }

    /// Forgets what is too old; when to come back, if something is left that will be.
    pub fn expire(&self, now: i64, lost: &mut Lost) -> Option<i64> {
        let mut inner = self.lock();
        self.expire_old(&mut inner, now, lost);
        let waits = inner.waiting.front().map_or(i64::MAX, |w| w.0);
        Some(inner.expires.min(waits)).filter(|&t| t < i64::MAX && !inner.entries.is_empty())
    }

    /// Takes over entries and packets of another table.
    pub fn take_over(&self, old: &State, lost: &mut Lost) {
        // One lock after the other: two routers never swap with each other at once.
        let mut from = {
            let mut old = old.lock();
            let (settings, patience) = (old.settings, old.patience);
            std::mem::replace(&mut *old, Inner { settings, patience, ..Inner::default() })
        };
        old.invalidate();
        // Packets that were on their way through a worker have arrived.
        from.entries.values_mut().for_each(|e| e.releasing = false);
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.entries.is_empty() {
            // A large table moves as it is.
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
        self.drops.fetch_add(old.drops.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.slim_entries(inner, lost);
        self.slim_packets(inner, 0, lost);
        self.invalidate();
    }

    /// One line an entry, oldest first: `IP KNOWN ETHER AGE`.
    pub fn list(&self, now: i64) -> String {
        let inner = self.lock();
        let mut out = String::new();
        let mut all: Vec<_> =
            inner.order.values().filter_map(|ip| Some((ip, inner.entries.get(ip)?))).collect();
        // Expired entries that packets come to have become younger than they were.
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
    /// Sets anew until when packets wait, after entries of a table with another patience came here.
    fn wait_as_patience_says(&mut self) {
        self.waiting.clear();
        if self.patience == 0 {
            return;
        }
        for (&ip, e) in self.entries.iter_mut().filter(|(_, e)| !e.held.is_empty() && !e.known()) {
            // Those that came here with a time keep it; the others have waited since their entry was made.
            if e.until == 0 {
                e.until = e.updated.saturating_add(self.patience);
            }
            self.waiting.push_back((e.until, ip));
        }
        self.waiting.make_contiguous().sort_unstable();
        self.expires = self.expires.min(self.waiting.front().map_or(i64::MAX, |w| w.0));
    }

    /// Has a packet wait for an address that has an entry.
    fn hold(&mut self, ip: u32, packet: Packet) {
        if let Some(e) = self.entries.get_mut(&ip) {
            e.held.push_back(packet);
            self.held += 1;
        }
    }
    /// Updates or adds an entry; the address it had.
    fn put(&mut self, ip: u32, ether: EtherAddr, now: i64) -> Option<EtherAddr> {
        self.turns += 1;
        let turn = self.turns;
        self.expires = self.expires.min(self.settings.end(now));
        let new = Entry {
            ether,
            expired: false,
            updated: now,
            turn,
            queries: 0,
            queried: 0,
            held: VecDeque::new(),
            releasing: false,
            until: 0,
            doubt: None,
        };
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

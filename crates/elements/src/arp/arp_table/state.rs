// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table behind ARPTable and ARPQuerier: which Ethernet address an IP address has, and the packets that wait
//! for it.
//!
//! Everything goes through one lock, but queriers keep what they learnt from it until something has to happen, and
//! see from one atomic number whether it still holds.

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MS: i64 = 1_000_000;
/// Queries for one address that go out at the quick pace.
const QUICK_QUERIES: u32 = 10;

/// Capacities and times of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most packets that wait; 0: no limit.
    pub capacity: u32,
    /// The most entries; 0: no limit.
    pub entry_capacity: u32,
    /// The most packets that wait for one address; 0: no limit.
    pub entry_packet_capacity: u32,
    /// When a capacity is exceeded, one in so many parts of it is made free; 0: no more than needed.
    pub slim_factor: u32,
    /// How long an entry lives after its last update; 0: for ever.
    pub timeout: i64,
}

impl Default for Settings {
    fn default() -> Self {
        let timeout = 300_000 * MS;
        Settings { capacity: 2048, entry_capacity: 0, entry_packet_capacity: 0, slim_factor: 2, timeout }
    }
}

impl Settings {
    fn slimmed(self, capacity: u32) -> usize {
        capacity.saturating_sub(capacity.checked_div(self.slim_factor).unwrap_or(0)) as usize
    }
    fn expired(self, age: i64) -> bool {
        self.timeout > 0 && age >= self.timeout
    }
    /// When an entry is too old.
    fn end(self, updated: i64) -> i64 {
        if self.timeout > 0 { updated.saturating_add(self.timeout) } else { i64::MAX }
    }
}

struct Entry {
    /// The broadcast address when it is not known.
    ether: EtherAddr,
    updated: i64,
    /// Place in the order of updates.
    turn: u64,
    queries: u32,
    queried: i64,
    held: VecDeque<Packet>,
    /// Known, but packets that waited are still on their way through one worker: those of others go behind them.
    releasing: bool,
    /// When the packets that wait now are given up, if they are.
    until: i64,
}

impl Entry {
    fn known(&self) -> bool {
        !self.ether.is_broadcast()
    }
    /// The earliest time of the next query: one per 100 ms at first, then one per 2 s (RFC 1122 section 2.3.2.1
    /// wants at most one per second and address in the long run).
    fn next_query(&self) -> i64 {
        match self.queries {
            0 => i64::MIN,
            n if n < QUICK_QUERIES => self.queried.saturating_add(100 * MS),
            _ => self.queried.saturating_add(2_000 * MS),
        }
    }
    fn query(&mut self, now: i64) -> bool {
        let go = now >= self.next_query();
        if go {
            self.queries = self.queries.saturating_add(1);
            self.queried = now;
        }
        go
    }
}

/// What a look-up found.
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
struct Inner {
    settings: Settings,
    entries: HashMap<u32, Entry>,
    order: BTreeMap<u64, u32>,
    turns: u64,
    held: usize,
    /// Before this time no entry is too old, and no packet is given up: what every look-up compares with.
    expires: i64,
    /// How long packets wait until they are given up; 0: as long as their entry lives.
    patience: i64,
    /// For which addresses packets wait, and until when, in order. What is there no more is passed over.
    waiting: VecDeque<(i64, u32)>,
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
    /// What a copy of an entry is valid for: it counts up when one may have become wrong.
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
    fn lose(&self, packets: impl IntoIterator<Item = Packet>, reason: Reason, lost: &mut Lost) {
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
        if let Some(e) = inner.entries.get_mut(&ip)
            && e.known()
            && e.releasing
        {
            e.held.push_back(packet);
            inner.held += 1;
            self.slim_packets(inner, lost);
            return Found::Held { query: false, first: false };
        }
        if let Some(e) = inner.entries.get_mut(&ip)
            && e.known()
        {
            e.releasing = workers && !e.held.is_empty();
            let due = e.updated.saturating_add(poll);
            let query = poll > 0 && now >= due && e.query(now);
            let next = if poll > 0 { due.max(e.next_query()) } else { i64::MAX };
            let held = std::mem::take(&mut e.held);
            inner.held = inner.held.saturating_sub(held.len());
            return Found::Known {
                ether: e.ether,
                packet,
                until: settings.end(e.updated).min(next),
                query,
                held,
            };
        }
        if !inner.entries.contains_key(&ip) {
            inner.put(ip, EtherAddr::BROADCAST, now);
            self.slim_entries(inner, lost);
        }
        let (mut query, mut first) = (false, false);
        if let Some(e) = inner.entries.get_mut(&ip) {
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
            e.held.push_back(packet);
            inner.held += 1;
        }
        self.slim_packets(inner, lost);
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

    /// Makes an address known and gives the packets that waited for it. As to `workers`, see [`State::look_up`].
    pub fn answer(
        &self,
        ip: u32,
        ether: EtherAddr,
        now: i64,
        workers: bool,
        lost: &mut Lost,
    ) -> VecDeque<Packet> {
        // Nobody may see the address before it is marked as being released.
        let mut inner = self.lock();
        let inner = &mut *inner;
        self.put_known(inner, ip, ether, now, lost);
        let Some(e) = inner.entries.get_mut(&ip) else { return VecDeque::new() };
        if e.releasing {
            // Whoever releases takes these too.
            return VecDeque::new();
        }
        e.releasing = workers && !e.held.is_empty();
        let held = std::mem::take(&mut e.held);
        inner.held = inner.held.saturating_sub(held.len());
        held
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
        inner.held = 0;
        let entries = std::mem::take(&mut inner.entries);
        self.lose(entries.into_values().flat_map(|e| e.held), Reason::Cleared, lost);
        self.invalidate();
    }

    /// Forgets what is too old; when to come back, if something is left that will be.
    pub fn expire(&self, now: i64, lost: &mut Lost) -> Option<i64> {
        let mut inner = self.lock();
        self.expire_old(&mut inner, now, lost);
        let (_, ip) = inner.order.first_key_value()?;
        let oldest = inner.entries.get(ip)?;
        let waits = inner.waiting.front().map_or(i64::MAX, |w| w.0);
        Some(inner.settings.end(oldest.updated).min(waits)).filter(|&t| t < i64::MAX)
    }

    /// Takes over entries and packets of another table.
    pub fn take_over(&self, old: &State, lost: &mut Lost) {
        // One lock after the other: two routers never swap with each other at once.
        let mut from = {
            let mut old = old.lock();
            let settings = old.settings;
            std::mem::replace(&mut *old, Inner { settings, ..Inner::default() })
        };
        old.invalidate();
        // What was on its way through a worker has arrived.
        from.entries.values_mut().for_each(|e| e.releasing = false);
        let mut inner = self.lock();
        let inner = &mut *inner;
        if inner.entries.is_empty() {
            // A large table moves as it is.
            let settings = inner.settings;
            *inner = Inner { settings, expires: 0, ..std::mem::take(&mut from) };
        }
        for ip in from.order.into_values() {
            let Some(mut e) = from.entries.remove(&ip) else { continue };
            inner.turns += 1;
            inner.expires = inner.expires.min(inner.settings.end(e.updated));
            e.turn = inner.turns;
            inner.order.insert(e.turn, ip);
            inner.held += e.held.len();
            if let Some(mine) = inner.entries.insert(ip, e) {
                inner.order.remove(&mine.turn);
                inner.held -= mine.held.len();
                self.lose(mine.held, Reason::Cleared, lost);
            }
        }
        if inner.patience > 0 {
            inner.waiting.extend(from.waiting);
            inner.waiting.make_contiguous().sort_unstable();
            inner.expires = inner.expires.min(inner.waiting.front().map_or(i64::MAX, |w| w.0));
        }
        self.drops.fetch_add(old.drops.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.slim_entries(inner, lost);
        self.slim_packets(inner, lost);
        self.invalidate();
    }

    /// One line an entry, oldest first: `IP KNOWN ETHER AGE`.
    pub fn list(&self, now: i64) -> String {
        let inner = self.lock();
        let mut out = String::new();
        for (ip, e) in inner.order.values().filter_map(|ip| Some((ip, inner.entries.get(ip)?))) {
            let ip = std::net::Ipv4Addr::from_bits(*ip);
            let age = now.saturating_sub(e.updated);
            out.push_str(&format!("{ip} {} {} {}\n", u8::from(e.known()), e.ether, seconds(age)));
        }
        out
    }

    /// Removes the entries that are too old: they stand first.
    #[inline]
    fn expire_old(&self, inner: &mut Inner, now: i64, lost: &mut Lost) {
        if now >= inner.expires {
            self.expire_now(inner, now, lost);
        }
    }
    #[cold]
    fn expire_now(&self, inner: &mut Inner, now: i64, lost: &mut Lost) {
        inner.expires = i64::MAX;
        while let Some((_, &ip)) = inner.order.first_key_value() {
            let Some(e) = inner.entries.get(&ip) else { break };
            if !inner.settings.expired(now.saturating_sub(e.updated)) {
                inner.expires = inner.settings.end(e.updated);
                break;
            }
            // Copies of the entry were made to end by themselves at this time.
            let held = inner.remove_first();
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
    fn slim_entries(&self, inner: &mut Inner, lost: &mut Lost) {
        let capacity = inner.settings.entry_capacity;
        if capacity == 0 || inner.entries.len() <= capacity as usize {
            return;
        }
        // The newest entry is what room is made for.
        let target = inner.settings.slimmed(capacity).max(1);
        while inner.entries.len() > target {
            let held = inner.remove_first();
            self.lose(held, Reason::ArpQueueFull, lost);
        }
        self.invalidate();
    }
    fn slim_packets(&self, inner: &mut Inner, lost: &mut Lost) {
        let capacity = inner.settings.capacity;
        if capacity == 0 || inner.held <= capacity as usize {
            return;
        }
        let mut surplus = inner.held.saturating_sub(inner.settings.slimmed(capacity));
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
    /// Updates or adds an entry; the address it had.
    fn put(&mut self, ip: u32, ether: EtherAddr, now: i64) -> Option<EtherAddr> {
        self.turns += 1;
        let turn = self.turns;
        self.expires = self.expires.min(self.settings.end(now));
        let new = Entry {
            ether,
            updated: now,
            turn,
            queries: 0,
            queried: 0,
            held: VecDeque::new(),
            releasing: false,
            until: 0,
        };
        let old = match self.entries.get_mut(&ip) {
            Some(e) => {
                self.order.remove(&e.turn);
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
        old
    }
    /// Forgets who no longer waits, when these are many.
    fn slim_waiting(&mut self) {
        if self.waiting.len() > 64 + 2 * self.entries.len() {
            let entries = &self.entries;
            self.waiting.retain(|(until, ip)| entries.get(ip).is_some_and(|e| e.until == *until));
        }
    }
    /// Removes the entry that was updated longest ago; the packets that waited for it.
    fn remove_first(&mut self) -> VecDeque<Packet> {
        let first = self.order.pop_first().and_then(|(_, ip)| self.entries.remove(&ip));
        let held = first.map(|e| e.held).unwrap_or_default();
        self.held = self.held.saturating_sub(held.len());
        held
    }
}

/// Seconds with 6 digits, or 9 where they are needed.
pub fn seconds(ns: i64) -> String {
    let (s, f) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    if f % 1000 == 0 { format!("{s}.{:06}", f / 1000) } else { format!("{s}.{f:09}") }
}

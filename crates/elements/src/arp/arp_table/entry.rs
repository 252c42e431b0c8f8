// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings and entries of an ARP table.

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::collections::VecDeque;

const MS: i64 = 1_000_000;
/// How many queries for an address are sent at intervals of at least 100 ms while no reply comes. Later queries are at
/// least a second apart.
const QUICK_QUERIES: u32 = 10;

/// The number of unanswered queries that are sent to the known Ethernet address (RFC 1122 section 2.3.2.1 calls for 2).
/// Later queries are broadcast, because the host may have another Ethernet address by now.
const UNICAST_QUERIES: u32 = 2;
/// An Ethernet address in doubt is confirmed if exactly this number of ARP packets have claimed the IP address since
/// the last query.
const CONFIRMED: u32 = 1;
/// The number of further queries for an address that was in doubt and has been confirmed. They follow after 1, 2, 4,
/// ... seconds. They detect a forged claim that was confirmed because the answer of the genuine host was lost.
const TRUSTED: u32 = 6;
/// The default maximum number of entries: the number of hosts in a network with a 16-bit prefix.
pub const ENTRY_CAPACITY: u32 = 65_536;

/// Capacities and times of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The maximum number of packets that wait; 0: no limit.
    pub capacity: u32,
    /// The maximum number of entries; 0: no limit.
    pub entry_capacity: u32,
    /// The maximum number of packets that wait for one address; 0: no limit.
    pub entry_packet_capacity: u32,
    /// When a capacity is exceeded, 1/`slim_factor` of it is freed by dropping packets or entries; 0: no more than
    /// needed.
    pub slim_factor: u32,
    /// How long an address counts as known after its last update, in nanoseconds; 0: for ever.
    pub timeout: i64,
}

impl Default for Settings {
    fn default() -> Self {
        let timeout = 300_000 * MS;
        Settings {
            capacity: 2048,
            entry_capacity: ENTRY_CAPACITY,
            entry_packet_capacity: 0,
            slim_factor: 2,
            timeout,
        }
    }
}

impl Settings {
    pub(super) fn slimmed(self, capacity: u32) -> usize {
        capacity.saturating_sub(capacity.checked_div(self.slim_factor).unwrap_or(0)) as usize
    }
    pub(super) fn expired(self, age: i64) -> bool {
        self.timeout > 0 && age >= self.timeout
    }
    /// Returns the time at which an expired entry is removed; `updated` is the time of its last update. The
    /// entry is kept for a bit more than another `timeout`, so that listings show it.
    pub(super) fn removal(self, updated: i64) -> i64 {
        let kept = self.timeout.saturating_mul(2).saturating_add(1_000 * MS);
        if self.timeout > 0 { updated.saturating_add(kept) } else { i64::MAX }
    }
    /// Returns the time at which an entry expires; `updated` is the time of its last update. `i64::MAX` means never.
    pub(super) fn end(self, updated: i64) -> i64 {
        if self.timeout > 0 { updated.saturating_add(self.timeout) } else { i64::MAX }
    }
}

/// The table's entry for an IP address.
pub(super) struct Entry {
    /// The Ethernet address. The broadcast address if no address was ever known, or if it was deleted.
    pub(super) ether: EtherAddr,
    /// Whether the Ethernet address was known and has expired. An expired entry is kept for a while.
    pub(super) expired: bool,
    pub(super) updated: i64,
    /// The entry's position in the order of updates, which is its key in `Inner::order`.
    pub(super) turn: u64,
    pub(super) queried: Queried,
    pub(super) held: VecDeque<Packet>,
    /// Whether a worker is still sending packets that waited for this address. Until they are sent, packets of other
    /// workers wait in the table.
    pub(super) releasing: bool,
    /// The time at which the waiting packets are removed if no reply arrives, in nanoseconds; 0 if they wait until the
    /// entry expires.
    pub(super) until: i64,
}

/// The queries sent for an IP address, and how far its Ethernet address is trusted.
#[derive(Clone, Copy)]
pub(super) struct Queried {
    /// The number of queries sent since the last answer.
    count: u32,
    /// The time of the last query, in nanoseconds.
    at: i64,
    /// The number of ARP packets that have claimed the IP address since the last query; `None` if the Ethernet address
    /// is not in doubt. An Ethernet address is in doubt once it has replaced another one, because one of the two may be
    /// forged or outdated. Each replacement sets the number to `CONFIRMED` + 1, so that the address is not confirmed
    /// before the next query.
    doubt: Option<u32>,
    /// The number of queries that were answered since the address was confirmed, at most [`TRUSTED`]. It is [`TRUSTED`]
    /// if the address was never in doubt.
    trust: u32,
    /// The time, in nanoseconds, of the last ARP packet that answered a query or claimed an address in doubt. Other
    /// unsolicited ARP packets do not change this time. It is not used once `trust` is [`TRUSTED`].
    answered: i64,
}

impl Entry {
    /// Makes an entry with the update time `now`. If `ether` is the broadcast address, the Ethernet address is unknown.
    pub(super) fn new(ether: EtherAddr, now: i64, turn: u64) -> Entry {
        Entry {
            ether,
            expired: false,
            updated: now,
            turn,
            queried: Queried { count: 0, at: 0, doubt: None, trust: TRUSTED, answered: 0 },
            held: VecDeque::new(),
            releasing: false,
            until: 0,
        }
    }
    pub(super) fn known(&self) -> bool {
        !self.expired && !self.ether.is_broadcast()
    }
    /// Returns the time at which a known address is to be queried again. This is `poll` nanoseconds after its last
    /// update, or never if `poll` is 0. An address in doubt is queried immediately, and one that is not fully trusted
    /// is queried early, whatever `poll` is.
    pub(super) fn poll_due(&self, poll: i64) -> i64 {
        let due = if poll > 0 { self.updated.saturating_add(poll) } else { i64::MAX };
        due.min(self.queried.check_due())
    }
    /// If it is time for a query, counts the query and returns true.
    pub(super) fn query(&mut self, now: i64) -> bool {
        let go = now >= self.queried.next();
        if go {
            self.queried.sent(now);
        }
        go
    }
}

impl Queried {
    /// Returns the earliest time of the next query. At first, queries are 100 ms apart. They are then a second apart,
    /// the highest rate that RFC 1122 section 2.3.2.1 recommends, so that a host that returns is found within a second.
    pub(super) fn next(&self) -> i64 {
        match self.count {
            0 => i64::MIN,
            n if n < QUICK_QUERIES => self.at.saturating_add(100 * MS),
            _ => self.at.saturating_add(1_000 * MS),
        }
    }
    /// Returns the time at which a query is needed because the address is in doubt or not fully trusted; `i64::MAX` if
    /// it is neither.
    fn check_due(&self) -> i64 {
        match self.doubt {
            Some(_) => i64::MIN,
            None if self.trust < TRUSTED => self.answered.saturating_add((1_000 * MS) << self.trust),
            None => i64::MAX,
        }
    }
    /// Whether queries for a known address are to be broadcast, because the address is in doubt or its host does not
    /// answer.
    pub(super) fn is_lost(&self) -> bool {
        self.doubt.is_some() || self.trust < TRUSTED || self.count > UNICAST_QUERIES
    }
    /// Returns the state after an ARP packet has claimed the IP address. `other` says whether it claims an Ethernet
    /// address other than the known one.
    pub(super) fn claimed(self, other: bool, now: i64) -> Queried {
        // An ARP packet with another Ethernet address replaces the known address, but does not confirm the new one.
        let doubt = if other { Some(CONFIRMED + 1) } else { self.doubt.map(|n| n.saturating_add(1)) };
        if doubt.is_some() {
            // Do not reset the rate limit of queries, so that two hosts that claim the same address do not cause more
            // queries.
            return Queried { doubt, trust: 0, answered: now, ..self };
        }
        let Queried { trust, answered, .. } = self;
        match self.count {
            // An unsolicited ARP packet does not increase `trust`.
            0 => Queried { count: 0, at: 0, doubt, trust, answered },
            _ => Queried { count: 0, at: 0, doubt, trust: (trust + 1).min(TRUSTED), answered: now },
        }
    }
    /// Ends the doubt if the address was claimed exactly once since the last query. The genuine host answers a query
    /// once. An attacker who floods the network with forged claims sends more than one.
    pub(super) fn end_doubt(&mut self, now: i64) {
        if self.doubt == Some(CONFIRMED) && now >= self.next() {
            (self.doubt, self.count, self.at) = (None, 0, 0);
        }
    }
    /// Counts a query.
    fn sent(&mut self, now: i64) {
        self.doubt = self.doubt.map(|_| 0);
        self.count = self.count.saturating_add(1);
        self.at = now;
    }
}

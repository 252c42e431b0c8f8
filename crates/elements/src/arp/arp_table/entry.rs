// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of an ARP table, and what it knows of one address.

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::collections::VecDeque;

const MS: i64 = 1_000_000;
/// Queries for one address that go out at the quick pace.
const QUICK_QUERIES: u32 = 10;

/// Queries to the address that is known until it is asked for by broadcast: the host may have another one by now
/// (RFC 1122 section 2.3.2.1 calls for 2).
const UNICAST_QUERIES: u32 = 2;
/// Claims of a doubtful address since the last query that confirm it.
const CONFIRMED: u32 = 1;
/// The most entries where no argument says otherwise: the hosts of a network with a prefix of 16 bits.
pub const ENTRY_CAPACITY: u32 = 65_536;

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
    /// When an expired entry is removed: it is kept as long again, so that tables show it.
    pub(super) fn removal(self, updated: i64) -> i64 {
        let kept = self.timeout.saturating_mul(2).saturating_add(1_000 * MS);
        if self.timeout > 0 { updated.saturating_add(kept) } else { i64::MAX }
    }
    /// When an entry is too old.
    pub(super) fn end(self, updated: i64) -> i64 {
        if self.timeout > 0 { updated.saturating_add(self.timeout) } else { i64::MAX }
    }
}

/// The entry of an address.
pub(super) struct Entry {
    /// The broadcast address when it was never known, or deleted.
    pub(super) ether: EtherAddr,
    /// Whether the address was known and is too old. The entry is kept for a while.
    pub(super) expired: bool,
    pub(super) updated: i64,
    /// Place in the order of updates.
    pub(super) turn: u64,
    pub(super) queries: u32,
    pub(super) queried: i64,
    pub(super) held: VecDeque<Packet>,
    /// Known, but packets that waited are still on their way through one worker: those of others go behind them.
    pub(super) releasing: bool,
    /// When the packets that wait now are given up, if they are.
    pub(super) until: i64,
    /// After the address has replaced another one, how often it was claimed since the last query: one of the two may be forged or
    /// out of date.
    pub(super) doubt: Option<u32>,
}

impl Entry {
    pub(super) fn known(&self) -> bool {
        !self.expired && !self.ether.is_broadcast()
    }
    /// The earliest time of the next query: one per 100 ms at first, then one per second, the most that RFC 1122 section
    /// 2.3.2.1 recommends. A host that comes back is found within that second.
    pub(super) fn next_query(&self) -> i64 {
        match self.queries {
            0 => i64::MIN,
            n if n < QUICK_QUERIES => self.queried.saturating_add(100 * MS),
            _ => self.queried.saturating_add(1_000 * MS),
        }
    }
    /// Whether a known address is to be asked for by broadcast.
    pub(super) fn is_lost(&self) -> bool {
        self.doubt.is_some() || self.queries > UNICAST_QUERIES
    }
    /// When a known address is to be asked for again, `poll` after its last update; 0: never.
    pub(super) fn poll_due(&self, poll: i64) -> i64 {
        match poll {
            _ if self.doubt.is_some() => i64::MIN,
            0 => i64::MAX,
            _ => self.updated.saturating_add(poll),
        }
    }
    /// The doubt after a claim of the address that is known, `other` than the one before or the same.
    pub(super) fn claimed(doubt: Option<u32>, other: bool) -> Option<u32> {
        // A claim that changes the address is no answer that confirms it.
        if other { Some(CONFIRMED + 1) } else { doubt.map(|n| n.saturating_add(1)) }
    }
    /// Ends the doubt when the address was claimed once since the last query. A host answers a query once; who floods the network
    /// with claims has the address claimed more often.
    pub(super) fn end_doubt(&mut self, now: i64) {
        if self.doubt == Some(CONFIRMED) && now >= self.next_query() {
            (self.doubt, self.queries, self.queried) = (None, 0, 0);
        }
    }
    pub(super) fn query(&mut self, now: i64) -> bool {
        let go = now >= self.next_query();
        if go {
            self.doubt = self.doubt.map(|_| 0);
            self.queries = self.queries.saturating_add(1);
            self.queried = now;
        }
        go
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up addresses in an ARP table. A packet whose Ethernet address is unknown waits in the table.

use super::entry::{Entry, Settings};
use super::state::{Inner, Lost, State};
use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::collections::VecDeque;

/// A look-up that a querier makes for a packet to send.
#[derive(Clone, Copy, Debug)]
pub struct LookUp {
    /// The IP address whose Ethernet address is wanted.
    pub ip: u32,
    /// The current time, in nanoseconds.
    pub now: i64,
    /// The age, in nanoseconds, from which a known Ethernet address is queried again; 0: never.
    pub poll: i64,
    /// Whether several workers use the table. If so, while a worker sends packets that have waited for an address,
    /// further packets to the address wait too, until [`State::release`] finds no more waiting packets. This keeps a
    /// packet on one worker from overtaking a packet on another.
    pub workers: bool,
}

/// The result of a look-up.
#[derive(Debug)]
pub enum Found {
    /// The Ethernet address is known. The packet may be sent, and all later packets to the address may be sent without
    /// a look-up until the time `until`.
    Known {
        /// The Ethernet address of the next hop.
        ether: EtherAddr,
        /// The packet to send.
        packet: Packet,
        /// The time, in nanoseconds, at which the address must be looked up again.
        until: i64,
        /// Whether a query must be sent now, to confirm the address.
        query: bool,
        /// Whether the query must be broadcast, because the address is in doubt or its host did not answer.
        lost: bool,
        /// Packets that waited for this address. They are sent before `packet`.
        held: VecDeque<Packet>,
    },
    /// The packet waits in the table until the Ethernet address is known.
    Held {
        /// Whether a query must be sent now.
        query: bool,
        /// Whether the packet is the first one that waits for this address.
        first: bool,
    },
}

impl State {
    /// Looks up the Ethernet address for an IP address. If it is unknown, the table keeps the packet. Packets that are
    /// removed from the table, for example to make room for this one, are added to `lost`.
    pub fn look_up(&self, wanted: LookUp, packet: Packet, lost: &mut Lost) -> Found {
        let LookUp { ip, now, .. } = wanted;
        let mut inner = self.lock();
        let inner = &mut *inner;
        self.expire_old(inner, now, lost);
        match inner.entries.get_mut(&ip) {
            Some(e) if e.known() && e.releasing => {
                // A worker is sending earlier packets to this address, and will send this one after them.
                self.hold(inner, ip, packet, lost);
                Found::Held { query: false, first: false }
            }
            Some(e) if e.known() => {
                inner.held = inner.held.saturating_sub(e.held.len());
                e.found(wanted, packet, inner.settings)
            }
            Some(_) => self.wait(inner, wanted, packet, lost),
            None => {
                inner.put(ip, EtherAddr::BROADCAST, now);
                self.slim_entries(inner, lost);
                self.wait(inner, wanted, packet, lost)
            }
        }
    }

    /// Keeps a packet until its Ethernet address is known. The address must have an entry.
    fn wait(&self, inner: &mut Inner, wanted: LookUp, packet: Packet, lost: &mut Lost) -> Found {
        let LookUp { ip, now, .. } = wanted;
        let (mut query, mut first) = (false, false);
        if let Some(e) = inner.entries.get_mut(&ip) {
            e.keep_expired(now, inner.settings);
            query = e.query(now);
            first = e.held.is_empty();
            if first && inner.patience > 0 {
                e.until = now.saturating_add(inner.patience);
                inner.waiting.push_back((e.until, ip));
                inner.expires = inner.expires.min(e.until);
            }
            let surplus = e.surplus(inner.settings);
            if surplus > 0 {
                inner.held = inner.held.saturating_sub(surplus);
                self.lose(e.held.drain(..surplus), Reason::ArpQueueFull, lost);
            }
        }
        self.hold(inner, ip, packet, lost);
        inner.slim_waiting();
        Found::Held { query, first }
    }

    /// Adds a packet to those that wait for an address. If the table is full, drops other packets, never this one.
    fn hold(&self, inner: &mut Inner, ip: u32, packet: Packet, lost: &mut Lost) {
        self.slim_packets(inner, 1, lost);
        inner.hold(ip, packet);
    }
}

impl Entry {
    /// Returns the result for a known address, with the packets that waited for it.
    fn found(&mut self, wanted: LookUp, packet: Packet, settings: Settings) -> Found {
        self.releasing = wanted.workers && !self.held.is_empty();
        self.queried.end_doubt(wanted.now);
        let due = self.poll_due(wanted.poll);
        let query = wanted.now >= due && self.query(wanted.now);
        Found::Known {
            ether: self.ether,
            packet,
            until: settings.end(self.updated).min(due.max(self.queried.next())),
            query,
            lost: self.queried.is_lost(),
            held: std::mem::take(&mut self.held),
        }
    }

    /// Reduces the age of an expired entry to that of an entry that has just expired. So the entry is not removed as
    /// long as packets are sent to the address.
    fn keep_expired(&mut self, now: i64, settings: Settings) {
        if self.expired {
            self.updated = self.updated.max(now.saturating_sub(settings.timeout));
        }
    }

    /// The number of waiting packets to drop so that one more may wait for this entry's address. The oldest are
    /// dropped, because the latest packet is the one to save (RFC 1122 section 2.3.2.2).
    fn surplus(&self, settings: Settings) -> usize {
        match settings.entry_packet_capacity as usize {
            0 => 0,
            most => (self.held.len() + 1).saturating_sub(most),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of ARPQuerier, and the state that its replicas share for them.

use super::ArpQuerier;
use crate::arp::values::{Ip, Pair};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The state that all replicas of a querier share, apart from the table.
pub(super) struct Own {
    pub(super) ip: AtomicU32,
    pub(super) broadcast: AtomicU32,
    pub(super) queries: SharedCount,
    pub(super) responses: SharedCount,
    pub(super) drops: SharedCount,
    pub(super) complained: AtomicBool,
}

impl Own {
    pub(super) fn new(ip: Ipv4Addr, broadcast: Ipv4Addr) -> Own {
        Own {
            ip: AtomicU32::new(ip.to_bits()),
            broadcast: AtomicU32::new(broadcast.to_bits()),
            queries: SharedCount::default(),
            responses: SharedCount::default(),
            drops: SharedCount::default(),
            complained: AtomicBool::new(false),
        }
    }
    /// In a hot swap, copies from the old element whether the message about a missing destination has been printed, so
    /// that the new element does not repeat that message.
    pub(super) fn continue_from(&self, old: &Own) {
        self.complained.fetch_or(old.complained.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn address(a: &AtomicU32) -> Ipv4Addr {
    Ipv4Addr::from_bits(a.load(Ordering::Relaxed))
}

#[handlers]
impl ArpQuerier {
    /// One line for each entry, oldest first: IP address, 1 if the Ethernet address is known or else 0, Ethernet
    /// address, age.
    #[read]
    fn table(&self, cx: &mut Cx<'_>) -> Table {
        self.state.read_table(cx)
    }
    /// The numbers of packets dropped and of queries sent, one per line.
    #[read]
    fn stats(&self) -> Table {
        let killed = self.drops.get().wrapping_add(self.state.drops().get());
        Table(format!("{killed} packets killed\n{} ARP queries sent\n", self.queries.get()))
    }
    /// Number of entries in the table.
    #[read(unit = "entries")]
    fn count(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).0
    }
    /// Number of packets that wait for replies.
    #[read(unit = "packets")]
    fn length(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).1
    }
    /// The broadcast address of the subnet.
    #[read]
    fn broadcast(&self) -> Ipv4Addr {
        address(&self.own.broadcast)
    }
    #[write]
    fn set_broadcast(&mut self, broadcast: Ipv4Addr) {
        self.own.broadcast.store(broadcast.to_bits(), Ordering::Relaxed);
        self.state.invalidate();
    }
    /// The querier's own IP address, which is the sender address of its queries.
    #[read]
    fn ipaddr(&self) -> Ipv4Addr {
        address(&self.own.ip)
    }
    #[write]
    fn set_ipaddr(&mut self, ip: Ipv4Addr) {
        self.own.ip.store(ip.to_bits(), Ordering::Relaxed);
        self.state.invalidate();
    }
    /// Sets the Ethernet address of an IP address (`IP ETHER`); packets that wait for this address leave just before
    /// the next packet to it.
    #[write]
    fn insert(&mut self, pair: Pair, cx: &mut Cx<'_>) {
        self.state.write_insert(pair, cx);
    }
    /// Makes the Ethernet address of an IP address unknown (`IP`).
    #[write]
    fn delete(&mut self, ip: Ip<Ipv4Addr>, cx: &mut Cx<'_>) {
        self.state.write_delete(ip, cx);
    }
    /// Removes all entries, and drops the packets that wait.
    #[write(button)]
    fn clear(&mut self, cx: &mut Cx<'_>) {
        self.state.write_clear(cx);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPTable: one table for several ARPQueriers.

mod entry;
mod expiry;
mod state;
#[cfg(test)]
mod tests;

pub use entry::{ENTRY_CAPACITY, Settings};
pub use state::{Found, Lost, State};

use super::values::{Ip, Pair};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Keeps Ethernet addresses by IP address, for the ARPQueriers that name it as their TABLE.
///
/// Packets that wait for an answer are kept here too. An address is known for TIMEOUT seconds from its last update (RFC 1122
/// section 2.3.2.1). Its entry, unknown then, stays about as long again, and longer while packets come to it. When more than
/// CAPACITY packets would wait, the oldest entries lose packets until, with the new one, CAPACITY -
/// CAPACITY/CAPACITY_SLIM_FACTOR wait; when there are more than ENTRY_CAPACITY entries, the oldest go in the same way, those whose address is not known first.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// t :: ARPTable(TIMEOUT 60);
/// DriverManager(write t.insert 10.0.0.1 02-00-00-00-00-01, print t.table, print t.count, stop);
/// ```
#[derive(Class)]
#[class(books(holds))]
#[class(name = "ARPTable", ports = "0/0", processing = "a/a", packets = "any/any", workers = share, build, lifecycle, handlers)]
#[class(reconfigure = keeps, drops(ArpQueueFull, ArpTimeout, Cleared), takes_state = "entries and the packets that wait")]
pub struct ArpTable {
    args: Args,
    state: Arc<State>,
}

/// Arguments of ARPTable.
#[derive(Args)]
pub struct Args {
    /// The most packets that wait; 0: no limit.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// The most entries; 0: no limit.
    #[arg(keyword, default = ENTRY_CAPACITY, show = "65536")]
    entry_capacity: u32,
    /// The most packets that wait for one address, the latest being kept; 0: no limit.
    #[arg(keyword, default = 0)]
    entry_packet_capacity: u32,
    /// When a capacity is exceeded, this part of it is made free.
    #[arg(keyword, default = 2)]
    capacity_slim_factor: u32,
    /// How long an entry lives after its last update; 0: for ever.
    #[arg(keyword, default = Nanos(300_000_000_000), min = Nanos(0), show = "300s")]
    timeout: Nanos,
}

impl Build for ArpTable {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let settings = Settings {
            capacity: args.capacity,
            entry_capacity: args.entry_capacity,
            entry_packet_capacity: args.entry_packet_capacity,
            slim_factor: args.capacity_slim_factor,
            timeout: args.timeout.0,
        };
        let state = cx.share(|| State::new(settings));
        // A querier that was built before has made the table without knowing its settings.
        state.configure(settings);
        Ok(ArpTable { args, state })
    }
}

impl Element for ArpTable {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        expire(&self.state, cx);
    }
}

#[handlers]
impl ArpTable {
    /// One line an entry, oldest first: IP, 1 if known, Ethernet address, age.
    #[read]
    fn table(&self, cx: &mut Cx<'_>) -> Table {
        self.state.read_table(cx)
    }
    /// Packets that were thrown out while they waited.
    #[read(unit = "packets", merge = first)]
    fn drops(&self, cx: &mut Cx<'_>) -> Counted {
        expire(&self.state, cx);
        Counted(self.state.drops())
    }
    /// Number of entries.
    #[read(unit = "entries")]
    fn count(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).0
    }
    /// Number of packets that wait.
    #[read(unit = "packets")]
    fn length(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).1
    }
    /// Makes an address known: `IP ETHER`.
    #[write]
    fn insert(&mut self, pair: Pair, cx: &mut Cx<'_>) {
        self.state.write_insert(pair, cx);
    }
    /// Makes an address unknown: `IP`.
    #[write]
    fn delete(&mut self, ip: Ip<Ipv4Addr>, cx: &mut Cx<'_>) {
        self.state.write_delete(ip, cx);
    }
    /// Forgets all entries and drops the packets that wait.
    #[write(button)]
    fn clear(&mut self, cx: &mut Cx<'_>) {
        self.state.write_clear(cx);
    }
}

impl Lifecycle for ArpTable {
    fn held(&self) -> u64 {
        self.state.size().1 as u64
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if !Arc::ptr_eq(&self.state, &old.state) {
            let mut lost = Lost::new();
            self.state.take_over(&old.state, &mut lost);
            drop_lost(lost, cx);
            expire(&self.state, cx);
        }
        Ok(())
    }
}

/// Drops the packets that lost their places.
pub fn drop_lost(lost: Lost, cx: &mut Cx<'_>) {
    for (p, reason) in lost {
        cx.drop(p, reason);
    }
}

/// Forgets entries that are too old, and sets timer 0 for the next one.
pub fn expire(state: &State, cx: &mut Cx<'_>) {
    let now = cx.now();
    let mut lost = Lost::new();
    if let Some(next) = state.expire(now, &mut lost) {
        cx.set_timer(0, next);
    }
    drop_lost(lost, cx);
}

/// The handlers of tables and queriers. Entries that are too old are removed first.
impl State {
    /// The entries.
    pub fn read_table(&self, cx: &mut Cx<'_>) -> Table {
        expire(self, cx);
        Table(self.list(cx.now()))
    }
    /// The numbers of entries and of packets that wait.
    pub fn read_size(&self, cx: &mut Cx<'_>) -> (usize, usize) {
        expire(self, cx);
        self.size()
    }
    /// Makes an address known.
    pub fn write_insert(&self, Pair { ip, ether }: Pair, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.change(|lost| self.insert(ip.to_bits(), ether, now, lost), cx);
    }
    /// Makes an address unknown.
    pub fn write_delete(&self, Ip(ip): Ip<Ipv4Addr>, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.change(|lost| self.delete(ip.to_bits(), now, lost), cx);
    }
    /// Forgets all entries.
    pub fn write_clear(&self, cx: &mut Cx<'_>) {
        self.change(|lost| self.clear(lost), cx);
    }
    fn change(&self, change: impl FnOnce(&mut Lost), cx: &mut Cx<'_>) {
        let mut lost = Lost::new();
        change(&mut lost);
        drop_lost(lost, cx);
        expire(self, cx);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPTable: a table that several ARPQueriers can share.

mod copies;
mod entry;
mod expiry;
mod look_up;
mod state;
#[cfg(test)]
mod tests;

pub use copies::COPIES;
pub use entry::{ENTRY_CAPACITY, Settings};
pub use look_up::{Found, LookUp};
pub use state::{Lost, State};

use super::values::{Ip, Pair};
use castanet_element::prelude::*;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Maps IP addresses to Ethernet addresses, for the ARPQueriers whose argument TABLE names this element.
///
/// The table also keeps the packets that wait for a reply. An address is known for TIMEOUT seconds from its last update
/// (RFC 1122 section 2.3.2.1). Its entry is then kept as unknown for about another TIMEOUT seconds, and longer while
/// packets are sent to the address. When a new packet would make more than CAPACITY packets wait, waiting packets of
/// the oldest entries are dropped, until CAPACITY - CAPACITY/CAPACITY_SLIM_FACTOR packets wait, including the new one.
/// When there are more than ENTRY_CAPACITY entries, entries are removed until ENTRY_CAPACITY -
/// ENTRY_CAPACITY/CAPACITY_SLIM_FACTOR remain. The oldest entries with unknown addresses are removed first, then the
/// oldest of all.
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
#[class(ledger(holds))]
#[class(name = "ARPTable", ports = "0/0", processing = "a/a", packets = "/", workers = share, build, lifecycle, handlers)]
#[class(reconfigure = keeps, drops(ArpQueueFull, ArpTimeout, Cleared), takes_state = "entries and the packets that wait")]
pub struct ArpTable {
    args: Args,
    state: Arc<State>,
    /// Packets that were dropped while they waited for a reply.
    #[count(unit = "packets", hidden)]
    dropped: SharedCount,
}

/// Arguments of ARPTable.
#[derive(Args)]
pub struct Args {
    /// The maximum number of packets that wait for replies; 0: no limit.
    #[arg(keyword, default = 2048)]
    capacity: u32,
    /// The maximum number of entries; 0: no limit.
    #[arg(keyword, default = ENTRY_CAPACITY, show = "65536")]
    entry_capacity: u32,
    /// The maximum number of packets that wait for one address (if there are more, the latest are kept); 0: no limit.
    #[arg(keyword, default = 0)]
    entry_packet_capacity: u32,
    /// When a capacity is exceeded, 1/CAPACITY_SLIM_FACTOR of it is freed by dropping packets or entries; 0: no more
    /// than needed.
    #[arg(keyword, default = 2)]
    capacity_slim_factor: u32,
    /// How long an address counts as known after its last update; 0: for ever.
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
        // A querier that was built earlier has already made the table, with default settings.
        state.configure(settings);
        let dropped = state.drops().clone();
        Ok(ArpTable { args, state, dropped })
    }
}

impl Element for ArpTable {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        expire(&self.state, cx);
    }
}

#[handlers]
impl ArpTable {
    /// One line for each entry, oldest first: IP address, 1 if the Ethernet address is known or else 0, Ethernet
    /// address, age.
    #[read]
    fn table(&self, cx: &mut Cx<'_>) -> Table {
        self.state.read_table(cx)
    }
    /// Packets that were dropped while they waited for a reply.
    #[read(unit = "packets", merge = first)]
    fn drops(&self, cx: &mut Cx<'_>) -> Counted {
        expire(&self.state, cx);
        Counted(self.dropped.get())
    }
    /// Number of entries.
    #[read(unit = "entries")]
    fn count(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).0
    }
    /// Number of packets that wait for replies.
    #[read(unit = "packets")]
    fn length(&self, cx: &mut Cx<'_>) -> usize {
        self.state.read_size(cx).1
    }
    /// Sets the Ethernet address of an IP address (`IP ETHER`).
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

/// Drops packets that were removed from a table, each for its own reason.
pub fn drop_lost(lost: Lost, cx: &mut Cx<'_>) {
    for (p, reason) in lost {
        cx.drop(p, reason);
    }
}

/// Removes expired entries, and sets timer 0 for the next expiry.
pub fn expire(state: &State, cx: &mut Cx<'_>) {
    let now = cx.now();
    let mut lost = Lost::new();
    if let Some(next) = state.expire(now, &mut lost) {
        cx.set_timer(0, next);
    }
    drop_lost(lost, cx);
}

/// Handlers that ARPTable and ARPQuerier share. Each of these handlers also removes expired entries.
impl State {
    /// Returns the entries as text, one per line.
    pub fn read_table(&self, cx: &mut Cx<'_>) -> Table {
        expire(self, cx);
        Table(self.list(cx.now()))
    }
    /// Returns the numbers of entries and of waiting packets.
    pub fn read_size(&self, cx: &mut Cx<'_>) -> (usize, usize) {
        expire(self, cx);
        self.size()
    }
    /// Sets the Ethernet address of an IP address.
    pub fn write_insert(&self, Pair { ip, ether }: Pair, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.change(|lost| self.insert(ip.to_bits(), ether, now, lost), cx);
    }
    /// Makes the Ethernet address of an IP address unknown.
    pub fn write_delete(&self, Ip(ip): Ip<Ipv4Addr>, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.change(|lost| self.delete(ip.to_bits(), now, lost), cx);
    }
    /// Removes all entries.
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

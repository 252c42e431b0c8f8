// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARPTable: one table for several ARPQueriers.

mod entry;
mod expiry;
mod state;
#[cfg(test)]
mod tests;

pub use entry::{ENTRY_CAPACITY, Settings};
pub use state::{Found, Lost, State};

use castanet_element::prelude::*;
use castanet_wire::EtherAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Keeps Ethernet addresses by IP address, for the ARPQueriers that name it as their TABLE.
///
/// Packets that wait for an answer are kept here too.
/// An entry lives TIMEOUT seconds from its last update (RFC 1122 section 2.3.2.1). When more than CAPACITY packets
/// wait, the oldest entries lose packets until CAPACITY - CAPACITY/CAPACITY_SLIM_FACTOR are left; when there are
/// more than ENTRY_CAPACITY entries, the oldest go in the same way, those whose address is not known first.
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
#[class(name = "ARPTable", ports = "0/0", processing = "a/a", packets = "any/any", workers = share, build, lifecycle)]
#[class(drops(ArpQueueFull, ArpTimeout, Cleared), takes_state = "entries and the packets that wait")]
#[handler(
    name = "table",
    flags = "r",
    doc = "One line an entry, oldest first: IP, 1 if known, Ethernet address, age."
)]
#[handler(name = "drops", flags = "r", doc = "Packets that were thrown out while they waited.")]
#[handler(name = "count", flags = "r", doc = "Number of entries.")]
#[handler(name = "length", flags = "r", doc = "Number of packets that wait.")]
#[handler(name = "insert", flags = "w", doc = "Makes an address known: `IP ETHER`.")]
#[handler(name = "delete", flags = "w", doc = "Makes an address unknown: `IP`.")]
#[handler(name = "clear", flags = "wb", doc = "Forgets all entries and drops the packets that wait.")]
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

impl Lifecycle for ArpTable {
    fn held(&self) -> u64 {
        self.state.size().1 as u64
    }
    fn read(&mut self, handler: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        read(&self.state, handler, cx)
    }
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        write(&self.state, handler, value, cx)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
        if !Arc::ptr_eq(&self.state, &old.state) {
            let mut lost = Lost::new();
            self.state.take_over(&old.state, &mut lost);
            drop_lost(lost, cx);
            expire(&self.state, cx);
        }
        Ok(())
    }
}

/// Drops, counted, what lost its place.
pub fn drop_lost(lost: Lost, cx: &mut Cx<'_>) {
    for (p, reason) in lost {
        cx.drop(p, reason);
    }
}

/// Forgets what is too old, and sets timer 0 for what will be.
pub fn expire(state: &State, cx: &mut Cx<'_>) {
    let now = cx.now();
    let mut lost = Lost::new();
    if let Some(next) = state.expire(now, &mut lost) {
        cx.set_timer(0, next);
    }
    drop_lost(lost, cx);
}

/// The read handlers of a table.
pub fn read(state: &State, handler: &str, cx: &mut Cx<'_>) -> Result<String, String> {
    expire(state, cx);
    match handler {
        "table" => Ok(state.list(cx.now())),
        "drops" => Ok(state.drops().to_string()),
        "count" => Ok(state.size().0.to_string()),
        "length" => Ok(state.size().1.to_string()),
        _ => Err(format!("no '{handler}' read handler")),
    }
}

/// The write handlers of a table.
pub fn write(state: &State, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
    let now = cx.now();
    let mut lost = Lost::new();
    match handler {
        "insert" => {
            let (ip, ether) = cx.with_args(|a| pair(value, a))?;
            state.insert(ip.to_bits(), ether, now, &mut lost);
        }
        "delete" => {
            let ip = cx.with_args(|a| Ipv4Addr::parse(value.trim(), a)).map_err(|e| format!("IP: {e}"))?;
            state.delete(ip.to_bits(), now, &mut lost);
        }
        "clear" => state.clear(&mut lost),
        _ => return Err(format!("no '{handler}' write handler")),
    }
    drop_lost(lost, cx);
    expire(state, cx);
    Ok(())
}

/// The two words `IP ETHER`.
fn pair(value: &str, cx: &ArgCx<'_>) -> Result<(Ipv4Addr, EtherAddr), String> {
    let all = castanet_lang::args::words(value);
    let mut words = all.into_iter().map(|r| value.get(r).unwrap_or(""));
    let (ip, ether) = (words.next().unwrap_or(""), words.next());
    let ip = Ipv4Addr::parse(ip, cx).map_err(|e| format!("IP: {e}"));
    let ether = ether.ok_or_else(|| "ETH: required argument missing".to_string());
    let ether = ether.and_then(|t| EtherAddr::parse(t, cx).map_err(|e| format!("ETH: {e}")));
    match (ip, ether, words.next()) {
        (Ok(ip), Ok(ether), None) => Ok((ip, ether)),
        (Ok(_), Ok(_), Some(_)) => Err("too many arguments".into()),
        (Err(a), Err(b), _) => Err(format!("{a}\n{b}")),
        (Err(e), ..) | (_, Err(e), _) => Err(e),
    }
}

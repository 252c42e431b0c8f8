// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses that the kernel knows, in a table by which programs relay frames.

use super::table::{Table as Addresses, is_old};
use castanet_element::kernel::{Table, TableKind, TableSpec};
use castanet_wire::EtherAddr;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The table: by an address and two zeros, its port and when it was heard. It has room for all addresses of a switch.
pub const STATIONS: TableSpec =
    TableSpec { kind: TableKind::Exact, key: 8, value: 16, entries: 1 << 14, ordered: true };

/// The offsets of the parts of an entry.
pub mod at {
    /// The time at which the address was last heard on the clock of programs, 8 bytes.
    pub const HEARD: i32 = 0;
    /// The port, a number of 4 bytes.
    pub const PORT: i32 = 8;
}

/// The copies of addresses in the kernel.
pub struct Copies {
    table: Arc<dyn Table>,
    /// The ports that the kernel knows.
    ports: Mutex<HashMap<EtherAddr, usize>>,
}

fn key(address: EtherAddr) -> [u8; 8] {
    let [a, b, c, d, e, f] = address.0;
    [a, b, c, d, e, f, 0, 0]
}

impl Copies {
    /// Makes copies in an empty table.
    pub fn new(table: Arc<dyn Table>) -> Copies {
        Copies { table, ports: Mutex::new(HashMap::new()) }
    }

    /// Learns the port of an address, here and in the kernel.
    #[cold]
    pub fn learn(&self, addresses: &Addresses, address: EtherAddr, port: usize, now: i64) {
        let before = addresses.neighbours(address);
        let replaces = before.iter().all(|b| b.is_some_and(|b| b != address));
        if replaces {
            // The address that was heard longest ago makes room, so these times must be up to date.
            before.into_iter().flatten().for_each(|b| self.hear(addresses, b, now));
        }
        addresses.learn(address, port, now);
        if replaces {
            let after = addresses.neighbours(address);
            before.into_iter().flatten().filter(|b| !after.contains(&Some(*b))).for_each(|b| self.forget(b));
        }
        if self.ports.lock().get(&address) == Some(&port) {
            return;
        }
        let mut entry = [0; STATIONS.value as usize];
        entry[..8].copy_from_slice(&self.table.time(now).to_ne_bytes());
        entry[8..12].copy_from_slice(&(port as u32).to_ne_bytes());
        if self.table.set(&key(address), &entry) {
            self.ports.lock().insert(address, port);
        } else {
            self.forget(address);
        }
    }

    /// The port of an address that is still remembered.
    #[cold]
    pub fn port(&self, addresses: &Addresses, address: EtherAddr, now: i64, timeout: i64) -> Option<usize> {
        if addresses.heard(address).is_some_and(|heard| is_old(heard, now, timeout)) {
            self.hear(addresses, address, now);
        }
        let port = addresses.port(address, now, timeout);
        if port.is_none() {
            self.forget(address);
        }
        port
    }

    /// Notes when the kernel has heard each address.
    pub fn refresh(&self, addresses: &Addresses, now: i64) {
        let all: Vec<EtherAddr> = self.ports.lock().keys().copied().collect();
        all.into_iter().for_each(|address| self.hear(addresses, address, now));
    }

    /// Takes over the time at which the kernel has heard an address. `now` is the timestamp of a frame. It is 0 for frames without timestamps,
    /// of which addresses do not expire.
    fn hear(&self, addresses: &Addresses, address: EtherAddr, now: i64) {
        if now == 0 || !self.ports.lock().contains_key(&address) {
            return;
        }
        let entry = self.table.get(&key(address));
        let heard = entry.and_then(|e| Some(u64::from_ne_bytes(*e.first_chunk()?)));
        if let Some(heard) = heard {
            addresses.hear(address, now.saturating_sub(self.table.age(heard, now)));
        }
    }

    fn forget(&self, address: EtherAddr) {
        if self.ports.lock().remove(&address).is_some() {
            self.table.remove(&key(address));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of entries in tables of the kernel, from which programs take the headers of packets.

use super::State;
use castanet_element::kernel::{Table, TableKind, TableSpec};
use castanet_wire::ether::EtherHeader;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The table of a querier: for each IP address the Ethernet header of frames to it, padded to 16 bytes.
pub const COPIES: TableSpec =
    TableSpec { kind: TableKind::Exact, key: 4, value: 16, entries: 65_536, ordered: true };

/// The copies in one table, with the times until which they are valid.
struct Copy {
    table: Arc<dyn Table>,
    until: HashMap<u32, i64>,
}

/// The copies in all tables.
#[derive(Default)]
pub(super) struct Copies(Mutex<Vec<Copy>>);

impl Copies {
    /// Removes all copies.
    pub(super) fn clear(&self) {
        for Copy { table, until } in self.0.lock().iter_mut() {
            until.drain().for_each(|(ip, _)| table.remove(&ip.to_be_bytes()));
        }
    }
}

impl State {
    /// Adds a table for copies. Returns its number.
    pub fn add_copies(&self, table: Arc<dyn Table>) -> usize {
        let mut all = self.copies().0.lock();
        all.push(Copy { table, until: HashMap::new() });
        all.len() - 1
    }

    /// Copies the header for an address to table `number`, valid until the time `until`, unless the generation has changed.
    pub fn copy(&self, number: usize, ip: u32, generation: u32, until: i64, header: &[u8; EtherHeader::LEN]) {
        let mut all = self.copies().0.lock();
        // A change of the generation is followed by `Copies::clear`, which waits for this lock.
        let Some(copy) = all.get_mut(number).filter(|_| generation == self.generation()) else { return };
        let mut value = [0; COPIES.value as usize];
        if let Some(front) = value.first_chunk_mut() {
            *front = *header;
        }
        if copy.table.set(&ip.to_be_bytes(), &value) {
            copy.until.insert(ip, until);
        }
    }

    /// Removes the copies that are no longer valid. Returns the time at which the next copy expires, if one does.
    pub fn end_copies(&self, now: i64) -> Option<i64> {
        let mut next = None::<i64>;
        for Copy { table, until } in self.copies().0.lock().iter_mut() {
            until.retain(|ip, until| {
                let valid = *until > now;
                if *until == i64::MAX {
                    // It is valid until the generation changes.
                } else if valid {
                    next = Some(next.map_or(*until, |n| n.min(*until)));
                } else {
                    table.remove(&ip.to_be_bytes());
                }
                valid
            });
        }
        next
    }
}

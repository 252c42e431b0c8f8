// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps packets in order that use the same entry of a table, while they move from user level into the kernel.
//!
//! An entry of an [ordered](crate::TableSpec::ordered) table is closed at first, for each device, and belongs to a slot. A slot has two
//! counters for each device: *sent*, the last number that was given out, and *done*, the last number whose packet has left the router. A packet that finds an entry
//! closed goes up with the next number, its ticket. Frames of a device come up in order, so when the packet of a number has left the router, all earlier ones have left it too,
//! or were lost. When both counters are equal, nothing is on its way up: the next packet opens the entry, and stays in the kernel like
//! all that follow.
//!
//! Under overload the counters would never become equal. So if 1,024 numbers are not done, packets are dropped, as a full ring would
//! drop them, until the counters are equal.
//!
//! Entries share slots: a packet may go up, or be dropped under overload, because of another entry. Devices whose numbers differ by a
//! multiple of [`DEVICES`] share counters too; between them, order is not kept.

use std::collections::BTreeMap;

/// The number of slots.
pub const SLOTS: u32 = 1024;
/// The number of devices that are told apart.
pub const DEVICES: u32 = 8;
/// The length in bytes of an entry in the table of slots, which has one for each slot and device.
pub const ENTRY: u32 = 24;
/// The length of the table of slots in bytes. It is the only value of its map.
pub const TABLE: u32 = SLOTS * DEVICES * ENTRY;
/// The number of bytes that follow the value of an entry in an ordered table.
pub const TRAILER: u32 = (DEVICES + 4).next_multiple_of(8);
/// If so many numbers are not done, packets are dropped.
pub(crate) const LIMIT: u32 = 1024;
/// While packets are dropped, one goes up as a probe each time that so many nanoseconds have passed, because the packet of the last number may
/// have been lost.
pub(crate) const PAUSE: i64 = 50_000_000;

/// Offsets in an entry of the table of slots.
pub mod at {
    /// The last number that was given out, to a packet that went up or to an entry that was set; 8 bytes, of which the lower half counts.
    pub const SENT: i32 = 0;
    /// The last number whose packet has left the router, likewise.
    pub const DONE: i32 = 8;
    /// While packets are dropped, the time when that began or the last probe went up; otherwise 0.
    pub(crate) const PROBED: i32 = 16;
}

/// Offsets in the trailer.
pub(crate) mod trailer {
    /// For each device, whether the entry is open.
    pub const OPEN: i32 = 0;
    /// The slot.
    pub const SLOT: i32 = super::DEVICES.cast_signed();
}

/// The number of a packet on its way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The slot and the device: an index into the table of slots.
    pub index: u32,
    /// The number.
    pub number: u32,
}

impl Ticket {
    /// Whether the packet went up after the one with another number.
    fn is_after(self, number: u32) -> bool {
        self.number.wrapping_sub(number).cast_signed() > 0
    }
}

/// A value for an ordered table: closed, with a slot. Before the entry is set, each counter *sent* of the slot must be raised, so that the
/// entry stays closed until the packets have left that are already on their way up.
pub fn closed(value: &[u8], slot: u32) -> Vec<u8> {
    let mut all = value.to_vec();
    all.extend([0; DEVICES as usize]);
    all.extend((slot % SLOTS).to_ne_bytes());
    all.resize(value.len() + TRAILER as usize, 0);
    all
}

/// A value for an ordered table that is open for all devices, because no packet is on its way up.
pub fn open(value: &[u8]) -> Vec<u8> {
    let mut all = closed(value, 0);
    if let Some(open) = all.get_mut(value.len()..value.len() + DEVICES as usize) {
        open.fill(1);
    }
    all
}

/// The indices of a slot in the table of slots, one for each device.
fn indices(slot: u32) -> std::ops::Range<u32> {
    let first = slot % SLOTS * DEVICES;
    first..first + DEVICES
}

/// The table of slots, as user level sees it.
pub trait Counters {
    /// Adds 1 to the counter *sent* with an index, in one step. Returns the number before.
    fn raise(&mut self, index: u32) -> u64;
    /// The counter *done* with an index.
    fn done(&self, index: u32) -> u64;
    /// Sets the counter *done* with an index.
    fn set_done(&mut self, index: u32, number: u64);
}

/// Gives slots to entries.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    next: u32,
    /// For each index, the last number that an entry was given.
    raised: BTreeMap<u32, u64>,
}

impl Slots {
    /// Returns a slot for an entry that is about to be set. The entry waits until a later packet that goes up has left the router.
    pub fn take(&mut self, counters: &mut dyn Counters) -> u32 {
        let slot = self.next;
        self.next = slot.wrapping_add(1);
        for index in indices(slot) {
            let before = counters.raise(index);
            if self.raised.insert(index, before.wrapping_add(1)) == Some(before) {
                // No packet has gone up since the last entry was given this slot. Only the new number needs to be waited for, because
                // everything that is on its way up precedes the next packet.
                counters.set_done(index, before);
            }
        }
        slot
    }
}

impl Ticket {
    /// Notes that the packet has left the router.
    pub fn finish(self, counters: &mut dyn Counters) {
        if self.is_after(counters.done(self.index) as u32) {
            counters.set_done(self.index, self.number.into());
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps packets in order that use the same entry of a table: none overtakes another one that is on its way up.
//!
//! An entry of an [ordered](crate::TableSpec::ordered) table is closed at first, for each device. Packets that find it closed go up,
//! each with the next number of the entry's slot. When such a packet has left the router at user level, its number is noted as done. Frames of a
//! device come up in order, so all earlier packets have left the router too, or were lost. A packet that finds all numbers of the slot done
//! opens the entry, and stays in the kernel like all that follow.
//!
//! If user level is slower than the packets come, the numbers would never agree. So if very many are not done, packets are dropped,
//! as a full ring would drop them, until the numbers agree.
//!
//! Slots are shared by entries, which costs nothing but a few more packets that go up. So are devices with numbers that differ by
//! [`DEVICES`].

/// The number of slots.
pub const SLOTS: u32 = 1024;
/// The number of devices that are told apart.
pub const DEVICES: u32 = 8;
/// The length in bytes of an entry in the table of slots, which has one for each slot and device.
pub const ENTRY: u32 = 24;
/// The length of the table of slots in bytes. It is the only value of its map.
pub const TABLE: u32 = SLOTS * DEVICES * ENTRY;
/// The number of bytes that follow the value of an entry in an ordered table.
pub const TRAILER: u32 = 16;
/// The most packets of a slot and device on their way up.
pub(crate) const MOST: u32 = 1024;
/// While packets are dropped, one of them goes up each time that so many nanoseconds have passed, because the last one may have been
/// lost.
pub(crate) const PAUSE: i64 = 50_000_000;

/// Offsets in an entry of the table of slots.
pub mod at {
    /// The number of the last packet that went up, 8 bytes, of which the lower half counts.
    pub const SENT: i32 = 0;
    /// The number of the last packet that has left the router, likewise.
    pub const DONE: i32 = 8;
    /// The time since when packets are dropped; 0 if they are not.
    pub(crate) const SINCE: i32 = 16;
}

/// Offsets in the trailer.
pub(crate) mod trailer {
    /// For each device, whether the entry is open.
    pub const OPEN: i32 = 0;
    /// The slot.
    pub const SLOT: i32 = 8;
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
    pub fn is_after(self, number: u32) -> bool {
        self.number.wrapping_sub(number).cast_signed() > 0
    }
}

/// A value for an ordered table: closed, with a slot. Before the entry is set, the last number of the slot must be raised for all devices,
/// so that packets that are on their way up already are awaited.
pub fn closed(value: &[u8], slot: u32) -> Vec<u8> {
    let mut all = value.to_vec();
    all.extend([0; 8]);
    all.extend((slot % SLOTS).to_ne_bytes());
    all.extend([0; 4]);
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
pub fn indices(slot: u32) -> std::ops::Range<u32> {
    let first = slot % SLOTS * DEVICES;
    first..first + DEVICES
}

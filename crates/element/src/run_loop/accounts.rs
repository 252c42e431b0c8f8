// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger of one worker. For each element, it counts the packets that the element dropped. It also counts the
//! packets that entered the router, were made, or left the router at the element, and the packets that the kernel
//! dropped before the element could read them (missed packets).

use super::core::Core;
use castanet_spec::{LedgerRole, Reason};

/// A kind of ledger entry: packets that the ledger counts for each element, besides dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// Packets that entered the router.
    Entered,
    /// Packets that were made from others: copies, fragments, answers.
    Made,
    /// Packets that left the router.
    Left,
    /// Packets that the kernel dropped before an element could read them. They never entered the router.
    Missed,
}

impl Entry {
    /// All kinds of entries, in the order of their numbers.
    pub const ALL: [Entry; 4] = [Entry::Entered, Entry::Made, Entry::Left, Entry::Missed];

    /// Returns the flag that a class must declare if its elements make entries of this kind.
    pub const fn ledger(self) -> LedgerRole {
        match self {
            Entry::Entered | Entry::Missed => LedgerRole::ENTERS,
            Entry::Made => LedgerRole::MAKES,
            Entry::Left => LedgerRole::LEAVES,
        }
    }
}

impl Core {
    /// Counts `n` packets that an element dropped.
    #[inline]
    pub fn count_drops(&mut self, element: u32, reason: Reason, n: u64) {
        let i = (element as usize).wrapping_mul(Reason::COUNT).wrapping_add(reason as usize);
        if let Some(d) = self.drops.get_mut(i) {
            *d = d.wrapping_add(n);
        }
    }
    /// Adds `n` to the ledger entry `entry` of an element.
    #[inline]
    pub fn count_entry(&mut self, element: u32, entry: Entry, n: u64) {
        if let Some(e) = self.entries.get_mut(element as usize).and_then(|e| e.get_mut(entry as usize)) {
            *e = e.wrapping_add(n);
        }
    }
    /// Sets all counts of the ledger to 0. Called when another router has taken them over.
    pub fn clear_ledger(&mut self) {
        self.drops.fill(0);
        self.entries.fill(Default::default());
    }
    /// Returns the ledger entries of an element, without those that are 0.
    pub fn entries_of(&self, element: u32) -> impl Iterator<Item = (Entry, u64)> + '_ {
        let row = self.entries.get(element as usize).into_iter().flatten().copied();
        Entry::ALL.into_iter().zip(row).filter(|r| r.1 > 0)
    }
    /// Returns the number of packets that an element dropped for each reason, without reasons for which it dropped
    /// none.
    pub fn drops_of(&self, element: u32) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let row = self.drops.iter().skip((element as usize).saturating_mul(Reason::COUNT));
        Reason::ALL.iter().copied().zip(row.copied()).filter(|r| r.1 > 0)
    }
    /// The number of packets that an element dropped for a reason.
    pub fn drops(&self, element: u32, reason: Reason) -> u64 {
        let i = (element as usize).saturating_mul(Reason::COUNT).saturating_add(reason as usize);
        self.drops.get(i).copied().unwrap_or(0)
    }
    /// Returns the number of packets that each element dropped for each reason, without those that are 0.
    pub fn all_drops(&self) -> impl Iterator<Item = (u32, Reason, u64)> + '_ {
        self.drops.iter().enumerate().filter(|d| *d.1 > 0).filter_map(|(i, &n)| {
            let reason = Reason::ALL.get(i % Reason::COUNT)?;
            Some((u32::try_from(i / Reason::COUNT).ok()?, *reason, n))
        })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! DIR-24-8, which stores only the first of equal neighbours.
//!
//! After Gupta, Lin and McKeown, "Routing Lookups in Hardware at Memory Access Speeds" (1998). The first level has an
//! entry for each value of the first 24 bits of an address. It holds a route, or refers to a block with an entry for
//! each value of the last 8 bits. Both levels are divided into cells of 64 entries: a bit map says which entries differ
//! from those before them, and only these are stored. The number of set bits up to that of an entry is the index of its
//! leaf in the list of the cell.
//!
//! Each entry also holds the length of the prefix that owns it, so that a change writes only the affected cells.

mod arena;
mod cells;
mod hops;
mod lookup;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{NotFound, Prefix, Route, TableError};
use arena::Arena;
use cells::{Cells, Leaf};
use hops::Hops;

/// The number of entries of the first level.
const FIRST: usize = 1 << 24;
/// The number of entries of a second-level block.
const BLOCK: usize = 256;

/// The number of prefixes from which on the first level has huge pages. Fewer prefixes use few of its pages.
const MANY: usize = 1024;

/// The capacity of a table.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// INVARIANT: a table with at most this many prefixes has fewer than 2^32 leaves. Without prefixes, the first level has
    /// one run for each cell (2^18). A prefix of up to 24 bits adds at most two runs. A longer one adds at most eight: two in
    /// the first level, one for each of the four cells of its block, and two in the block. A list has room for at most half
    /// as many leaves again. A freed list is reused only for its own size, so each of the twelve sizes may once have held all
    /// runs: 12 * 1.5 * (8 * 2^24 + 2^18) < 2^32.
    prefixes: usize,
    /// The number of different routes (gateway and port), not counting the default route.
    hops: usize,
}

const LIMITS: Limits = Limits { prefixes: 1 << 24, hops: (1 << 24) - 1 };

/// The data of a prefix in the table.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The number of the route.
    hop: u32,
    /// The prefixes have these numbers in insertion order.
    order: u32,
}

/// A table for any number of routes, up to 16,777,216 prefixes and 16,777,215 different routes. The 4 MiB of the first
/// level are allocated with the first route that needs them. Inserting or removing a prefix visits the cells of all
/// its addresses, so short prefixes take longer (1024 cells for a /8). The default route is stored separately.
///
/// [`Self::iter`] lists the routes by prefix if `SORTED`, otherwise in insertion order.
#[derive(Clone, Debug)]
pub struct CompactTable<const SORTED: bool> {
    first: Cells,
    /// The entries of all second-level blocks, 256 for each.
    blocks: Cells,
    free_blocks: Vec<u32>,
    /// The leaves of both levels.
    leaves: Arena,
    hops: Hops,
    prefixes: BTreeMap<Prefix, Held>,
    next_order: u32,
    limits: Limits,
}

impl<const SORTED: bool> Default for CompactTable<SORTED> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SORTED: bool> CompactTable<SORTED> {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::with_limits(LIMITS)
    }

    fn with_limits(limits: Limits) -> Self {
        Self {
            first: Cells::default(),
            blocks: Cells::default(),
            free_blocks: Vec::new(),
            leaves: Arena::default(),
            hops: Hops::default(),
            prefixes: BTreeMap::new(),
            next_order: 0,
            limits,
        }
    }

    /// Number of routes.
    #[inline]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there are no routes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The number of second-level blocks in use.
    pub fn blocks(&self) -> usize {
        self.blocks.len() / BLOCK - self.free_blocks.len()
    }

    /// The memory that lookups use, in bytes. The list of prefixes, which only changes use, is not counted.
    pub fn bytes(&self) -> usize {
        self.first.bytes()
            + self.blocks.bytes()
            + self.free_blocks.capacity() * size_of::<u32>()
            + self.leaves.bytes()
            + self.hops.bytes()
    }

    /// Writes `new` to every entry inside `prefix` whose owner (the prefix that its route comes from) has one of the
    /// lengths `owners`.
    fn paint(&mut self, prefix: Prefix, new: Leaf, owners: RangeInclusive<u8>) {
        let paint = |leaf: Leaf| if owners.contains(&leaf.owner_len()) { new } else { leaf };
        let at = prefix.addr as usize >> 8;
        if prefix.len > 24 {
            if let Some(block) = self.first.leaf(&self.leaves, at).as_block() {
                let start = block * BLOCK + (prefix.addr as usize & 255);
                self.blocks.paint(&mut self.leaves, start..start + (1 << (32 - prefix.len)), paint);
            }
            return;
        }
        let mut blocks = Vec::new();
        self.first.paint(&mut self.leaves, at..at + (1 << (24 - prefix.len)), |leaf| {
            blocks.extend(leaf.as_block());
            if leaf.is_block() { leaf } else { paint(leaf) }
        });
        for block in blocks {
            self.blocks.paint(&mut self.leaves, block * BLOCK..(block + 1) * BLOCK, paint);
        }
    }

    /// Ensures that the entry of a prefix longer than 24 bits refers to a block.
    fn enter_block(&mut self, prefix: Prefix) {
        let at = prefix.addr as usize >> 8;
        let leaf = self.first.leaf(&self.leaves, at);
        if leaf.is_block() {
            return;
        }
        let block = self.free_blocks.pop().unwrap_or_else(|| {
            self.blocks.extend(BLOCK);
            (self.blocks.len() / BLOCK - 1) as u32
        });
        let start = block as usize * BLOCK;
        self.blocks.paint(&mut self.leaves, start..start + BLOCK, |_| leaf);
        self.first.paint(&mut self.leaves, at..at + 1, |_| Leaf::block(block));
    }

    /// Frees the block of a removed prefix longer than 24 bits, if no other such prefix is left in it. The entry in the
    /// first level then holds a route again.
    fn leave_block(&mut self, prefix: Prefix) {
        let at = prefix.addr as usize >> 8;
        let Some(block) = self.first.leaf(&self.leaves, at).as_block() else { return };
        let entries = block * BLOCK..(block + 1) * BLOCK;
        // As long as there is a prefix longer than 24 bits, it or a longer one owns entries.
        let single = self.blocks.single(&self.leaves, entries.clone());
        if let Some(leaf) = single.filter(|leaf| leaf.owner_len() <= 24) {
            self.blocks.paint(&mut self.leaves, entries, |_| Leaf::DEFAULT);
            self.free_blocks.push(block as u32);
            self.first.paint(&mut self.leaves, at..at + 1, |_| leaf);
        }
    }

    /// Returns the next number in insertion order.
    fn take_order(&mut self) -> u32 {
        if self.next_order == u32::MAX {
            let mut all: Vec<&mut Held> = self.prefixes.values_mut().collect();
            all.sort_unstable_by_key(|held| held.order);
            self.next_order = all.len() as u32;
            all.into_iter().zip(0..).for_each(|(held, order)| held.order = order);
        }
        self.next_order += 1;
        self.next_order - 1
    }

    /// Adds a route. Returns [`TableError::Exists`] if the prefix has a route, and [`TableError::Full`] if there are
    /// too many prefixes or different routes.
    pub fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError> {
        if let Some(existing) = self.get(prefix) {
            return Err(TableError::Exists(existing));
        }
        if self.prefixes.len() >= self.limits.prefixes {
            return Err(TableError::Full);
        }
        let hop = if prefix.len == 0 {
            self.hops.set_default(Some(route));
            hops::DEFAULT
        } else {
            let hop = self.hops.take(route, self.limits.hops)?;
            if self.first.len() == 0 {
                self.first = Cells::new(FIRST);
            }
            if prefix.len > 24 {
                self.enter_block(prefix);
            }
            self.paint(prefix, Leaf::route(prefix.len, hop), 0..=prefix.len);
            hop
        };
        let order = self.take_order();
        self.prefixes.insert(prefix, Held { hop, order });
        if self.prefixes.len() == MANY {
            self.first.move_to_huge_pages();
        }
        Ok(())
    }

    /// Sets the route of a prefix and returns the previous one. The prefix keeps its position in [`Self::iter`].
    /// Returns [`TableError::Full`] as for [`Self::insert`].
    pub fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError> {
        let Some(held) = self.prefixes.get_mut(&prefix) else {
            return self.insert(prefix, route).map(|()| None);
        };
        if prefix.len == 0 {
            return Ok(self.hops.set_default(Some(route)));
        }
        // If no other prefix uses the number of the old route, and the new route has no number yet, the new route gets
        // the number of the old one. No entry changes, so this works even if the table is full.
        if let Some(old) = self.hops.rename(held.hop, route) {
            return Ok(Some(old));
        }
        let hop = self.hops.take(route, self.limits.hops)?;
        let before = std::mem::replace(&mut held.hop, hop);
        let old = self.hops.release(before);
        if hop != before {
            self.paint(prefix, Leaf::route(prefix.len, hop), prefix.len..=prefix.len);
        }
        Ok(old)
    }

    /// Removes the route of exactly this prefix.
    pub fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound> {
        let Held { hop, .. } = self.prefixes.remove(&prefix).ok_or(NotFound)?;
        if prefix.len == 0 {
            return self.hops.set_default(None).ok_or(NotFound);
        }
        let heir = self.parent(prefix).map_or(Leaf::DEFAULT, |(parent, hop)| Leaf::route(parent.len, hop));
        self.paint(prefix, heir, prefix.len..=prefix.len);
        if prefix.len > 24 {
            self.leave_block(prefix);
        }
        self.hops.release(hop).ok_or(NotFound)
    }

    /// Returns the longest other prefix in the table that contains `prefix`, with the number of its route. Ignores the
    /// default route.
    fn parent(&self, prefix: Prefix) -> Option<(Prefix, u32)> {
        let mut below = prefix;
        loop {
            // `below` is `prefix`, or a shorter prefix that contains `prefix`. `before` is the entry directly before
            // `below` in the map. If `prefix` has a parent, the parent is `before` or contains `before`. A parent that
            // contains `before` is at most as long as the leading bits that `before` and `prefix` share.
            let (&before, held) = self.prefixes.range(..below).next_back()?;
            if before.len == 0 {
                return None;
            }
            if before.contains(prefix.addr) && before.len < prefix.len {
                return Some((before, held.hop));
            }
            let shared = (before.addr ^ prefix.addr).leading_zeros() as u8;
            let next = Prefix::new(prefix.addr, shared.min(before.len));
            if let Some(held) = self.prefixes.get(&next).filter(|_| next.len > 0) {
                return Some((next, held.hop));
            }
            below = next;
        }
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<Route> {
        self.prefixes.get(&prefix).and_then(|held| self.hops.get(held.hop as usize))
    }

    /// All routes: if `SORTED`, the default route and then the others by address and length, otherwise in insertion
    /// order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Route)> {
        let mut all: Vec<(Prefix, Held)> =
            self.prefixes.iter().map(|(&prefix, &held)| (prefix, held)).collect();
        if !SORTED {
            all.sort_unstable_by_key(|(_, held)| held.order);
        }
        all.into_iter().filter_map(|(prefix, held)| Some((prefix, self.hops.get(held.hop as usize)?)))
    }

    /// Removes all routes and frees the memory.
    pub fn clear(&mut self) {
        *self = Self::with_limits(self.limits);
    }
}

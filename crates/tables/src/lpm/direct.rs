// SPDX-License-Identifier: MIT OR Apache-2.0
//! DIR-24-8: one load for the first 24 bits, a second one for the rest.
//!
//! After Gupta, Lin and McKeown, "Routing Lookups in Hardware at Memory Access Speeds" (1998). Each slot also
//! holds the length of the prefix that owns it, so that a change writes only the affected slots.

use std::collections::{BTreeMap, HashMap};

use crate::memory::prefer_huge_pages;

use super::{NotFound, Prefix, Route, TableError};

const SLOTS: usize = 1 << 24;
const BLOCK: usize = 256;
/// Number of addresses that are looked up together, so that their cache misses overlap.
const SIDE_BY_SIDE: usize = 32;

/// A slot. If bit 31 is clear, the slot holds the length of the owning prefix (bits 24 to 29) and the number
/// of its next hop (bits 0 to 23). If bit 31 is set, it holds the number of a second-level block. Zero
/// (length 0, next hop 0) stands for the default route or its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u32);

impl Slot {
    const DEFAULT: Self = Self(0);

    const fn route(len: u8, hop: u32) -> Self {
        Self((len as u32) << 24 | hop)
    }

    const fn block(number: u32) -> Self {
        Self(1 << 31 | number)
    }

    #[inline]
    const fn as_block(self) -> Option<usize> {
        if self.0 >> 31 == 1 { Some((self.0 & 0x7fff_ffff) as usize) } else { None }
    }

    #[inline]
    const fn owner_len(self) -> u8 {
        (self.0 >> 24 & 63) as u8
    }

    #[inline]
    const fn hop(self) -> usize {
        (self.0 & 0x00ff_ffff) as usize
    }
}

/// The capacity of a [`DirectTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectLimits {
    /// Limit on the number of different routes (gateway and port), not counting the default route. At most
    /// 16,777,215 (2^24 - 1).
    pub next_hops: usize,
    /// Limit on the number of blocks of 256 slots. Every 24-bit prefix that contains longer prefixes needs
    /// one block. At most 2^31.
    pub blocks: usize,
}

impl Default for DirectLimits {
    fn default() -> Self {
        Self { next_hops: 65_535, blocks: 32_768 }
    }
}

/// The table with the fastest lookup. The 64 MiB of the first level are allocated with the first route that needs them.
/// Inserting or removing a prefix visits the slots of all its addresses, so short prefixes take longer (65536 slots for
/// a /8). The default route is stored separately and needs no slots.
#[derive(Clone, Debug)]
pub struct DirectTable {
    limits: DirectLimits,
    first: Vec<u32>,
    /// The slots of all second-level blocks, 256 for each.
    second: Vec<u32>,
    /// For each block, the number of prefixes longer than 24 bits in it; 0 if the block is free.
    long: Vec<u32>,
    free_blocks: Vec<u32>,
    /// Routes by number. Number 0 is the default route.
    hops: Vec<Option<Route>>,
    /// For each route number, the number of prefixes that use it.
    uses: Vec<u32>,
    numbers: HashMap<Route, u32>,
    free_hops: Vec<u32>,
    /// Every prefix, with the number of its route.
    prefixes: BTreeMap<Prefix, u32>,
}

impl Default for DirectTable {
    fn default() -> Self {
        Self::new()
    }
}

impl DirectTable {
    /// Creates an empty table with the default limits.
    pub fn new() -> Self {
        Self::with_limits(DirectLimits::default())
    }

    /// Creates an empty table with the given limits.
    pub fn with_limits(limits: DirectLimits) -> Self {
        Self {
            limits: DirectLimits {
                next_hops: limits.next_hops.min((1 << 24) - 1),
                blocks: limits.blocks.min(1 << 31),
            },
            first: Vec::new(),
            second: Vec::new(),
            long: Vec::new(),
            free_blocks: Vec::new(),
            hops: vec![None],
            uses: vec![0],
            numbers: HashMap::new(),
            free_hops: Vec::new(),
            prefixes: BTreeMap::new(),
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
        self.long.len() - self.free_blocks.len()
    }

    /// True if `prefix` needs a new block, but no block is left. Only prefixes longer than 24 bits need blocks.
    fn lacks_block(&self, prefix: Prefix) -> bool {
        prefix.len > 24
            && self.free_blocks.is_empty()
            && self.long.len() >= self.limits.blocks
            && self.first.get(prefix.addr as usize >> 8).is_none_or(|&slot| Slot(slot).as_block().is_none())
    }

    /// Returns a number for `route` and increments its use count.
    fn take_hop(&mut self, route: Route) -> Result<u32, TableError> {
        if let Some(&number) = self.numbers.get(&route) {
            self.uses[number as usize] += 1;
            return Ok(number);
        }
        let number = match self.free_hops.pop() {
            Some(number) => number,
            None if self.hops.len() <= self.limits.next_hops => {
                self.hops.push(None);
                self.uses.push(0);
                (self.hops.len() - 1) as u32
            }
            None => return Err(TableError::Full),
        };
        self.hops[number as usize] = Some(route);
        self.uses[number as usize] = 1;
        self.numbers.insert(route, number);
        Ok(number)
    }

    /// Decrements the use count of a route number. Returns its route.
    fn release_hop(&mut self, number: u32) -> Option<Route> {
        let route = self.hops[number as usize];
        self.uses[number as usize] -= 1;
        if self.uses[number as usize] == 0 {
            self.hops[number as usize] = None;
            self.numbers.remove(&route?);
            self.free_hops.push(number);
        }
        route
    }

    /// Writes `new` to every slot inside `prefix` whose owner (the prefix that its route comes from) has a length from
    /// `shortest` to `longest`.
    fn paint(&mut self, prefix: Prefix, new: Slot, shortest: u8, longest: u8) {
        let paint = |slots: &mut [u32]| {
            for slot in slots {
                if Slot(*slot).as_block().is_none() && (shortest..=longest).contains(&Slot(*slot).owner_len())
                {
                    *slot = new.0;
                }
            }
        };
        let at = prefix.addr as usize >> 8;
        if prefix.len > 24 {
            if let Some(block) = self.first.get(at).and_then(|&slot| Slot(slot).as_block()) {
                let start = block * BLOCK + (prefix.addr as usize & 255);
                paint(self.second.get_mut(start..start + (1 << (32 - prefix.len))).unwrap_or_default());
            }
            return;
        }
        for slot in self.first.get_mut(at..at + (1 << (24 - prefix.len))).unwrap_or_default() {
            match Slot(*slot).as_block() {
                None => paint(std::slice::from_mut(slot)),
                Some(block) => {
                    paint(self.second.get_mut(block * BLOCK..(block + 1) * BLOCK).unwrap_or_default());
                }
            }
        }
    }

    /// Ensures that the slot of a prefix longer than 24 bits refers to a block, and counts the prefix there.
    fn enter_block(&mut self, prefix: Prefix) {
        let Some(slot) = self.first.get_mut(prefix.addr as usize >> 8) else { return };
        let block = match Slot(*slot).as_block() {
            Some(block) => block,
            None => {
                let block = match self.free_blocks.pop() {
                    Some(block) => block as usize,
                    None => {
                        let before = self.second.capacity();
                        self.second.resize(self.second.len() + BLOCK, 0);
                        if self.second.capacity() != before {
                            prefer_huge_pages(&mut self.second);
                        }
                        self.long.push(0);
                        self.long.len() - 1
                    }
                };
                self.second[block * BLOCK..(block + 1) * BLOCK].fill(*slot);
                *slot = Slot::block(block as u32).0;
                block
            }
        };
        self.long[block] += 1;
    }

    /// Removes a prefix longer than 24 bits from the count of its block. When the count reaches 0, the block is freed,
    /// and the slot in the first level holds a route again.
    fn leave_block(&mut self, prefix: Prefix) {
        let Some(slot) = self.first.get_mut(prefix.addr as usize >> 8) else { return };
        let Some(block) = Slot(*slot).as_block() else { return };
        self.long[block] -= 1;
        if self.long[block] == 0 {
            // All slots of the block now have the same owner, of length 24 or less.
            *slot = self.second[block * BLOCK];
            self.free_blocks.push(block as u32);
        }
    }

    /// Adds a route. Returns [`TableError::Exists`] if the prefix has a route, and [`TableError::Full`] if no
    /// block or route number is left.
    pub fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError> {
        if let Some(existing) = self.get(prefix) {
            return Err(TableError::Exists(existing));
        }
        if prefix.len == 0 {
            self.hops[0] = Some(route);
            self.prefixes.insert(prefix, 0);
            return Ok(());
        }
        if self.lacks_block(prefix) {
            return Err(TableError::Full);
        }
        let hop = self.take_hop(route)?;
        if self.first.is_empty() {
            // The kernel provides zeroed memory lazily, so pages that no route touches use no memory. A huge page has the
            // slots of half a million 24-bit prefixes.
            self.first = vec![Slot::DEFAULT.0; SLOTS];
            prefer_huge_pages(&mut self.first);
        }
        if prefix.len > 24 {
            self.enter_block(prefix);
        }
        self.paint(prefix, Slot::route(prefix.len, hop), 0, prefix.len);
        self.prefixes.insert(prefix, hop);
        Ok(())
    }

    /// Sets the route of a prefix and returns the previous one. Returns [`TableError::Full`] as for
    /// [`Self::insert`].
    pub fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError> {
        let Some(&before) = self.prefixes.get(&prefix) else {
            return self.insert(prefix, route).map(|()| None);
        };
        if prefix.len == 0 {
            return Ok(self.hops[0].replace(route));
        }
        // If no other prefix uses the number of the old route, and the new route has no number yet, the new route gets
        // the number of the old one. No slot changes, so this works even if the table is full.
        if self.uses[before as usize] == 1 && !self.numbers.contains_key(&route) {
            let old = self.hops[before as usize].replace(route);
            if let Some(old) = old {
                self.numbers.remove(&old);
            }
            self.numbers.insert(route, before);
            return Ok(old);
        }
        let hop = self.take_hop(route)?;
        let old = self.release_hop(before);
        if hop != before {
            self.paint(prefix, Slot::route(prefix.len, hop), prefix.len, prefix.len);
            self.prefixes.insert(prefix, hop);
        }
        Ok(old)
    }

    /// Removes the route of exactly this prefix.
    pub fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound> {
        let hop = self.prefixes.remove(&prefix).ok_or(NotFound)?;
        if prefix.len == 0 {
            return self.hops[0].take().ok_or(NotFound);
        }
        let heir = self.parent(prefix).map_or(Slot::DEFAULT, |(parent, hop)| Slot::route(parent.len, hop));
        self.paint(prefix, heir, prefix.len, prefix.len);
        if prefix.len > 24 {
            self.leave_block(prefix);
        }
        self.release_hop(hop).ok_or(NotFound)
    }

    /// Returns the longest other prefix in the table that contains `prefix`, with the number of its route. Ignores the
    /// default route.
    fn parent(&self, prefix: Prefix) -> Option<(Prefix, u32)> {
        let mut below = prefix;
        loop {
            // `below` is `prefix`, or a shorter prefix that contains `prefix`. `before` is the entry directly before
            // `below` in the map. If `prefix` has a parent, the parent is `before` or contains `before`. A parent that
            // contains `before` is at most as long as the leading bits that `before` and `prefix` share.
            let (&before, &hop) = self.prefixes.range(..below).next_back()?;
            if before.len == 0 {
                return None;
            }
            if before.contains(prefix.addr) && before.len < prefix.len {
                return Some((before, hop));
            }
            let shared = (before.addr ^ prefix.addr).leading_zeros() as u8;
            let next = Prefix::new(prefix.addr, shared.min(before.len));
            if let Some(&hop) = self.prefixes.get(&next).filter(|_| next.len > 0) {
                return Some((next, hop));
            }
            below = next;
        }
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<Route> {
        self.prefixes.get(&prefix).and_then(|&hop| self.hops.get(hop as usize).copied().flatten())
    }

    #[inline]
    fn resolve(&self, slot: u32, addr: u32) -> Option<Route> {
        let slot = match Slot(slot).as_block() {
            Some(block) => self.second.get(block * BLOCK + (addr as usize & 255)).copied().unwrap_or(0),
            None => slot,
        };
        self.hops.get(Slot(slot).hop()).copied().flatten()
    }

    /// The route of the longest prefix that matches `addr`.
    #[inline]
    pub fn lookup(&self, addr: u32) -> Option<Route> {
        self.resolve(self.first.get(addr as usize >> 8).copied().unwrap_or(0), addr)
    }

    /// Looks up each address as [`Self::lookup`] does. Stops at the end of the shorter slice. The first-level loads of
    /// a group of addresses are issued together.
    pub fn lookup_many(&self, addrs: &[u32], routes: &mut [Option<Route>]) {
        for (addrs, routes) in addrs.chunks(SIDE_BY_SIDE).zip(routes.chunks_mut(SIDE_BY_SIDE)) {
            let mut slots = [0; SIDE_BY_SIDE];
            for (slot, &addr) in slots.iter_mut().zip(addrs) {
                *slot = self.first.get(addr as usize >> 8).copied().unwrap_or(0);
            }
            for ((route, &slot), &addr) in routes.iter_mut().zip(&slots).zip(addrs) {
                *route = self.resolve(slot, addr);
            }
        }
    }

    /// All routes: first the default route, then the others by address and length.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Route)> {
        self.prefixes.iter().filter_map(|(&prefix, &hop)| Some((prefix, (*self.hops.get(hop as usize)?)?)))
    }

    /// Removes all routes and frees the memory.
    pub fn clear(&mut self) {
        *self = Self::with_limits(self.limits);
    }
}

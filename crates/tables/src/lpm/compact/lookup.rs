// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lookups: of one address, and of many side by side, so that their cache misses overlap.

use super::cells::{CELL, Leaf};
use super::{BLOCK, CompactTable};
use crate::lpm::Route;

/// Number of addresses that are looked up together.
const SIDE_BY_SIDE: usize = 32;

/// Whether the processor has the instructions of [`CompactTable::lookup_each_counting`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn counts_bits() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("popcnt") && has!("bmi2")
}

impl<const SORTED: bool> CompactTable<SORTED> {
    /// The route of the longest prefix that matches `addr`.
    #[inline]
    pub fn lookup(&self, addr: u32) -> Option<Route> {
        let leaf = self.first.leaf(&self.leaves, addr as usize >> 8);
        let leaf = match leaf.as_block() {
            Some(block) => self.blocks.leaf(&self.leaves, block * BLOCK + (addr as usize & 255)),
            None => leaf,
        };
        self.hops.get(leaf.hop())
    }

    /// Looks up the address `addr(item)` of each item as [`Self::lookup`] does, and calls `found` with the index of the
    /// item, the item and its route, in the order of the items.
    #[inline]
    pub fn lookup_each<T>(
        &self,
        items: &mut [T],
        addr: impl Fn(&T) -> u32,
        found: impl FnMut(usize, &mut T, Option<Route>),
    ) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if counts_bits() {
            // SAFETY: `counts_bits` has found that the processor has the instructions of the function.
            #[allow(unsafe_code)]
            return unsafe { self.lookup_each_counting(items, addr, found) };
        }
        self.lookup_all(items, addr, found);
    }

    /// [`Self::lookup_each`], compiled for processors that count bits with one instruction.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "popcnt,bmi2")]
    fn lookup_each_counting<T>(
        &self,
        items: &mut [T],
        addr: impl Fn(&T) -> u32,
        found: impl FnMut(usize, &mut T, Option<Route>),
    ) {
        self.lookup_all(items, addr, found);
    }

    /// [`Self::lookup_each`], for all processors.
    #[inline(always)]
    pub(in crate::lpm) fn lookup_all<T>(
        &self,
        items: &mut [T],
        addr: impl Fn(&T) -> u32,
        mut found: impl FnMut(usize, &mut T, Option<Route>),
    ) {
        // As their number is known, the loops over whole groups are unrolled.
        let (groups, rest) = items.as_chunks_mut::<SIDE_BY_SIDE>();
        let rest_at = groups.len() * SIDE_BY_SIDE;
        for (number, group) in groups.iter_mut().enumerate() {
            self.lookup_some(number * SIDE_BY_SIDE, group, &addr, &mut found);
        }
        if !rest.is_empty() {
            self.lookup_some(rest_at, rest, &addr, &mut found);
        }
    }

    /// Looks up at most [`SIDE_BY_SIDE`] items, the first of which has the index `first`.
    #[inline(always)]
    fn lookup_some<T>(
        &self,
        first: usize,
        items: &mut [T],
        addr: &impl Fn(&T) -> u32,
        found: &mut impl FnMut(usize, &mut T, Option<Route>),
    ) {
        // No branch in these loops depends on the table: a wrong prediction would keep the processor from loading the
        // cells and leaves of several addresses at once.
        let (mut addrs, mut places) = ([0; SIDE_BY_SIDE], [0; SIDE_BY_SIDE]);
        for ((place, known), item) in places.iter_mut().zip(&mut addrs).zip(&*items) {
            *known = addr(item);
            *place = self.first.cell((*known >> 8) as usize / CELL).place(*known >> 8);
        }
        let mut leaves = [Leaf::DEFAULT; SIDE_BY_SIDE];
        // The indexes of the addresses whose entries refer to a block.
        let (mut deep, mut count) = ([0_u8; SIDE_BY_SIDE], 0);
        for (i, ((leaf, &place), _)) in leaves.iter_mut().zip(&places).zip(&*items).enumerate() {
            *leaf = self.leaves.leaf(place);
            deep[count % SIDE_BY_SIDE] = i as u8;
            count += usize::from(leaf.is_block());
        }
        if count > 0 {
            self.lookup_deep(&addrs, &deep[..count], &mut leaves);
        }
        for (i, (item, leaf)) in items.iter_mut().zip(&leaves).enumerate() {
            found(first + i, item, self.hops.get(leaf.hop()));
        }
    }

    /// Replaces the leaves that refer to blocks, whose indexes are in `deep`, by leaves of these blocks.
    #[inline(always)]
    fn lookup_deep(&self, addrs: &[u32; SIDE_BY_SIDE], deep: &[u8], leaves: &mut [Leaf; SIDE_BY_SIDE]) {
        let mut places = [0; SIDE_BY_SIDE];
        for (place, &i) in places.iter_mut().zip(deep) {
            let i = usize::from(i) % SIDE_BY_SIDE;
            let at = leaves[i].as_block().unwrap_or(0) * BLOCK + (addrs[i] as usize & 255);
            *place = self.blocks.cell(at / CELL).place(addrs[i]);
        }
        for (&place, &i) in places.iter().zip(deep) {
            leaves[usize::from(i) % SIDE_BY_SIDE] = self.leaves.leaf(place);
        }
    }
}

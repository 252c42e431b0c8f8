// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks up many addresses side by side, so that their cache misses overlap.

use super::{LEVELS, MATCHES, NOWHERE, Node, RadixTable, chunk, rank, root};
use crate::lpm::Route;
use crate::memory::prefetch;

/// Number of addresses that are looked up together.
const SIDE_BY_SIDE: usize = 32;

/// Whether the processor has the instructions of [`RadixTable::lookup_many_counting`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn counts_bits() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("popcnt") && has!("lzcnt") && has!("bmi1") && has!("bmi2")
}

impl RadixTable {
    /// Looks up each address as [`Self::lookup`] does, and stores the results in `routes`. Stops at the end of the
    /// shorter slice. The lookups of a group of addresses traverse the tree side by side.
    pub fn lookup_many(&self, addrs: &[u32], routes: &mut [Option<Route>]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if counts_bits() {
            // SAFETY: the processor has the instructions.
            #[allow(unsafe_code)]
            return unsafe { self.lookup_many_counting(addrs, routes) };
        }
        self.lookup_all(addrs, routes);
    }

    /// [`Self::lookup_many`], compiled for processors that count bits with one instruction.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "popcnt,lzcnt,bmi1,bmi2")]
    fn lookup_many_counting(&self, addrs: &[u32], routes: &mut [Option<Route>]) {
        self.lookup_all(addrs, routes);
    }

    /// [`Self::lookup_many`], for all processors.
    #[inline(always)]
    pub(in crate::lpm) fn lookup_all(&self, addrs: &[u32], routes: &mut [Option<Route>]) {
        for (addrs, routes) in addrs.chunks(SIDE_BY_SIDE).zip(routes.chunks_mut(SIDE_BY_SIDE)) {
            // For each address, the index of the matching entry, or u32::MAX (never a valid index) if there is none.
            let mut entries = [u32::MAX; SIDE_BY_SIDE];
            let mut nodes = [NOWHERE; SIDE_BY_SIDE];
            for (node, &addr) in nodes.iter_mut().zip(addrs) {
                *node = root(addr);
            }
            for level in 0..LEVELS {
                let mut deeper = false;
                // No branch in this loop depends on the table: a wrong prediction would keep the processor from loading
                // the nodes of several addresses at once. A search that has ended stays at the empty node.
                for ((at, entry), &addr) in nodes.iter_mut().zip(&mut entries).zip(addrs) {
                    let node = self.nodes.items().get(*at as usize).unwrap_or(&Node::EMPTY);
                    let bits = chunk(addr, level);
                    let matching = node.routes & MATCHES[bits as usize];
                    let best = 63 - (matching | 1).leading_zeros();
                    let found = node.routes_at.wrapping_add(rank(node.routes, best));
                    *entry = if matching != 0 { found } else { *entry };
                    let child = node.children_at.wrapping_add(rank(node.children, bits));
                    *at = if node.children >> bits & 1 == 1 { child } else { NOWHERE };
                    prefetch(self.nodes.items(), *at as usize);
                    deeper |= *at != NOWHERE;
                }
                if !deeper {
                    break;
                }
            }
            for &entry in &entries {
                prefetch(self.entries.items(), entry as usize);
            }
            for ((route, &entry), &addr) in routes.iter_mut().zip(&entries).zip(addrs) {
                *route = match self.entries.get(entry) {
                    Some(entry) => Some(entry.route),
                    None => self.fallback.get(root(addr) as usize).copied().flatten(),
                };
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes as arrays that a program in the kernel looks up in at most three steps: by the first 16 bits of an address, then by 8 more, and
//! by the last 8 (Gupta, Lin, McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998, with three levels).
//!
//! Blocks have 256 entries of 32 bits; the first 256 blocks are the first level. If bit 31 of an entry ([`NEXT`]) is set, the others are
//! the number of a block of the next level. Otherwise bits 0 to 15 are the number of a next hop, and the bits from 16 on the length of
//! its prefix; 0 is no route. Next hops have a table of their own.

use super::table::{Net, Route};
use castanet_element::kernel::{Table, TableKind, TableSpec};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of entries of a block.
const ENTRIES: u32 = 256;
/// The number of blocks of the first level.
const TOP: u32 = 256;
/// The most blocks, of 1 KB each. A full table of the Internet needs less than half of them.
const MOST_BLOCKS: u32 = 1 << 18;
/// The flag of entries that are numbers of blocks.
pub(super) const NEXT: u32 = 1 << 31;
/// The bits of entries that are numbers of next hops.
pub(super) const HOP: u32 = 0xffff;
/// The first of the bits of an entry that are the length of the prefix.
const LENGTH: u32 = 16;

/// The next hops: gateway in network order, output.
pub(super) const HOPS: TableSpec =
    TableSpec { kind: TableKind::Array, key: 4, value: 8, entries: HOP + 1, ordered: false };

/// The tables that some routes need. If they need more room later, that is another plan, and its tables have other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Counts the plans of an element, from 1.
    version: u32,
    blocks: u32,
}

impl Plan {
    /// The plan for routes, with room for more; `None` if they need too many blocks or next hops.
    pub fn of(routes: &[(Net, Route)], version: u32) -> Option<Plan> {
        let beyond = |bits: u8| {
            let long = routes.iter().filter(move |(net, _)| net.prefix_len() > bits);
            long.map(move |(net, _)| net.addr() >> (32 - bits)).collect::<HashSet<_>>().len()
        };
        let hops: HashSet<Route> = routes.iter().map(|r| r.1).collect();
        let needed = u32::try_from(beyond(16) + beyond(24)).ok()?.checked_add(TOP)?;
        let blocks = (needed / 4 * 5).next_power_of_two();
        (blocks <= MOST_BLOCKS && hops.len() < HOP as usize).then_some(Plan { version, blocks })
    }
    /// The numbers of the tables of blocks and of next hops.
    pub fn numbers(self) -> [u32; 2] {
        [self.version * 2, self.version * 2 + 1]
    }
    /// The table of blocks.
    pub fn blocks(self) -> TableSpec {
        TableSpec { kind: TableKind::Array, key: 4, value: ENTRIES * 4, entries: self.blocks, ordered: false }
    }
    /// The number of the plan.
    pub fn version(self) -> u32 {
        self.version
    }
}

/// The arrays, filled with routes.
pub(super) struct Arrays {
    blocks: Arc<dyn Table>,
    hops: Arc<dyn Table>,
    /// The number of blocks that are in use. Blocks are not used again, because programs may still read them.
    used: u32,
    room: u32,
    numbers: HashMap<Route, u32>,
}

impl Arrays {
    /// Fills empty tables. `None` if they have no room for the routes.
    pub fn fill(
        plan: Plan,
        [blocks, hops]: [Arc<dyn Table>; 2],
        mut routes: Vec<(Net, Route)>,
    ) -> Option<Arrays> {
        let mut arrays = Arrays { blocks, hops, used: TOP, room: plan.blocks, numbers: HashMap::new() };
        routes.sort_by_key(|(net, _)| net.prefix_len());
        routes.into_iter().all(|(net, route)| arrays.set(net, route)).then_some(arrays)
    }

    /// Adds or replaces a route. Returns false if there is no room for it.
    pub fn set(&mut self, net: Net, route: Route) -> bool {
        let Some(hop) = self.hop(route) else { return false };
        let length = net.prefix_len();
        let leaf = u32::from(length) << LENGTH | hop;
        self.change(net, true, |now| if now >> LENGTH <= u32::from(length) { leaf } else { now })
    }

    /// Removes the route to a prefix. `parent` is the route to the longest prefix that contains this one, with its length.
    pub fn remove(&mut self, net: Net, parent: Option<(u8, Route)>) -> bool {
        let leaf = match parent {
            None => 0,
            Some((length, route)) => match self.hop(route) {
                Some(hop) => u32::from(length) << LENGTH | hop,
                None => return false,
            },
        };
        let length = u32::from(net.prefix_len());
        // An entry without a route has no next hop, and length 0.
        self.change(net, false, |now| if now != 0 && now >> LENGTH == length { leaf } else { now })
    }

    /// The number of a next hop.
    fn hop(&mut self, route: Route) -> Option<u32> {
        if let Some(number) = self.numbers.get(&route) {
            return Some(*number);
        }
        let number = u32::try_from(self.numbers.len()).ok()?.checked_add(1).filter(|n| *n <= HOP)?;
        let ([a, b, c, d], [e, f, g, h]) = (route.gw.to_be_bytes(), route.port.to_ne_bytes());
        if !self.hops.set_word(number as usize, u64::from_ne_bytes([a, b, c, d, e, f, g, h])) {
            return None;
        }
        self.numbers.insert(route, number);
        Some(number)
    }

    fn entry(&self, at: u32) -> u32 {
        let word = self.blocks.word(at as usize / 2).unwrap_or(0).to_ne_bytes();
        let ([first, second], _) = word.as_chunks::<4>() else { return 0 };
        u32::from_ne_bytes(if at.is_multiple_of(2) { *first } else { *second })
    }
    fn set_entry(&self, at: u32, value: u32) -> bool {
        let pair = [at & !1, at | 1].map(|n| if n == at { value } else { self.entry(n) });
        let ([a, b, c, d], [e, f, g, h]) = pair.map(u32::to_ne_bytes).into();
        self.blocks.set_word(at as usize / 2, u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Changes all entries of a prefix. Those that reach beyond it get a block, if `divides`. Returns false if there is no room.
    fn change(&mut self, net: Net, divides: bool, leaf: impl Fn(u32) -> u32 + Copy) -> bool {
        let first = net.addr() >> 16;
        let count = 1 << 16_u8.saturating_sub(net.prefix_len());
        (first..first + count).all(|at| self.change_entry(at, 16, (net, divides), leaf))
    }

    /// Changes an entry that is found by the first `bits` bits of an address.
    fn change_entry(
        &mut self,
        at: u32,
        bits: u8,
        (net, divides): (Net, bool),
        leaf: impl Fn(u32) -> u32 + Copy,
    ) -> bool {
        let now = self.entry(at);
        let length = net.prefix_len();
        let block = match now & NEXT {
            0 if length <= bits => {
                let value = leaf(now);
                return value == now || self.set_entry(at, value);
            }
            0 if !divides => return true,
            0 => {
                let Some(block) = self.divide(now) else { return false };
                if !self.set_entry(at, NEXT | block) {
                    return false;
                }
                block
            }
            _ => now & !NEXT,
        };
        let bits = bits.saturating_add(8);
        let inside = bits.saturating_sub(length).min(8);
        let byte = net.addr().unbounded_shr(u32::from(32_u8.saturating_sub(bits))) % ENTRIES;
        let first = (byte >> inside) << inside;
        (first..first + (1 << inside))
            .all(|i| self.change_entry(block * ENTRIES + i, bits, (net, divides), leaf))
    }

    /// Makes a block of equal entries.
    fn divide(&mut self, value: u32) -> Option<u32> {
        let block = self.used;
        if block >= self.room {
            return None;
        }
        self.used += 1;
        let fill = |i| self.entry(block * ENTRIES + i) == value || self.set_entry(block * ENTRIES + i, value);
        (0..ENTRIES).all(fill).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_tables::lpm::StaticTable;
    use parking_lot::Mutex;
    use proptest::prelude::*;

    /// Words in memory.
    struct Memory(Mutex<Vec<u64>>);

    impl Table for Memory {
        fn set(&self, _: &[u8], _: &[u8]) -> bool {
            false
        }
        fn remove(&self, _: &[u8]) {}
        fn clear(&self) {}
        fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
            None
        }
        fn word(&self, index: usize) -> Option<u64> {
            self.0.lock().get(index).copied()
        }
        fn set_word(&self, index: usize, n: u64) -> bool {
            self.0.lock().get_mut(index).map(|w| *w = n).is_some()
        }
        fn time(&self, _: i64) -> u64 {
            0
        }
    }

    fn memory(spec: TableSpec) -> Arc<dyn Table> {
        Arc::new(Memory(Mutex::new(vec![0; (spec.value / 8 * spec.entries) as usize])))
    }

    fn filled(plan: Plan, routes: Vec<(Net, Route)>) -> Option<Arrays> {
        Arrays::fill(plan, [memory(plan.blocks()), memory(HOPS)], routes)
    }

    impl Arrays {
        /// The look-up that programs do.
        fn look_up(&self, address: u32) -> Option<Route> {
            let [a, b, c, d] = address.to_be_bytes().map(u32::from);
            let mut entry = self.entry(a * ENTRIES + b);
            for byte in [c, d] {
                if entry & NEXT != 0 {
                    entry = self.entry((entry & !NEXT) * ENTRIES + byte);
                }
            }
            let hop = entry & HOP;
            self.numbers.iter().find(|(_, n)| **n == hop).map(|(route, _)| *route)
        }
    }

    /// Few different prefixes, so that many contain each other.
    fn nets() -> impl Strategy<Value = Net> {
        (0u32..2, 0u32..3, 0u32..4, 0u8..=32)
            .prop_map(|(b, c, d, length)| Net::new(10 << 24 | b << 16 | c << 8 | d, length))
    }

    fn routes() -> impl Strategy<Value = Route> {
        (0u32..3, 0u32..3).prop_map(|(gw, port)| Route { gw, port })
    }

    proptest! {
        #[test]
        fn changes_are_found_as_in_a_list_of_routes(
            first in prop::collection::vec((nets(), routes()), 1..40),
            changes in prop::collection::vec((nets(), prop::option::of(routes())), 0..60),
        ) {
            let mut table = StaticTable::default();
            for (net, route) in &first {
                table.replace(*net, *route).unwrap();
            }
            let mut arrays = filled(Plan::of(&table.iter().collect::<Vec<_>>(), 1).unwrap(), table.iter().collect()).unwrap();
            let all: Vec<Net> = first.iter().map(|f| f.0).chain(changes.iter().map(|c| c.0)).collect();
            for (net, change) in changes {
                match change {
                    Some(route) => {
                        table.replace(net, route).unwrap();
                        prop_assert!(arrays.set(net, route));
                    }
                    None if table.remove(net).is_ok() => {
                        let shorter = (0..net.prefix_len()).rev().map(|l| Net::new(net.addr(), l));
                        let parent = shorter.into_iter().find_map(|n| Some((n.prefix_len(), table.get(n)?)));
                        prop_assert!(arrays.remove(net, parent));
                    }
                    None => {}
                }
                for net in &all {
                    for address in [net.addr(), net.addr() | !net.mask(), net.addr().wrapping_sub(1)] {
                        prop_assert_eq!(arrays.look_up(address), table.lookup(address), "{:x}", address);
                    }
                }
            }
        }
    }

    #[test]
    fn arrays_without_room_refuse_routes() {
        let route = Route { gw: 0, port: 1 };
        let long = |n: u32| (Net::new(n << 16, 24), route);
        // The smallest plan has room for 256 blocks beside the first level.
        let plan = Plan::of(&[long(1)], 1).unwrap();
        assert_eq!((plan.numbers(), plan.blocks().entries), ([2, 3], 512));
        let mut arrays = filled(plan, (0..256).map(long).collect()).unwrap();
        let (net, _) = long(256);
        assert!(!arrays.set(net, route));
        // Routes that need no block still have room.
        assert!(arrays.set(Net::new(0, 0), Route { gw: 7, port: 0 }));
        // A plan has room for more routes than it was made for.
        let routes: Vec<_> = (0..300).map(long).collect();
        assert_eq!(Plan::of(&routes, 2).unwrap().blocks().entries, 1024);
        let many: Vec<_> = (0..1 << 18).map(|n| (Net::new(n << 8, 32), route)).collect();
        assert_eq!(Plan::of(&many, 2), None);
        let hops: Vec<_> = (0..1 << 16).map(|n| (Net::new(n, 32), Route { gw: n + 1, port: 0 })).collect();
        assert_eq!(Plan::of(&hops, 2), None);
    }
}

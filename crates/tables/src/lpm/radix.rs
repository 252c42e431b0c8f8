// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree bitmap: a node covers six bits, and its children and its routes are stored contiguously. A change
//! touches only the nodes on the path of its prefix.
//!
//! After Eatherton, Varghese and Dittia, "Tree Bitmap: Hardware/Software IP Lookups with Incremental Updates"
//! (2004). The first nine bits select one of 512 roots. Four levels of nodes hold the prefixes of length 9 to
//! 14, 15 to 20, 21 to 26 and 27 to 32. Shorter prefixes are stored separately, and the longest of them is
//! precomputed for each root.

mod many;

use super::arena::Arena;
use super::{NotFound, Prefix, Route, TableError};

const ROOT_BITS: u32 = 9;
const ROOTS: usize = 1 << ROOT_BITS;
const LEVELS: u32 = 4;
/// The index of a node that is always empty: it follows the roots.
const NOWHERE: u32 = ROOTS as u32;

/// For each value of six bits, a bit mask of the prefixes of length 0 to 5 that match the value. A prefix has the same
/// bit here as in [`Node::routes`].
const MATCHES: [u64; 64] = {
    let mut matches = [0; 64];
    let mut bits = 0;
    while bits < 64 {
        let mut len = 0;
        while len < 6 {
            matches[bits] |= 1 << place(len, (bits as u32) >> (6 - len));
            len += 1;
        }
        bits += 1;
    }
    matches
};

/// The bit in [`Node::routes`] (and the index in [`RadixTable::short`]) that stands for the prefix with the bits
/// `value` and the length `len`. Longer prefixes follow shorter ones.
const fn place(len: u32, value: u32) -> u32 {
    (1 << len) - 1 + value
}

/// The number of bits set below bit `at`.
#[inline]
const fn rank(bits: u64, at: u32) -> u32 {
    (bits & ((1 << at) - 1)).count_ones()
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// A bit mask of the prefixes that end in this node and have routes. [`place`] gives the bit of a prefix.
    routes: u64,
    /// A bit mask of the six-bit values that have a child node.
    children: u64,
    /// The block in the arena `entries` that holds the routes, in the order of their bits in `routes`.
    routes_at: u32,
    /// The block in the arena `nodes` that holds the child nodes.
    children_at: u32,
}

impl Node {
    const EMPTY: Self = Self { routes: 0, children: 0, routes_at: 0, children_at: 0 };
}

/// A route, and its number in insertion order.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    route: Route,
    order: u64,
}

/// A compressed table for any number of routes. The cost of a change is proportional to the prefix length.
#[derive(Clone, Debug)]
pub struct RadixTable {
    /// The first 512 nodes are the roots. An empty node follows them.
    nodes: Arena<Node>,
    entries: Arena<Entry>,
    /// The routes of prefixes shorter than 9 bits. [`place`] gives the index of a prefix.
    short: Vec<Option<Entry>>,
    /// For each root, the route of the longest matching prefix shorter than 9 bits.
    fallback: Vec<Option<Route>>,
    len: usize,
    next_order: u64,
}

impl Default for RadixTable {
    fn default() -> Self {
        Self::new()
    }
}

/// The six bits of `addr` that select a route and a child in a node of `level`. For the last level, only five bits
/// are left; they are padded with a zero.
#[inline]
const fn chunk(addr: u32, level: u32) -> u32 {
    (((addr as u64) << 1) >> (6 * (LEVELS - 1 - level))) as u32 & 63
}

#[inline]
const fn root(addr: u32) -> u32 {
    addr >> (32 - ROOT_BITS)
}

/// For a prefix of at least nine bits: the level (depth in the tree) of the node that holds the prefix, and the bit of
/// the prefix in [`Node::routes`].
const fn level_and_place(prefix: Prefix) -> (u32, u32) {
    let below = prefix.len as u32 - ROOT_BITS;
    let (level, len) = (below / 6, below % 6);
    (level, place(len, chunk(prefix.addr, level) >> (6 - len)))
}

/// The index in `short` of a short prefix.
const fn short_place(prefix: Prefix) -> usize {
    place(prefix.len as u32, ((prefix.addr as u64) >> (32 - prefix.len as u32)) as u32) as usize
}

impl RadixTable {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self {
            nodes: Arena::with_fixed(ROOTS + 1),
            entries: Arena::default(),
            short: vec![None; ROOTS - 1],
            fallback: vec![None; ROOTS],
            len: 0,
            next_order: 0,
        }
    }

    /// The number of routes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no routes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.nodes.bytes()
            + self.entries.bytes()
            + self.short.len() * size_of::<Option<Entry>>()
            + self.fallback.len() * size_of::<Option<Route>>()
    }

    #[inline]
    fn node(&self, at: u32) -> Node {
        self.nodes.get(at).copied().unwrap_or_default()
    }

    /// The child of `node` for these six bits.
    #[inline]
    fn child(node: &Node, bits: u32) -> Option<u32> {
        (node.children >> bits & 1 == 1).then(|| node.children_at + rank(node.children, bits))
    }

    /// The index of the entry for a prefix, which must have at least nine bits.
    fn entry_at(&self, prefix: Prefix) -> Option<u32> {
        let (last, place) = level_and_place(prefix);
        let mut node = self.node(root(prefix.addr));
        for level in 0..last {
            node = self.node(Self::child(&node, chunk(prefix.addr, level))?);
        }
        (node.routes >> place & 1 == 1).then(|| node.routes_at + rank(node.routes, place))
    }

    fn entry(&self, prefix: Prefix) -> Option<&Entry> {
        if u32::from(prefix.len) < ROOT_BITS {
            return self.short.get(short_place(prefix))?.as_ref();
        }
        self.entries.get(self.entry_at(prefix)?)
    }

    fn entry_mut(&mut self, prefix: Prefix) -> Option<&mut Entry> {
        if u32::from(prefix.len) < ROOT_BITS {
            return self.short.get_mut(short_place(prefix))?.as_mut();
        }
        let at = self.entry_at(prefix)?;
        self.entries.get_mut(at)
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<Route> {
        self.entry(prefix).map(|entry| entry.route)
    }

    /// Recomputes `fallback`, the route of the longest matching prefix shorter than 9 bits, for every root within
    /// `prefix`.
    fn refresh_fallback(&mut self, prefix: Prefix) {
        let first = root(prefix.addr) as usize;
        let count = ROOTS >> prefix.len;
        for (slot, best) in self.fallback.iter_mut().enumerate().skip(first).take(count) {
            let addr = (slot as u32) << (32 - ROOT_BITS);
            let longest = (0..ROOT_BITS as u8).rev().map(|len| short_place(Prefix::new(addr, len)));
            *best = longest.filter_map(|place| *self.short.get(place)?).map(|entry| entry.route).next();
        }
    }

    /// Adds a route. Returns [`TableError::Exists`] if the prefix already has a route.
    pub fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError> {
        let entry = Entry { route, order: self.next_order };
        if u32::from(prefix.len) < ROOT_BITS {
            let short = self.short.get_mut(short_place(prefix)).ok_or(TableError::Full)?;
            match short {
                Some(entry) => return Err(TableError::Exists(entry.route)),
                None => *short = Some(entry),
            }
            self.refresh_fallback(prefix);
        } else {
            self.insert_long(prefix, entry)?;
        }
        self.next_order += 1;
        self.len += 1;
        Ok(())
    }

    fn insert_long(&mut self, prefix: Prefix, entry: Entry) -> Result<(), TableError> {
        let (last, place) = level_and_place(prefix);
        let mut at = root(prefix.addr);
        for level in 0..last {
            let (node, bits) = (self.node(at), chunk(prefix.addr, level));
            at = match Self::child(&node, bits) {
                Some(child) => child,
                None => {
                    let (count, index) = (node.children.count_ones(), rank(node.children, bits));
                    let block =
                        self.nodes.insert(node.children_at, count as usize, index as usize, Node::default());
                    // On failure, an empty node may be left in the tree. It matches nothing.
                    let block = block.ok_or(TableError::Full)?;
                    if let Some(node) = self.nodes.get_mut(at) {
                        node.children |= 1 << bits;
                        node.children_at = block;
                    }
                    block + index
                }
            };
        }
        let node = self.node(at);
        let (count, index) = (node.routes.count_ones(), rank(node.routes, place));
        if node.routes >> place & 1 == 1 {
            let existing = self.entries.get(node.routes_at + index).copied().unwrap_or_default();
            return Err(TableError::Exists(existing.route));
        }
        let block = self.entries.insert(node.routes_at, count as usize, index as usize, entry);
        let block = block.ok_or(TableError::Full)?;
        if let Some(node) = self.nodes.get_mut(at) {
            node.routes |= 1 << place;
            node.routes_at = block;
        }
        Ok(())
    }

    /// Sets the route of a prefix and returns the previous one. The prefix keeps its position in
    /// [`Self::iter`].
    pub fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError> {
        let Some(entry) = self.entry_mut(prefix) else {
            return self.insert(prefix, route).map(|()| None);
        };
        let before = std::mem::replace(&mut entry.route, route);
        if u32::from(prefix.len) < ROOT_BITS {
            self.refresh_fallback(prefix);
        }
        Ok(Some(before))
    }

    /// Removes the route of exactly this prefix.
    pub fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound> {
        let entry = if u32::from(prefix.len) < ROOT_BITS {
            let entry = self.short.get_mut(short_place(prefix)).and_then(Option::take).ok_or(NotFound)?;
            self.refresh_fallback(prefix);
            entry
        } else {
            self.remove_long(prefix).ok_or(NotFound)?
        };
        self.len -= 1;
        Ok(entry.route)
    }

    fn remove_long(&mut self, prefix: Prefix) -> Option<Entry> {
        let entry = *self.entries.get(self.entry_at(prefix)?)?;
        let (last, place) = level_and_place(prefix);
        let mut path = [root(prefix.addr); LEVELS as usize];
        for level in 0..last {
            let node = self.node(path[level as usize]);
            path[level as usize + 1] = Self::child(&node, chunk(prefix.addr, level))?;
        }
        let node = self.nodes.get_mut(path[last as usize])?;
        let (count, index) = (node.routes.count_ones(), rank(node.routes, place));
        node.routes_at = self.entries.remove(node.routes_at, count as usize, index as usize);
        node.routes &= !(1 << place);
        // Removes empty nodes, starting with the deepest. Roots stay.
        for level in (0..last).rev() {
            let child = self.node(path[level as usize + 1]);
            if child.routes | child.children != 0 {
                break;
            }
            let (parent, bits) = (self.node(path[level as usize]), chunk(prefix.addr, level));
            let (count, index) = (parent.children.count_ones(), rank(parent.children, bits));
            let block = self.nodes.remove(parent.children_at, count as usize, index as usize);
            let parent = self.nodes.get_mut(path[level as usize])?;
            parent.children &= !(1 << bits);
            parent.children_at = block;
        }
        Some(entry)
    }

    /// Returns the number of the bit in `routes` that stands for the longest prefix that matches `bits`, six bits of an
    /// address.
    #[inline]
    fn best(routes: u64, bits: u32) -> u32 {
        // Only called if there is a match.
        63 - (routes & MATCHES[bits as usize & 63]).leading_zeros()
    }

    /// The route of the longest prefix that matches `addr`.
    #[inline]
    pub fn lookup(&self, addr: u32) -> Option<Route> {
        let slot = root(addr);
        let mut node = self.nodes.get(slot)?;
        // The deepest node so far that has a matching route, and the six bits of `addr` at that node. The route itself
        // is looked up after the loop.
        let mut found = None;
        for level in 0..LEVELS {
            let bits = chunk(addr, level);
            if node.routes & MATCHES[bits as usize] != 0 {
                found = Some((node, bits));
            }
            let Some(child) = Self::child(node, bits).and_then(|child| self.nodes.get(child)) else { break };
            node = child;
        }
        match found {
            Some((node, bits)) => {
                let at = node.routes_at + rank(node.routes, Self::best(node.routes, bits));
                self.entries.get(at).map(|entry| entry.route)
            }
            None => self.fallback.get(slot as usize).copied().flatten(),
        }
    }

    /// All routes in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Route)> {
        let mut all = Vec::with_capacity(self.len);
        for len in 0..ROOT_BITS as u8 {
            for value in 0..1_u32 << len {
                let prefix = Prefix::new(value.checked_shl(32 - u32::from(len)).unwrap_or(0), len);
                all.extend(self.entry(prefix).map(|&entry| (prefix, entry)));
            }
        }
        for slot in 0..ROOTS as u32 {
            self.collect(slot, slot << (32 - ROOT_BITS), 0, &mut all);
        }
        all.sort_unstable_by_key(|(_, entry)| entry.order);
        all.into_iter().map(|(prefix, entry)| (prefix, entry.route))
    }

    /// Adds the entries of node `at` and of all nodes below it to `all`. The prefixes of these entries start with
    /// `addr`.
    fn collect(&self, at: u32, addr: u32, level: u32, all: &mut Vec<(Prefix, Entry)>) {
        let node = self.node(at);
        let above = ROOT_BITS + 6 * level;
        let mut index = node.routes_at;
        for len in 0..6 {
            for value in 0..1_u32 << len {
                if node.routes >> place(len, value) & 1 == 1 {
                    let bits = value.checked_shl(32 - above - len).unwrap_or(0);
                    let prefix = Prefix::new(addr | bits, (above + len) as u8);
                    all.extend(self.entries.get(index).map(|&entry| (prefix, entry)));
                    index += 1;
                }
            }
        }
        for bits in 0..64 {
            if let Some(child) = Self::child(&node, bits) {
                self.collect(child, addr | bits << (32 - above - 6), level + 1, all);
            }
        }
    }

    /// Removes all routes.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

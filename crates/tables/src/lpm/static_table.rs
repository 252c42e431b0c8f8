// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table for a few routes, sorted by decreasing length and compared eight at a time without branches.

use super::lanes::{LANES, Lanes};
use super::{NotFound, Prefix, Route, TableError};

/// Eight routes that are compared together.
#[derive(Clone, Debug)]
struct Group {
    lanes: Lanes,
    routes: [Route; LANES],
}

impl Group {
    /// Creates a group of at most eight routes. Unused lanes hold a prefix that cannot match.
    fn new(routes: &[(Prefix, Route)]) -> Self {
        let lane = |lane: usize| routes.get(lane).copied();
        Self {
            lanes: Lanes::new(
                std::array::from_fn(|i| lane(i).map_or(0, |(prefix, _)| prefix.mask())),
                std::array::from_fn(|i| lane(i).map_or(u32::MAX, |(prefix, _)| prefix.addr())),
            ),
            routes: std::array::from_fn(|i| lane(i).map_or(Route::default(), |(_, route)| route)),
        }
    }

    #[inline]
    fn find(&self, addr: u32) -> Option<Route> {
        // If no lane matches, the lowest set bit is bit `LANES`. This index is out of range, so the result is none.
        self.routes.get((self.lanes.hits(addr) | 1 << LANES).trailing_zeros() as usize).copied()
    }
}

/// A table for a few routes. The cost of a change is proportional to the number of routes.
#[derive(Clone, Debug, Default)]
pub struct StaticTable {
    groups: Vec<Group>,
    /// All routes in the order of the groups: longest prefix first, then by address.
    sorted: Vec<(Prefix, Route)>,
    /// The prefixes in insertion order.
    configured: Vec<Prefix>,
}

impl StaticTable {
    /// Creates an empty table.
    pub const fn new() -> Self {
        Self { groups: Vec::new(), sorted: Vec::new(), configured: Vec::new() }
    }

    /// The number of routes.
    #[inline]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no routes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    fn position(&self, prefix: Prefix) -> Result<usize, usize> {
        let key = |p: Prefix| (32 - p.prefix_len(), p.addr());
        self.sorted.binary_search_by_key(&key(prefix), |&(p, _)| key(p))
    }

    /// Rebuilds the groups of routes, beginning with the group of route number `from`.
    fn regroup(&mut self, from: usize) {
        let first = from / LANES;
        self.groups.truncate(first);
        let routes = self.sorted.get(first * LANES..).unwrap_or_default();
        self.groups.extend(routes.chunks(LANES).map(Group::new));
    }

    /// Adds a route. Returns [`TableError::Exists`] if the prefix already has a route.
    pub fn insert(&mut self, prefix: Prefix, route: Route) -> Result<(), TableError> {
        match self.position(prefix) {
            Ok(at) => Err(TableError::Exists(self.sorted[at].1)),
            Err(at) => {
                self.sorted.insert(at, (prefix, route));
                self.configured.push(prefix);
                self.regroup(at);
                Ok(())
            }
        }
    }

    /// Sets the route of a prefix and returns the previous one. The prefix keeps its position in
    /// [`Self::iter`].
    pub fn replace(&mut self, prefix: Prefix, route: Route) -> Result<Option<Route>, TableError> {
        match self.position(prefix) {
            Ok(at) => {
                let before = std::mem::replace(&mut self.sorted[at].1, route);
                self.regroup(at);
                Ok(Some(before))
            }
            Err(_) => self.insert(prefix, route).map(|()| None),
        }
    }

    /// Removes the route of exactly this prefix.
    pub fn remove(&mut self, prefix: Prefix) -> Result<Route, NotFound> {
        let at = self.position(prefix).map_err(|_| NotFound)?;
        let (_, route) = self.sorted.remove(at);
        self.configured.retain(|&p| p != prefix);
        self.regroup(at);
        Ok(route)
    }

    /// The route of exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<Route> {
        self.position(prefix).ok().map(|at| self.sorted[at].1)
    }

    /// The route of the longest prefix that matches `addr`.
    #[inline]
    pub fn lookup(&self, addr: u32) -> Option<Route> {
        match &self.groups[..] {
            [group] => group.find(addr),
            groups => groups.iter().find_map(|group| group.find(addr)),
        }
    }

    /// Looks up the address `addr(item)` of each item as [`Self::lookup`] does, and calls `found` with the index of the
    /// item, the item and its route, in the order of the items.
    #[inline]
    pub fn lookup_each<T>(
        &self,
        items: &mut [T],
        addr: impl Fn(&T) -> u32,
        mut found: impl FnMut(usize, &mut T, Option<Route>),
    ) {
        for (i, item) in items.iter_mut().enumerate() {
            let route = self.lookup(addr(item));
            found(i, item, route);
        }
    }

    /// All routes in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, Route)> {
        self.configured.iter().filter_map(|&prefix| Some((prefix, self.get(prefix)?)))
    }

    /// Removes all routes.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

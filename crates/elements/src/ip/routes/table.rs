// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables for longest-prefix match.

use castanet_element::prelude::Packet;
use castanet_tables::lpm::{CompactTable, NotFound, StaticTable, TableError};
pub(in crate::ip) use castanet_tables::lpm::{Prefix as Net, Route};

/// A table of routes, looked up by longest-prefix match.
pub trait RouteTable: Default + Send + 'static {
    /// The first word of messages about packets without a route.
    const LABEL: &'static str;
    /// Whether the table is so large that most lookups miss the cache. It is then faster to do several lookups
    /// together.
    const LARGE: bool;
    fn replace(&mut self, net: Net, route: Route) -> Result<Option<Route>, TableError>;
    fn remove(&mut self, net: Net) -> Result<Route, NotFound>;
    fn get(&self, net: Net) -> Option<Route>;
    fn lookup(&self, addr: u32) -> Option<Route>;
    /// Looks up the destination address of each packet, and calls `found` with the index of the packet, the packet and its
    /// route.
    fn lookup_each(&self, packets: &mut [Packet], found: impl FnMut(usize, &mut Packet, Option<Route>));
    fn all(&self) -> Vec<(Net, Route)>;
    fn len(&self) -> usize;
    fn clear(&mut self);
}

macro_rules! tables {
    ($($t:ty: $label:literal, $large:literal;)+) => { $(
        impl RouteTable for $t {
            const LABEL: &'static str = $label;
            const LARGE: bool = $large;
            fn replace(&mut self, net: Net, route: Route) -> Result<Option<Route>, TableError> {
                <$t>::replace(self, net, route)
            }
            fn remove(&mut self, net: Net) -> Result<Route, NotFound> {
                <$t>::remove(self, net)
            }
            fn get(&self, net: Net) -> Option<Route> {
                <$t>::get(self, net)
            }
            #[inline]
            fn lookup(&self, addr: u32) -> Option<Route> {
                <$t>::lookup(self, addr)
            }
            #[inline]
            fn lookup_each(
                &self,
                packets: &mut [Packet],
                found: impl FnMut(usize, &mut Packet, Option<Route>),
            ) {
                <$t>::lookup_each(self, packets, Packet::dst_ip, found)
            }
            fn all(&self) -> Vec<(Net, Route)> {
                self.iter().collect()
            }
            fn len(&self) -> usize {
                <$t>::len(self)
            }
            fn clear(&mut self) {
                <$t>::clear(self)
            }
        }
    )+ };
}
tables! {
    StaticTable: "LinearIPLookup", false;
    CompactTable<false>: "IPRouteTable", true;
    CompactTable<true>: "IPRouteTable", true;
}

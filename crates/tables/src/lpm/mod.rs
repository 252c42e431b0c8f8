// SPDX-License-Identifier: MIT OR Apache-2.0
//! Longest-prefix match for IPv4: two tables with the same methods.
//!
//! | table | for | memory | lookup |
//! |---|---|---|---|
//! | [`StaticTable`] | a few routes | 16 bytes a route, plus the list of routes | compares 8 routes at a time |
//! | [`CompactTable`] | any number | 4 MiB and about 10 bytes a route, plus the list of routes | 3 or 5 loads |
//!
//! `insert` fails if the prefix exists, `replace` sets the route whether or not the prefix exists, and
//! `remove` removes exactly one prefix. A failed change leaves the table unchanged.

mod compact;
mod lanes;
mod static_table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::Ipv4Addr;

pub use compact::CompactTable;
pub use static_table::StaticTable;

/// An IPv4 prefix. The bits beyond its length are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    addr: u32,
    len: u8,
}

impl Prefix {
    /// The prefix that matches every address.
    pub const ALL: Self = Self { addr: 0, len: 0 };

    /// The first `len` bits of `addr`. A length over 32 counts as 32.
    #[inline]
    pub const fn new(addr: u32, len: u8) -> Self {
        let len = if len > 32 { 32 } else { len };
        Self { addr: addr & mask(len), len }
    }

    /// The first address.
    #[inline]
    pub const fn addr(self) -> u32 {
        self.addr
    }

    /// The length, 0 to 32.
    #[inline]
    pub const fn prefix_len(self) -> u8 {
        self.len
    }

    /// The network mask.
    #[inline]
    pub const fn mask(self) -> u32 {
        mask(self.len)
    }

    /// Whether `addr` matches this prefix.
    #[inline]
    pub const fn contains(self, addr: u32) -> bool {
        addr & mask(self.len) == self.addr
    }
}

/// Formats as `ADDR/LEN`.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.addr), self.len)
    }
}

/// The mask with the first `len` bits set, 0 to 32.
#[inline]
const fn mask(len: u8) -> u32 {
    match u32::MAX.checked_shl(32 - len as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Route {
    /// The gateway; 0 if the destination is directly connected.
    pub gw: u32,
    /// The output port.
    pub port: u32,
}

/// The reason a table refused a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// The prefix already has this route.
    Exists(Route),
    /// The table is full.
    Full,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(route) => write!(f, "the prefix has a route to output {} already", route.port),
            Self::Full => f.write_str("the route table is full"),
        }
    }
}

impl std::error::Error for TableError {}

/// The prefix to remove is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no route for exactly this prefix")
    }
}

impl std::error::Error for NotFound {}

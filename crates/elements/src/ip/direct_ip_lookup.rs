// SPDX-License-Identifier: MIT OR Apache-2.0
//! DirectIPLookup: routes packets by any number of routes, through an indexed table.

use super::routes::Routes;
use castanet_element::prelude::*;
use castanet_tables::lpm::CompactTable;

/// Routes packets by any number of routes.
///
/// The destination address annotation is looked up; the longest matching prefix wins (RFC 1812 section 5.2.4.3). A
/// gateway other than '-' becomes the new annotation. Packets without a route are dropped. A lookup takes three loads, or
/// five if a prefix longer than 24 bits begins with the same 24 bits as the address. Lookups among 500,000 routes read
/// 9 MiB. The table holds at most 16,777,216 routes. The handler `table` lists the routes by address.
///
/// # Ports
/// Input 0: IP packets with a destination address annotation. Outputs: as the routes say.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(18.26.4.9)
///     -> routes :: DirectIPLookup(18.26.4.0/24 0, 0.0.0.0/0 18.26.4.1 1);
/// routes [0] -> Discard;
/// routes [1] -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "DirectIPLookup",
    aliases("RangeIPLookup"),
    ports = "1/-",
    processing = "h/h",
    packets = "any/same"
)]
#[class(workers = replicate, drops(NoRoute), handlers, depends = packet)]
#[class(kernel)]
pub struct DirectIpLookup {
    #[engine(handlers_first, element)]
    routes: Routes<CompactTable<true>>,
}

#[handlers]
impl DirectIpLookup {
    /// Removes all routes.
    #[write(button)]
    fn flush(&mut self) {
        self.routes.clear();
    }
}

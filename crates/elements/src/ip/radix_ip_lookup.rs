// SPDX-License-Identifier: MIT OR Apache-2.0
//! RadixIPLookup: routes packets by any number of routes.

use super::routes::Routes;
use castanet_element::prelude::*;
use castanet_tables::lpm::CompactTable;

/// Routes packets by any number of routes.
///
/// The destination address annotation is looked up; the longest matching prefix wins (RFC 1812 section 5.2.4.3). A
/// gateway other than '-' becomes the new annotation. Packets without a route are dropped. The table is of the
/// same kind as that of DirectIPLookup; the handler `table` lists the routes in the order in which they were added.
///
/// # Ports
/// Input 0: IP packets with a destination address annotation. Outputs: as the routes say.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(18.26.4.9)
///     -> routes :: RadixIPLookup(18.26.4.0/24 0, 0.0.0.0/0 18.26.4.1 1);
/// routes [0] -> Discard;
/// routes [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RadixIPLookup", ports = "1/-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, drops(NoRoute), handlers, depends = packet)]
#[class(kernel)]
pub struct RadixIpLookup {
    #[engine(handlers_first, element)]
    routes: Routes<CompactTable<false>>,
}

#[handlers]
impl RadixIpLookup {
    /// Removes all routes.
    #[write(button)]
    fn flush(&mut self) {
        self.routes.clear();
    }
}

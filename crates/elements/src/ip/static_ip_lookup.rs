// SPDX-License-Identifier: MIT OR Apache-2.0
//! StaticIPLookup: routes packets by a few routes that never change.

use super::routes::Routes;
use castanet_element::prelude::*;
use castanet_tables::lpm::StaticTable;

/// Routes packets by a few routes that never change.
///
/// The destination address annotation is looked up; the longest matching prefix wins (RFC 1812 section 5.2.4.3). A
/// gateway other than '-' becomes the new annotation. Packets without a route are dropped. A lookup compares eight
/// routes at a time, which is the fastest way for up to about thirty routes.
///
/// # Ports
/// Input 0: IP packets with a destination address annotation. Outputs: as the routes say.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(18.26.4.9)
///     -> routes :: StaticIPLookup(18.26.4.0/24 0, 0.0.0.0/0 18.26.4.1 1);
/// routes [0] -> Discard;
/// routes [1] -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "StaticIPLookup",
    aliases("LookupIPRoute"),
    ports = "1/-",
    processing = "h/h",
    packets = "any/same"
)]
#[class(workers = replicate, drops(NoRoute), depends = packet)]
#[class(kernel)]
pub struct StaticIpLookup {
    #[engine(element)]
    routes: Routes<StaticTable, false>,
}

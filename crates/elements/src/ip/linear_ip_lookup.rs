// SPDX-License-Identifier: MIT OR Apache-2.0
//! LinearIPLookup: a few routes.

use super::routes::{Args, Routes, route_element};
use castanet_element::prelude::*;
use castanet_tables::lpm::StaticTable;

/// Routes packets by a few routes that handlers may change.
///
/// The destination address annotation is looked up; the longest matching prefix wins (RFC 1812 section 5.2.4.3). A
/// gateway other than '-' becomes the new annotation. Packets without a route are dropped.
/// All routes are compared side by side: good for up to about thirty routes.
///
/// # Ports
/// Input 0: IP packets with a destination address annotation. Outputs: as the routes say.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> SetIPAddress(18.26.4.9)
///     -> routes :: LinearIPLookup(18.26.4.0/24 0, 0.0.0.0/0 18.26.4.1 1);
/// routes [0] -> Discard;
/// routes [1] -> Discard;
/// ```
#[derive(Class)]
#[class(
    name = "LinearIPLookup",
    aliases("SortedIPLookup"),
    ports = "1/-",
    processing = "h/h",
    packets = "ip/ip"
)]
#[class(workers = replicate(first), drops(NoRoute), build, lifecycle)]
#[handler(name = "table", flags = "r$", doc = "The routes: prefix, gateway and output.")]
#[handler(name = "lookup", flags = "r+", doc = "Output and gateway for an address; -1 if there is no route.")]
#[handler(name = "add", flags = "w", doc = "Adds a route; one to the same prefix is an error.")]
#[handler(name = "set", flags = "w", doc = "Adds or replaces a route.")]
#[handler(name = "remove", flags = "w", doc = "Removes the route of exactly this prefix.")]
#[handler(
    name = "ctrl",
    flags = "w",
    doc = "Lines 'add ROUTE', 'set ROUTE', 'remove ROUTE', carried out all or none."
)]
pub struct LinearIpLookup {
    args: Args,
    routes: Routes<StaticTable>,
}

route_element!(LinearIpLookup, StaticTable, "LinearIPLookup");

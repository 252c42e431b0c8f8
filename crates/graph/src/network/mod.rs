// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several routers and the links between them as one configuration ("Programming language optimizations for modular
//! router configurations", ASPLOS 2002, section 7.2).
//!
//! [`combine()`] prefixes the names of each router's elements with the name of the router, and replaces the devices at
//! the two ends of a link by a `RouterLink`. [`uncombine()`] takes one router out again. [`link`] reads the links that
//! users give, and [`router_link`] the configuration string of a `RouterLink`.
//!
//! Names in configuration strings stay as they are. A name is looked up from the scope of its element outward, so a
//! name in router `A` finds the element `A/name` before any other. Only names from outside, such as those of handlers
//! at a control socket, get the prefix `A/`.

pub mod combine;
pub mod link;
pub mod router_link;
pub mod uncombine;

pub use combine::{Component, Order, combine};
pub use link::{End, Link};
pub use router_link::{Port, ROUTER_LINK};
pub use uncombine::{components, uncombine};

/// The member of an archive that lists the names of the combined routers, one a line.
pub const COMPONENT_MAP: &str = "componentmap";
/// The member of an archive that describes `RouterLink` to other tools.
pub const ELEMENT_MAP: &str = "elementmap.xml";

/// Splits the full name of an element of a combined configuration into the name of the router and the name that the
/// element has there. `None` for an element outside all routers, such as a `RouterLink`.
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    name.split_once('/')
}

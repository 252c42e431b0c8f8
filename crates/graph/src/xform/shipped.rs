// SPDX-License-Identifier: MIT OR Apache-2.0
//! The patterns that come with the program.

/// A file of patterns.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// The name of the file in commands and messages.
    pub name: &'static str,
    /// What the patterns do, in a line.
    pub summary: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// All files of patterns that come with the program.
pub const SHIPPED: [Shipped; 2] = [
    Shipped {
        name: "ip",
        summary: "combination elements for the forwarding path of an IP router",
        text: include_str!("patterns/ip.click"),
    },
    Shipped {
        name: "arp",
        summary: "no ARP on links between two routers of one configuration",
        text: include_str!("patterns/arp.click"),
    },
];

impl Shipped {
    /// Returns the file with this name.
    pub fn named(name: &str) -> Option<&'static Shipped> {
        SHIPPED.iter().find(|s| s.name == name)
    }
}

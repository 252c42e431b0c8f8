// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks, one in each file.

mod answers;
mod arp;
mod clock;
mod devices;
mod filters;
mod forwarding;
mod huge_pages;
mod interrupts;
mod limits;
mod mtu;
mod offloads;
mod privileges;
mod programs;
mod rings;
mod rp_filter;
mod xdp;

use super::finding::Finding;
use super::host::Host;
use super::scope::Scope;

/// One check.
pub struct Check {
    /// The name of the check in its findings and for `--only`.
    pub name: &'static str,
    /// One line on the faults that it finds.
    pub about: &'static str,
    /// Returns what it finds.
    pub look: fn(&Host<'_>, &Scope<'_>) -> Result<Vec<Finding>, String>,
}

/// All checks, in order.
pub const CHECKS: [&Check; 16] = [
    &privileges::CHECK,
    &devices::CHECK,
    &filters::CHECK,
    &programs::CHECK,
    &forwarding::CHECK,
    &answers::CHECK,
    &arp::CHECK,
    &rp_filter::CHECK,
    &mtu::CHECK,
    &offloads::CHECK,
    &xdp::CHECK,
    &limits::CHECK,
    &rings::CHECK,
    &interrupts::CHECK,
    &huge_pages::CHECK,
    &clock::CHECK,
];

/// Returns a list of names for a sentence: `a`, `a and b`, `a, b and c`, `a, b and 3 others`.
fn enumerated(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [a, b] => format!("{a} and {b}"),
        [a, b, c] => format!("{a}, {b} and {c}"),
        [a, b, rest @ ..] => format!("{a}, {b} and {} others", rest.len()),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patterns, which say what addresses and ports a new flow gets.

mod search;
mod text;

pub use search::{Cursor, MOST_TRIES};
pub use text::words;

use super::flow::RewriterKind;
use super::tuple::Tuple;
use std::sync::atomic::{AtomicU64, Ordering};

/// The order in which a range is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The packet's own port first, if it is in the range. Then the rest of the range, from a random
    /// position.
    Keep,
    /// `#`: ascending, from where the last search ended.
    Sequential,
    /// `?`: from a random position.
    Random,
}

/// A pattern `SADDR SPORT DADDR DPORT`.
#[derive(Debug)]
pub struct Pattern {
    /// First and last source address; `None` leaves it unchanged.
    addrs: Option<(u32, u32)>,
    /// First and last source port; `None` leaves the port unchanged.
    ports: Option<(u16, u16)>,
    order: Order,
    daddr: Option<u32>,
    dport: Option<u16>,
    /// In sequential order, the position at which the search for the next flow starts. All users of the pattern share
    /// this position.
    next: AtomicU64,
}

impl Pattern {
    /// Whether the destination address is set.
    pub fn sets_destination(&self) -> bool {
        self.daddr.is_some()
    }

    /// Whether the pattern could have made a flow that rewrites `from` to `to`.
    pub fn makes(&self, from: Tuple, to: Tuple, kind: RewriterKind) -> bool {
        let (src, sport) = (to.src(), to.sport());
        let with_ports = kind.has_ports();
        self.addrs.map_or(src == from.src(), |(lo, hi)| (lo..=hi).contains(&src))
            && to.dst() == self.daddr.unwrap_or(from.dst())
            && self.ports.filter(|_| with_ports).map_or(sport == from.sport(), |(lo, hi)| (lo..=hi).contains(&sport))
            // Echo requests have no destination port, whatever the pattern says.
            && (kind == RewriterKind::Ping || to.dport() == self.dport.filter(|_| with_ports).unwrap_or(from.dport()))
    }
    /// Whether another pattern has the same definition.
    pub fn is_like(&self, other: &Pattern) -> bool {
        let all = |p: &Pattern| (p.addrs, p.ports, p.order, p.daddr, p.dport);
        all(self) == all(other)
    }
    /// Continues the sequence of another pattern, if both have the same definition.
    pub fn go_on_from(&self, other: &Pattern) {
        if self.is_like(other) {
            self.next.store(other.next.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

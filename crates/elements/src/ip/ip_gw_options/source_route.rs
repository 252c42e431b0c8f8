// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows source routes (RFC 791 section 3.1, RFC 1812 section 5.3.13.4).

use super::{Filled, IpGwOptions, Way};
use castanet_wire::options::kind;

/// Returns the address that starts at byte `at` of an option; none if the option ends before the address does.
fn address(option: &mut [u8], at: usize) -> Option<&mut [u8; 4]> {
    option.get_mut(at..)?.first_chunk_mut()
}

impl IpGwOptions {
    /// Processes a source route option. If the packet is addressed to this router, its destination becomes the next
    /// address of the route. If the packet is leaving, the address of the interface on which it leaves is recorded.
    pub(super) fn source_route(&self, option: &mut [u8], way: &mut Way) -> Filled {
        // RFC 1122 section 3.2.1.8: a packet has at most one source route.
        if std::mem::replace(&mut way.routed, true) {
            return Filled::Bad(0);
        }
        let &[kind, _, pointer, ..] = &*option else { return Filled::Bad(1) };
        if pointer < 4 {
            return Filled::Bad(2);
        }
        // The pointer of the option counts from 1.
        let mut at = usize::from(pointer) - 1;
        if way.here {
            // If the route has ended, the packet is for this router and stays unchanged. The route may name several of
            // the router's addresses in a row.
            let mut filled = Filled::Unchanged;
            while at < option.len() && self.is_mine(way.dst) {
                let Some(place) = address(option, at) else { return Filled::Bad(2) };
                way.dst = std::mem::replace(place, self.args.myaddr.octets());
                at += 4;
                filled = Filled::Changed;
            }
            // The pointer fits a byte, because an option has at most 40 bytes.
            option[2] = u8::try_from(at + 1).unwrap_or(u8::MAX);
            return filled;
        }
        // Get the address that this router recorded when the packet arrived. Addresses start at byte 3 of the option.
        let recorded = at.checked_sub(4).filter(|at| *at >= 3).and_then(|at| address(option, at));
        let Some(last) = recorded.filter(|a| self.is_mine(**a)) else { return Filled::Unchanged };
        if kind == kind::STRICT_SOURCE_ROUTE && way.hop != [0; 4] && way.hop != way.dst {
            return Filled::Failed;
        }
        if *last == self.args.myaddr.octets() {
            return Filled::Unchanged;
        }
        *last = self.args.myaddr.octets();
        Filled::Changed
    }
}

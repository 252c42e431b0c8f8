// SPDX-License-Identifier: MIT OR Apache-2.0
//! Following source routes (RFC 791 section 3.1, RFC 1812 section 5.3.13.4).

use super::{Filled, IpGwOptions, Way};
use castanet_wire::options::kind;

/// The address at an index.
fn address(option: &mut [u8], at: usize) -> Option<&mut [u8; 4]> {
    option.get_mut(at..)?.first_chunk_mut()
}

impl IpGwOptions {
    /// Goes on along a source route that has come to this router, and writes the address by which the packet leaves.
    pub(super) fn source_route(&self, option: &mut [u8], way: &mut Way) -> Filled {
        // RFC 1122 section 3.2.1.8: there is at most one.
        if std::mem::replace(&mut way.routed, true) {
            return Filled::Bad(0);
        }
        let &[kind, _, pointer, ..] = &*option else { return Filled::Bad(1) };
        if pointer < 4 {
            return Filled::Bad(2);
        }
        // The pointer counts from 1.
        let mut at = usize::from(pointer) - 1;
        if way.here {
            // One that is at its end is for this router. Several of its addresses may follow each other.
            let mut filled = Filled::Unchanged;
            while at < option.len() && self.is_mine(way.dst) {
                let Some(place) = address(option, at) else { return Filled::Bad(2) };
                way.dst = std::mem::replace(place, self.args.myaddr.octets());
                at += 4;
                filled = Filled::Changed;
            }
            // An option is 40 bytes long at most.
            option[2] = u8::try_from(at + 1).unwrap_or(u8::MAX);
            return filled;
        }
        // The address that this router recorded when the packet came here; 3 bytes stand before the addresses.
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

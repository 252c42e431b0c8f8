// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments that come too early.

use super::network::End;
use super::states::{ISS, happen};
use super::tcp;
use castanet_prolac::load::Extensions;

/// The number of places is bounded, so a segment that comes early several times must not take several of them.
#[test]
fn what_is_held_is_not_held_twice() {
    for extensions in [Extensions::none(), Extensions::All] {
        let program = tcp(&extensions);
        let mut end = End::new(&program, ISS, [1000, 80], Vec::new());
        for event in ["listen", "SYN 0", "ACK 1 1"] {
            happen(&mut end, event);
        }
        for _ in 0..100 {
            for early in ["ACK 11 1 +5", "ACK 13 1 +2", "FIN+ACK 21 1 +5", "ACK 25 1 +1"] {
                happen(&mut end, early);
            }
        }
        assert_eq!(end.field("held-count"), 2, "{extensions:?}");
        // What reaches beyond a held segment is new, and so is a FIN.
        for more in ["ACK 14 1 +3", "ACK 20 1 +1", "FIN+ACK 26 1"] {
            happen(&mut end, more);
        }
        assert_eq!(end.field("held-count"), 4, "{extensions:?}");
        for (event, delivered) in [("ACK 6 1 +5", 0), ("ACK 1 1 +5", 16), ("ACK 17 1 +3", 25)] {
            happen(&mut end, event);
            assert_eq!(end.data.borrow().waiting.len(), delivered, "{extensions:?} {event}");
        }
        assert_eq!(end.field("held-count"), 0, "{extensions:?}");
        assert!(end.data.borrow().end_of_data, "{extensions:?}");
    }
}

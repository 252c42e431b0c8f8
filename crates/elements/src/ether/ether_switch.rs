// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherSwitch: a learning bridge.

pub mod relay;
mod table;
#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use relay::Relay;

/// Relays Ethernet frames between its ports, as a learning bridge does (IEEE 802.1D-1998 section 7).
///
/// The source address of each frame tells on which port that station is. A frame to a station that is known leaves on its
/// port only, and is dropped when it came from there; any other frame, and any to a group, leaves on all ports but the
/// one it came from, on the highest port first. An address is forgotten when the timestamp of a frame to it is more than TIMEOUT later than that of
/// the last frame from it, so frames without timestamps do not let anything grow old. With a TIMEOUT of 0 nothing is
/// learnt. At most 16384 addresses are known; new ones take the place of those not heard of for longest.
///
/// Without a spanning tree (EtherSpanTree) there must be no cycle of bridges.
///
/// # Ports
/// Inputs 0, 1, ...: Ethernet frames from each port. Outputs, as many: frames to each port.
///
/// # Example
/// ```click
/// s :: EtherSwitch;
/// InfiniteSource(DATA \<020000000002 020000000001 0800>, LIMIT 3) -> [0] s [0] -> a :: Counter -> Discard;
/// InfiniteSource(DATA \<020000000001 020000000002 0800>, LIMIT 3) -> [1] s [1] -> b :: Counter -> Discard;
/// Idle -> [2] s [2] -> c :: Counter -> Discard;
/// DriverManager(wait 1, print s.table, print $(a.count) $(b.count) $(c.count), stop);
/// ```
#[derive(Class)]
#[class(books(makes))]
#[class(name = "EtherSwitch", ports = "2-/=", processing = "h/h", flow = "#/[^#]", packets = "ether/ether")]
#[class(takes_state = "the addresses")]
#[class(workers = share, copies, descending, drops(TooShort, SameSegment, Suppressed, NoBuffer))]
pub struct EtherSwitch {
    #[engine]
    relay: Relay,
}

impl Element for EtherSwitch {
    #[inline]
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.relay.push(port, batch, cx);
    }
    #[inline]
    fn push_one(&mut self, port: usize, p: Packet, cx: &mut Cx<'_>) {
        self.relay.push_one(port, p, cx);
    }
}

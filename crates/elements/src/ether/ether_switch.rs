// SPDX-License-Identifier: MIT OR Apache-2.0
//! EtherSwitch: a learning bridge.

mod copies;
mod kernel;
pub mod relay;
mod table;
#[cfg(test)]
mod tests;

use castanet_element::prelude::*;
use relay::Relay;

/// Relays Ethernet frames between its ports, as a learning bridge does (IEEE 802.1D-1998 section 7).
///
/// The switch learns the port of each station from the source addresses of frames. A frame to a known station leaves
/// only on the port of that station, and is dropped if it came from that port. All other frames, including those to
/// group addresses, leave on all ports but the one they came from, on the highest port first. A station counts as
/// unknown if it has sent no frame for TIMEOUT. The time is measured by the timestamps of frames, so addresses do not
/// expire if frames have no timestamps. With a TIMEOUT of 0 nothing is learnt. The switch keeps at most 16384
/// addresses. If there is no free entry for a new address, that address replaces one that has not been heard for a long
/// time.
///
/// Without a spanning tree (EtherSpanTree), bridges must not form a cycle.
///
/// # Ports
/// Inputs 0, 1, ...: Ethernet frames from each port. Outputs 0, 1, ...: frames to each port.
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
#[class(ledger(makes))]
#[class(name = "EtherSwitch", ports = "2-/=", processing = "h/h", flow = "#/[^#]", packets = "ether/same")]
#[class(takes_state = "the addresses")]
#[class(workers = share, kernel, copies, descending, drops(TooShort, SameSegment, Suppressed, NoBuffer))]
pub struct EtherSwitch {
    #[engine(element)]
    relay: Relay,
}

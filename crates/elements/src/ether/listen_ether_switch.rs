// SPDX-License-Identifier: MIT OR Apache-2.0
//! ListenEtherSwitch: a learning bridge with an additional output, which gets every frame.

use super::ether_switch::relay::Relay;
use castanet_element::prelude::*;

/// Relays Ethernet frames as EtherSwitch does, and sends a copy of every frame to an additional output.
///
/// Frames that EtherSwitch would drop leave only on the additional output. Packets too short for an Ethernet header are
/// dropped.
///
/// # Ports
/// Inputs 0, 1, ...: Ethernet frames from each port. Outputs 0, 1, ...: frames to each port. The last output:
/// every frame.
///
/// # Example
/// ```click
/// s :: ListenEtherSwitch;
/// InfiniteSource(DATA \<020000000002 020000000001 0800>, LIMIT 3) -> [0] s [0] -> Discard;
/// InfiniteSource(DATA \<020000000001 020000000002 0800>, LIMIT 3) -> [1] s [1] -> Discard;
/// s [2] -> all :: Counter -> Discard;
/// DriverManager(wait 1, print all.count, stop);
/// ```
#[derive(Class)]
#[class(ledger(makes))]
#[class(
    name = "ListenEtherSwitch",
    ports = "-/=+",
    processing = "h/h",
    flow = "#/[^#]",
    packets = "ether/same"
)]
#[class(takes_state = "the addresses")]
#[class(workers = share, copies, descending, drops(TooShort, NoBuffer))]
pub struct ListenEtherSwitch {
    #[engine(element)]
    relay: Relay,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn the_last_output_sees_all() {
        let frame = |dst: u8, src: u8| packet(&[2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0]);
        let mut kit = Kit::<ListenEtherSwitch>::with_ports("", 2, 3).unwrap();
        let ports = |out: Vec<(usize, Packet)>| out.into_iter().map(|o| o.0).collect::<Vec<_>>();
        assert_eq!(ports(kit.push(0, [frame(9, 1)])), [1, 2], "unknown");
        assert_eq!(ports(kit.push(1, [frame(1, 9)])), [0, 2], "known");
        assert_eq!(ports(kit.push(0, [frame(1, 7)])), [2], "where it came from");
        assert_eq!(kit.read("table").unwrap().lines().count(), 3);
        assert!(kit.push(0, [packet(b"short")]).is_empty());
        // With one port, frames leave only on the last output.
        let mut kit = Kit::<ListenEtherSwitch>::with_ports("", 1, 2).unwrap();
        assert_eq!(ports(kit.push(0, [frame(9, 1), frame(9, 2)])), [1, 1]);
        kit.write("timeout", "5").unwrap();
        assert_eq!(kit.read("timeout").unwrap(), "5");
    }
}

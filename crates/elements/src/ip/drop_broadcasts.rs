// SPDX-License-Identifier: MIT OR Apache-2.0
//! DropBroadcasts: drops packets that were broadcast on the link.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Drops packets that arrived as link-level broadcasts or multicasts.
///
/// A router must not forward such packets (RFC 1812 section 5.3.4). They are recognised by their packet type
/// annotation; no address is read.
///
/// # Ports
/// Input 0: packets. Output 0: all packets except broadcasts and multicasts. Output 1 (optional): broadcasts and
/// multicasts.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> drop :: DropBroadcasts -> Discard;
/// drop [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "DropBroadcasts", ports = "1/1-2", processing = "a/ah", packets = "any/same")]
#[class(workers = replicate, drops(LinkBroadcast), depends = packet)]
#[class(kernel)]
pub struct DropBroadcasts {
    /// Packets that arrived as link-level broadcasts or multicasts.
    #[count(unit = "packets")]
    drops: Count,
}

impl Action for DropBroadcasts {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if matches!(p.packet_type(), PacketType::Broadcast | PacketType::Multicast) {
            self.drops.add(1);
            return cx.out_or(1, Reason::LinkBroadcast);
        }
        Verdict::Next
    }
}

impl InKernel for DropBroadcasts {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let kind = code.state().packet_type;
        if kind == PacketType::Broadcast as u8 || kind == PacketType::Multicast as u8 {
            code.count("drops");
            code.next_or(1, Reason::LinkBroadcast as u16);
        } else {
            code.next(0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn by_packet_type() {
        use PacketType::{Broadcast, Host, Loopback, Multicast, OtherHost, Outgoing};
        for outputs in [1, 2] {
            let mut kit = Kit::<DropBroadcasts>::with_ports("", 1, outputs).unwrap();
            let mut seen = [0; 2];
            for kind in [Host, Broadcast, Multicast, OtherHost, Outgoing, Loopback] {
                let mut p = packet(&[0xff; 14]);
                p.set_packet_type(kind);
                kit.act([p]).iter().for_each(|(port, _)| seen[*port] += 1);
            }
            assert_eq!(kit.read("drops").unwrap(), "2");
            let want = if outputs == 2 { ([4, 2], 0) } else { ([4, 0], 2) };
            assert_eq!((seen, kit.dropped(Reason::LinkBroadcast)), want);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetPacketType: sets the packet type annotation, which says how a packet was addressed at link level.

use castanet_element::prelude::*;

/// Sets the packet type annotation.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with the new packet type.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> SetPacketType(BROADCAST) -> DropBroadcasts -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetPacketType", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, depends = packet)]
pub struct SetPacketType {
    args: Args,
}

/// Arguments of SetPacketType.
#[derive(Args)]
pub struct Args {
    /// The packet type: `HOST`, `BROADCAST`, `MULTICAST`, `OTHERHOST`, `OUTGOING` or `LOOPBACK`.
    #[arg(name = "TYPE")]
    kind: PacketTypeName,
}

/// A packet type, given by name.
#[derive(Clone, Copy, Debug)]
struct PacketTypeName(PacketType);

impl ArgValue for PacketTypeName {
    const TYPE: &'static str = "packet type";
    const WORD: bool = true;
    fn parse(text: &str, _: &ArgCx<'_>) -> Result<PacketTypeName, ValueError> {
        Ok(PacketTypeName(match text.to_ascii_uppercase().as_str() {
            "HOST" => PacketType::Host,
            "BROADCAST" => PacketType::Broadcast,
            "MULTICAST" => PacketType::Multicast,
            "OTHERHOST" => PacketType::OtherHost,
            "OUTGOING" => PacketType::Outgoing,
            "LOOPBACK" => PacketType::Loopback,
            "FASTROUTE" => PacketType::FastRoute,
            _ => {
                return Err(
                    "expected HOST, BROADCAST, MULTICAST, OTHERHOST, OUTGOING, LOOPBACK or FASTROUTE".into(),
                );
            }
        }))
    }
}

impl Action for SetPacketType {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        p.set_packet_type(self.args.kind.0);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_type() {
        use PacketType::{Broadcast, Host, Loopback, Multicast, OtherHost, Outgoing};
        for (word, kind) in [
            ("HOST", Host),
            ("BROADCAST", Broadcast),
            ("multicast", Multicast),
            ("OTHERHOST", OtherHost),
            ("OUTGOING", Outgoing),
            ("LOOPBACK", Loopback),
        ] {
            let mut kit = Kit::<SetPacketType>::new(word).unwrap();
            for before in [Host, Broadcast] {
                let mut p = packet(b"");
                p.set_packet_type(before);
                assert_eq!(kit.act([p])[0].1.packet_type(), kind);
            }
        }
        assert!(Kit::<SetPacketType>::new("").is_err() && Kit::<SetPacketType>::new("NONE").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! MarkIPCE: marks packets CE (congestion experienced) instead of dropping them.

use super::ip_proto::lower_tos;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Test};
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;

/// Marks packets CE, congestion experienced (RFC 3168 section 5).
///
/// Use it where packets would otherwise be dropped as a sign of congestion, for example behind the second output of
/// RED. ECN-capable packets are marked, and their header checksum is updated incrementally. Other packets are dropped
/// or, with `FORCE`, marked too. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the marked packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> SetIPECN(ect2) -> MarkIPCE -> Discard;
/// ```
#[derive(Class)]
#[class(name = "MarkIPCE", ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(drops(NotEcnCapable, NoIpHeader), depends = packet)]
#[class(kernel)]
pub struct MarkIpCe {
    args: Args,
    /// Packets dropped because they were not ECN-capable.
    #[count(unit = "packets")]
    drops: Count,
}

/// Arguments of MarkIPCE.
#[derive(Args)]
pub struct Args {
    /// Whether packets that are not ECN-capable are marked too.
    #[arg(default = false)]
    force: bool,
}

impl Action for MarkIpCe {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let h = p.network_mut().and_then(Ipv4Header::from_prefix_mut);
        let Some(h) = h else { return Verdict::Drop(Reason::NoIpHeader) };
        if h.ecn() == 0 && !self.args.force {
            self.drops.add(1);
            return Verdict::Drop(Reason::NotEcnCapable);
        }
        h.rewrite_tos(h.tos | 3);
        Verdict::Next
    }
}

impl InKernel for MarkIpCe {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        lower_tos(code, |code, tos| {
            if !self.args.force {
                let capable = code.label();
                code.branch(tos, Test::Common, 3u32, capable);
                code.count("drops");
                code.drop(Reason::NotEcnCapable as u16);
                code.bind(capable);
            }
            code.compute(Arithmetic::Or, tos, 3u32)
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn every_type_of_service() {
        for force in [false, true] {
            let mut kit = Kit::<MarkIpCe>::new(&force.to_string()).unwrap();
            for tos in 0..=255u8 {
                let mut h = Ipv4Header::new(17, 0x0100_0001, 0x0200_0002, 20, 64);
                h.tos = tos;
                h.set_checksum20();
                let mut p = packet(h.as_array());
                p.set_network_header(0, 20);
                let out = kit.act([p]);
                assert_eq!(out.len(), usize::from(force || tos & 3 != 0), "{tos}");
                for (_, p) in out {
                    let (h, _) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
                    assert_eq!((h.dscp.value(), h.ecn.value()), (tos >> 2, 3));
                    assert_eq!(h.calc_header_checksum(), h.header_checksum, "{tos}");
                }
            }
            let drops = if force { 0 } else { 64 };
            assert_eq!(
                (kit.dropped(Reason::NotEcnCapable), kit.read("drops").unwrap()),
                (drops, drops.to_string())
            );
            assert!(kit.act([packet(&[0x45; 40])]).is_empty());
            assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
        }
        assert!(Kit::<MarkIpCe>::new("2").is_err());
    }
}

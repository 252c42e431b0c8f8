// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetIPECN: sets the ECN (explicit congestion notification) bits.

use super::ip_proto::{Ecn, lower_tos};
use castanet_element::kernel::{Arithmetic, Code, Lowered};
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;

/// Sets the ECN bits of IPv4 headers (RFC 3168 section 5).
///
/// The differentiated services code point stays unchanged, and the header checksum is updated incrementally (RFC 1624).
/// The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with the new ECN bits.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> SetIPECN(ect2) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetIPECN", ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, drops(NoIpHeader), depends = packet)]
#[class(kernel)]
pub struct SetIpEcn {
    args: Args,
}

/// Arguments of SetIPECN.
#[derive(Args)]
pub struct Args {
    /// The ECN bits: `no`, `ect1` (01), `ect2` (10), `ce`, or a number from 0 to 3.
    #[arg(handler = "rw")]
    ecn: Ecn,
}

impl Action for SetIpEcn {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let h = p.network_mut().and_then(Ipv4Header::from_prefix_mut);
        let Some(h) = h else { return Verdict::Drop(Reason::NoIpHeader) };
        h.rewrite_tos(h.tos & !3 | self.args.ecn.0);
        Verdict::Next
    }
}

impl InKernel for SetIpEcn {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        lower_tos(code, |code, tos| {
            let dscp = code.compute(Arithmetic::And, tos, 0xfcu32);
            code.compute(Arithmetic::Or, dscp, u32::from(self.args.ecn.0))
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
    fn every_name_and_type_of_service() {
        let table =
            [("no", 0), ("0", 0), ("ect1", 1), ("ECT(1)", 1), ("2", 2), ("ECT(0)", 2), ("ce", 3), ("CE", 3)];
        let mut kit = Kit::<SetIpEcn>::new("no").unwrap();
        for (name, bits) in table {
            kit.write("ecn", name).unwrap();
            assert_eq!(kit.read("ecn").unwrap(), ["no", "ect1", "ect2", "ce"][usize::from(bits)]);
            for tos in 0..=255u8 {
                let mut h = Ipv4Header::new(17, 0x0100_0001, 0x0200_0002, 20, 64);
                h.tos = tos;
                h.set_checksum20();
                let mut p = packet(h.as_array());
                p.set_network_header(0, 20);
                let out = kit.act([p]);
                let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
                assert_eq!((h.dscp.value(), h.ecn.value()), (tos >> 2, bits));
                assert_eq!(h.calc_header_checksum(), h.header_checksum, "{tos}");
            }
        }
        assert!(kit.write("ecn", "4").is_err() && Kit::<SetIpEcn>::new("").is_err());
        assert!(kit.act([packet(&[0x45; 40])]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 1);
    }
}

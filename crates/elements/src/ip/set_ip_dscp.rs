// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetIPDSCP: sets the differentiated services code point.

use super::ip_proto::lower_tos;
use castanet_element::kernel::{Arithmetic, Code, Lowered};
use castanet_element::prelude::*;
use castanet_spec::ValueKind;
use castanet_wire::Ipv4Header;

/// Sets the differentiated services code point (RFC 2474 section 3).
///
/// The ECN bits stay unchanged, and the header checksum is updated incrementally (RFC 1624). The network header must be
/// marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with the new code point.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> SetIPDSCP(46) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetIPDSCP", ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(reconfigure = keeps, config_follows, drops(NoIpHeader), depends = packet)]
#[class(kernel)]
pub struct SetIpDscp {
    args: Args,
}

/// Arguments of SetIPDSCP.
#[derive(Args)]
pub struct Args {
    /// The code point, 0 to 63.
    #[arg(handler = "rw")]
    dscp: Dscp,
}

/// A differentiated services code point, 0 to 63.
#[derive(Clone, Copy, Debug)]
struct Dscp(u8);

impl ArgValue for Dscp {
    const TYPE: &'static str = "uint";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Dscp, ValueError> {
        let n = u32::parse(text, cx)?;
        match u8::try_from(n) {
            Ok(n) if n < 64 => Ok(Dscp(n)),
            _ => Err(ValueError::out_of_range(n, 0, 63)),
        }
    }
}

impl Show for Dscp {
    const KIND: ValueKind = ValueKind::Gauge;
    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl Action for SetIpDscp {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let h = p.network_mut().and_then(Ipv4Header::from_prefix_mut);
        let Some(h) = h else { return Verdict::Drop(Reason::NoIpHeader) };
        h.rewrite_tos(self.args.dscp.0 << 2 | h.ecn());
        Verdict::Next
    }
}

impl InKernel for SetIpDscp {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        lower_tos(code, |code, tos| {
            let ecn = code.compute(Arithmetic::And, tos, 3u32);
            code.compute(Arithmetic::Or, ecn, u32::from(self.args.dscp.0) << 2)
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn with_tos(tos: u8) -> Packet {
        let mut h = Ipv4Header::new(17, 0x0100_0001, 0x0200_0002, 20, 64);
        h.tos = tos;
        h.set_checksum20();
        let mut p = packet(h.as_array());
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn every_type_of_service() {
        for dscp in [0, 10, 46, 63] {
            let mut kit = Kit::<SetIpDscp>::new(&dscp.to_string()).unwrap();
            for (tos, (_, p)) in (0..=255).zip(kit.act((0..=255).map(with_tos))) {
                let (h, _) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
                assert_eq!((h.dscp.value(), h.ecn.value()), (dscp, tos & 3));
                assert_eq!(h.calc_header_checksum(), h.header_checksum, "{tos}");
            }
        }
    }

    #[test]
    fn handlers_errors_and_short_packets() {
        let mut kit = Kit::<SetIpDscp>::new("10").unwrap();
        kit.write("dscp", "20").unwrap();
        assert_eq!(kit.read("dscp").unwrap(), "20");
        assert!(kit.write("dscp", "64").is_err() && Kit::<SetIpDscp>::new("64").is_err());
        for n in 0..20 {
            let mut p = packet(&vec![0x45; n]);
            p.set_network_header(0, 20);
            assert!(kit.act([p]).is_empty());
        }
        assert!(kit.act([packet(&[0x45; 40])]).is_empty());
        assert_eq!(kit.dropped(Reason::NoIpHeader), 21);
    }
}

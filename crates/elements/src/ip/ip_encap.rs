// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPEncap: puts an IPv4 header before packets.

use super::ip_proto::IpProto;
use super::numbers::Numbers;
use super::udp_ip_encap::Destination;
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;
use std::net::Ipv4Addr;

/// Puts an IPv4 header before packets.
///
/// With protocol `ipip`, the input packets are IP packets, which go through a tunnel (RFC 2003). The IP identification
/// counts up from an unpredictable number (from 0 with `--seed`). Replicas on several workers use different
/// identifications. The network header is marked, and the destination address annotation is set. A packet that would
/// become longer than IPv4 allows is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: IP packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> IPEncap(ipip, 10.0.0.1, 10.0.0.2, DSCP 10)
///     -> IPPrint(out) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPEncap", offload = none, ports = "1/1", processing = "a/a", packets = "any/ip", workers = replicate)]
#[class(reconfigure = keeps, config_follows, takes_state = "the next IP identification")]
#[class(drops(TooLong), build, lifecycle, depends = order)]
pub struct IpEncap {
    args: Args,
    /// The header that all packets start from. Length, identification, destination and checksum are set for each
    /// packet.
    header: Ipv4Header,
    numbers: Numbers,
}

/// Arguments of IPEncap.
#[derive(Args)]
pub struct Args {
    /// The protocol field of the header, by name or number.
    proto: IpProto,
    /// Source address.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Destination address, or DST_ANNO for the destination address annotation.
    #[arg(handler = "rw")]
    dst: Destination,
    /// The type of service byte, in place of DSCP, ECT and CE; -1 if it is not given.
    #[arg(keyword, default = -1)]
    tos: i32,
    /// Time to live.
    #[arg(keyword, default = 250)]
    ttl: u8,
    /// The differentiated services code point, 0 to 63; -1 if it is not given.
    #[arg(keyword, default = -1)]
    dscp: i32,
    /// Whether packets are marked as ECN-capable: true or 1 for ECT(1), 2 for ECT(0).
    #[arg(keyword, default = Ect(None), show = "false")]
    ect: Ect,
    /// Whether packets are marked CE (congestion experienced).
    #[arg(keyword, show = "false")]
    ce: Option<bool>,
    /// Whether the "do not fragment" flag is set.
    #[arg(keyword, default = false)]
    df: bool,
}

/// The ECN bits that the argument ECT gives; none if ECT is not given.
#[derive(Clone, Copy, Debug)]
struct Ect(Option<u8>);

impl ArgValue for Ect {
    const TYPE: &'static str = "bool or 2";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Ect, ValueError> {
        if text == "2" { Ok(Ect(Some(2))) } else { bool::parse(text, cx).map(|b| Ect(Some(u8::from(b)))) }
    }
}

impl Args {
    /// Returns the type of service byte: TOS if it is given, otherwise a byte made of DSCP, ECT and CE.
    fn tos(&self) -> Result<u8, ValueError> {
        let (ect, ce) = (self.ect.0, self.ce.is_some());
        if self.tos >= 0 && (self.dscp >= 0 || ect.is_some() || ce) {
            return Err("TOS: cannot be given together with DSCP, ECT or CE".into());
        }
        if ect.is_some() && ce {
            return Err("ECT: cannot be given together with CE".into());
        }
        let below = |n: i32, max: u8, name: &str| match u8::try_from(n) {
            Ok(n) if n <= max => Ok(n),
            _ if n == -1 => Ok(0),
            _ => Err(ValueError::out_of_range(n, 0, i32::from(max)).under(name)),
        };
        let tos = below(self.tos, 255, "TOS")?;
        let ecn = if self.ce == Some(true) { 3 } else { ect.unwrap_or(0) };
        Ok(tos | below(self.dscp, 63, "DSCP")? << 2 | ecn)
    }
}

impl Build for IpEncap {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let mut header = Ipv4Header::new(args.proto.0, args.src.to_bits(), 0, 0, args.ttl);
        header.tos = args.tos()?;
        header.set_fragment(0, false, args.df);
        Ok(IpEncap { args, header, numbers: Numbers::new(cx, 0) })
    }
}

impl Lifecycle for IpEncap {
    fn changed(&mut self, _: &str, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.header.src.set(self.args.src.to_bits());
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers.go_on_from(old.numbers);
        Ok(())
    }
}

impl Action for IpEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Ok(total) = u16::try_from(p.len() + Ipv4Header::LEN) else {
            return Verdict::Drop(Reason::TooLong);
        };
        let dst = self.args.dst.0.map_or(p.dst_ip(), Ipv4Addr::to_bits);
        let mut header = self.header;
        header.total_len.set(total);
        header.id.set(self.numbers.id());
        header.dst.set(dst);
        header.set_checksum20();
        let Some(space) = p.push_header() else { return Verdict::Drop(Reason::TooLong) };
        *space = header.to_bytes();
        self.numbers.advance();
        p.set_network_header(0, Ipv4Header::LEN);
        p.set_dst_ip(dst);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packets_of_every_length() {
        let mut kit = Kit::<IpEncap>::new("ipip, 10.0.0.1, 10.0.0.2").unwrap();
        for len in 0..70u8 {
            let data: Vec<u8> = (0..len).collect();
            let out = kit.act([packet(&data)]);
            let p = &out[0].1;
            let (h, rest) = etherparse::Ipv4Header::from_slice(p.data()).unwrap();
            assert_eq!((h.source, h.destination, h.protocol.0), ([10, 0, 0, 1], [10, 0, 0, 2], 4));
            assert_eq!((h.identification, h.time_to_live, h.dont_fragment), (u16::from(len), 250, false));
            assert_eq!((usize::from(h.total_len), h.calc_header_checksum()), (p.len(), h.header_checksum));
            assert_eq!((rest, h.dscp.value(), h.ecn.value()), (&data[..], 0, 0));
            assert_eq!(
                (p.dst_ip(), p.network_offset(), p.network_header_length()),
                (0x0a000002, Some(0), 20)
            );
        }
    }

    #[test]
    fn type_of_service() {
        for (config, tos, fragment) in [
            ("TOS 0xff", 0xff, 0),
            ("TOS 0, DF true", 0, 0x40),
            ("DSCP 63", 0xfc, 0),
            ("DSCP 10, ECT true", 0x29, 0),
            ("ECT 2", 2, 0),
            ("ECT false", 0, 0),
            ("CE true, DSCP 1", 7, 0),
            ("CE false", 0, 0),
        ] {
            let mut kit = Kit::<IpEncap>::new(&format!("47, 1.0.0.1, 2.0.0.2, TTL 9, {config}")).unwrap();
            let out = kit.act([packet(b"x")]);
            let (h, _) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
            assert_eq!(out[0].1.data()[..10], [0x45, tos, 0, 21, 0, 0, fragment, 0, 9, 47], "{config}");
            assert_eq!(h.calc_header_checksum(), h.header_checksum);
        }
        for (config, error) in [
            ("TOS 1, DSCP 1", "TOS: cannot be given together with DSCP, ECT or CE"),
            ("TOS 1, CE false", "TOS: cannot be given together with DSCP, ECT or CE"),
            ("ECT 1, CE true", "ECT: cannot be given together with CE"),
            ("TOS 256", "TOS: out of range, bound 255"),
            ("DSCP 64", "DSCP: out of range, bound 63"),
            ("DSCP -2", "DSCP: out of range, bound 0"),
            ("ECT 3", "ECT: syntax error, expected 'true' or 'false'"),
        ] {
            let kit = Kit::<IpEncap>::new(&format!("udp, 1.0.0.1, 2.0.0.2, {config}"));
            assert_eq!(kit.err().unwrap(), [error], "{config}");
        }
        let bad = Kit::<IpEncap>::new("nosuch, 1.0.0.1, 2.0.0.2").err().unwrap();
        assert_eq!(bad, ["PROTO: 'nosuch' is not an IP protocol"]);
    }

    #[test]
    fn annotation_and_handlers() {
        let mut kit = Kit::<IpEncap>::new("udp, 1.0.0.1, DST_ANNO").unwrap();
        let mut p = packet(b"x");
        p.set_dst_ip(0x0708090a);
        assert_eq!(kit.act([p])[0].1.data()[12..20], [1, 0, 0, 1, 7, 8, 9, 10]);
        for (handler, value) in [("src", "3.0.0.3"), ("dst", "4.0.0.4")] {
            kit.write(handler, value).unwrap();
            assert_eq!(kit.read(handler).unwrap(), value);
        }
        assert_eq!(kit.act([packet(b"x")])[0].1.data()[12..20], [3, 0, 0, 3, 4, 0, 0, 4]);
        assert!(kit.write("src", "x").is_err());
    }

    #[test]
    fn too_long() {
        let mut kit = Kit::<IpEncap>::new("udp, 1.0.0.1, 2.0.0.2").unwrap();
        assert_eq!(kit.act([Packet::with_headroom(20, 65_515).unwrap()])[0].1.data()[2..4], [255, 255]);
        assert!(kit.act([Packet::with_headroom(20, 65_516).unwrap()]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 1);
    }
}

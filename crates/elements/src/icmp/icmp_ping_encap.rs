// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPPingEncap: puts packets into echo requests.

use super::encap::{Message, word};
use crate::ip::numbers::{Identifier, Numbers};
use castanet_element::prelude::*;
use castanet_wire::icmp::kind;
use std::net::Ipv4Addr;

/// Puts ICMP echo request and IPv4 headers before packets (RFC 792).
///
/// Sequence numbers count up from 1. The IP identification counts up with them, from an unpredictable number (from 1
/// with `--seed`). Replicas on several workers use different sequence numbers and identifications. The time to live is
/// 255. The network header is marked, and the destination address annotation is set. A packet that would become longer
/// than IPv4 allows is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: echo requests.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 56, LIMIT 3, STOP true) -> ICMPPingEncap(10.0.0.1, 10.0.0.2) -> IPPrint(ping) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ICMPPingEncap", offload = none, ports = "1/1", processing = "a/a", packets = "any/ip", workers = replicate)]
#[class(takes_state = "the next number, an identifier that is not named")]
#[class(drops(TooLong), build, lifecycle, depends = order)]
pub struct IcmpPingEncap {
    args: Args,
    numbers: Numbers,
    identifier: Identifier,
}

/// Arguments of ICMPPingEncap.
#[derive(Args)]
pub struct Args {
    /// Source address.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: Ipv4Addr,
    /// Identifier of the requests; by default it is unpredictable, or 0 with `--seed`.
    #[arg(keyword)]
    identifier: Option<u16>,
}

impl Build for IcmpPingEncap {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let identifier = Identifier::new(args.identifier, cx);
        Ok(IcmpPingEncap { args, numbers: Numbers::new(cx, 1), identifier })
    }
}

impl Lifecycle for IcmpPingEncap {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers.go_on_from(old.numbers);
        self.identifier.go_on_from(old.identifier);
        Ok(())
    }
}

impl Action for IcmpPingEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let (Args { src, dst, .. }, id) = (&self.args, self.numbers.id());
        let word = word(kind::ECHO, self.identifier.get(), self.numbers.peek());
        if !(Message { src: *src, dst: *dst, kind: (kind::ECHO, 0), word, id }).wrap(p) {
            return Verdict::Drop(Reason::TooLong);
        }
        self.numbers.advance();
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use etherparse::{Icmpv4Slice, Icmpv4Type, Ipv4Slice};

    #[test]
    fn requests_of_every_length() {
        let mut kit = Kit::<IcmpPingEncap>::new("10.0.0.1, 10.0.0.2, IDENTIFIER 77").unwrap();
        for n in 0..70u8 {
            let data: Vec<u8> = (0..n).map(|i| i.wrapping_mul(91)).collect();
            let out = kit.act([packet(&data)]);
            let p = &out[0].1;
            let ip = Ipv4Slice::from_slice(p.data()).unwrap();
            let h = ip.header().to_header();
            assert_eq!((h.source, h.destination, h.time_to_live), ([10, 0, 0, 1], [10, 0, 0, 2], 255));
            assert_eq!((h.identification, h.dont_fragment), (u16::from(n) + 1, false));
            assert_eq!(h.calc_header_checksum(), h.header_checksum);
            let m = Icmpv4Slice::from_slice(ip.payload().payload).unwrap();
            let Icmpv4Type::EchoRequest(e) = m.icmp_type() else { panic!("{:?}", m.icmp_type()) };
            assert_eq!((e.id, e.seq, m.payload()), (77, u16::from(n) + 1, &data[..]));
            assert_eq!(m.icmp_type().calc_checksum(m.payload()), m.checksum(), "{n}");
            assert_eq!((p.dst_ip(), p.network_header_length()), (0x0a00_0002, 20));
        }
        for (handler, value) in [("src", "3.0.0.3"), ("dst", "4.0.0.4")] {
            kit.write(handler, value).unwrap();
            assert_eq!(kit.read(handler).unwrap(), value);
        }
        assert_eq!(kit.act([packet(b"")])[0].1.data()[12..20], [3, 0, 0, 3, 4, 0, 0, 4]);
        assert_eq!(kit.act([Packet::with_headroom(28, 65_507).unwrap()]).len(), 1);
        assert!(kit.act([Packet::with_headroom(28, 65_508).unwrap()]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 1);
        assert!(Kit::<IcmpPingEncap>::new("10.0.0.1").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! ICMPIPEncap: puts packets into ICMP messages.

use super::encap::{IcmpType, Message, word};
use crate::ip::numbers::{Identifier, Numbers};
use castanet_classify::names;
use castanet_element::prelude::*;
use std::net::Ipv4Addr;

/// Puts ICMP and IPv4 headers before packets (RFC 792).
///
/// Messages of types that have an identifier get IDENTIFIER, and a sequence number that counts up from 1. In other
/// types, both fields are zero. The IP identification counts up with the sequence number, from an unpredictable number
/// (from 1 with `--seed`). Replicas on several workers use different sequence numbers and identifications. The time to
/// live is 255. The network header is marked, and the destination address annotation is set. A packet that would become
/// longer than IPv4 allows is dropped.
///
/// # Ports
/// Input 0: packets. Output 0: ICMP messages.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 56, LIMIT 3, STOP true) -> ICMPIPEncap(10.0.0.1, 10.0.0.2, unreachable, host)
///     -> IPPrint(error) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "ICMPIPEncap", offload = none, ports = "1/1", processing = "a/a", packets = "any/ip", workers = replicate)]
#[class(takes_state = "the next number, an identifier that is not named")]
#[class(drops(TooLong), build, lifecycle, depends = order)]
pub struct IcmpIpEncap {
    args: Args,
    code: u8,
    numbers: Numbers,
    identifier: Identifier,
}

/// Arguments of ICMPIPEncap.
#[derive(Args)]
pub struct Args {
    /// Source address.
    #[arg(handler = "rw")]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(handler = "rw")]
    dst: Ipv4Addr,
    /// Type of the messages, by name or number.
    #[arg(name = "TYPE")]
    kind: IcmpType,
    /// Code of the messages, by name or number.
    #[arg(default = Word("0".into()), show = "0")]
    code: Word,
    /// Identifier of the messages; by default it is unpredictable, or 0 with `--seed`.
    #[arg(keyword)]
    identifier: Option<u16>,
}

impl Build for IcmpIpEncap {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let text = &args.code.0;
        let named = names::icmp_code_number(args.kind.0, text);
        let Some(code) = named.or_else(|| u8::parse(text, &cx.arg_cx()).ok()) else {
            return Err(format!("CODE: '{text}' is not a code of ICMP type {}", args.kind.0).into());
        };
        let identifier = Identifier::new(args.identifier, cx);
        Ok(IcmpIpEncap { args, code, numbers: Numbers::new(cx, 1), identifier })
    }
}

impl Lifecycle for IcmpIpEncap {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.numbers.go_on_from(old.numbers);
        self.identifier.go_on_from(old.identifier);
        Ok(())
    }
}

impl Action for IcmpIpEncap {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let (args, id) = (&self.args, self.numbers.id());
        let word = word(args.kind.0, self.identifier.get(), self.numbers.peek());
        if !(Message { src: args.src, dst: args.dst, kind: (args.kind.0, self.code), word, id }).wrap(p) {
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
    use etherparse::{Icmpv4Slice, Ipv4Slice};

    #[test]
    fn types_and_codes() {
        for (config, want) in [
            ("echo", [8, 0, 0, 9, 0, 1]),
            ("13, 0", [13, 0, 0, 9, 0, 1]),
            ("unreachable, host", [3, 1, 0, 0, 0, 0]),
            ("timeexceeded, 1", [11, 1, 0, 0, 0, 0]),
            ("255, 255", [255, 255, 0, 0, 0, 0]),
        ] {
            let mut kit =
                Kit::<IcmpIpEncap>::new(&format!("1.0.0.1, 2.0.0.2, {config}, IDENTIFIER 9")).unwrap();
            for n in 0..20 {
                let out = kit.act([packet(&vec![5; n])]);
                let ip = Ipv4Slice::from_slice(out[0].1.data()).unwrap();
                let m = Icmpv4Slice::from_slice(ip.payload().payload);
                let bytes = ip.payload().payload;
                if n == 0 {
                    assert_eq!(
                        [bytes[0], bytes[1], bytes[4], bytes[5], bytes[6], bytes[7]],
                        want,
                        "{config}"
                    );
                }
                assert_eq!((castanet_wire::checksum::sum(bytes), &bytes[8..]), (0xffff, &vec![5; n][..]));
                assert!(m.is_ok() || bytes[0] == 13, "etherparse wants whole timestamps");
            }
        }
        for bad in ["nosuch", "256", "unreachable, nosuch", "echo, host"] {
            assert!(Kit::<IcmpIpEncap>::new(&format!("1.0.0.1, 2.0.0.2, {bad}")).is_err(), "{bad}");
        }
        let mut kit = Kit::<IcmpIpEncap>::new("1.0.0.1, 2.0.0.2, echo").unwrap();
        for (handler, value) in [("src", "3.0.0.3"), ("dst", "4.0.0.4")] {
            kit.write(handler, value).unwrap();
            assert_eq!(kit.read(handler).unwrap(), value);
        }
        assert!(kit.act([Packet::with_headroom(28, 65_508).unwrap()]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 1);
    }
}

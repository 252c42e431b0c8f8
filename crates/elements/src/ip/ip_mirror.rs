// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPMirror: exchanges source and destination of packets.

use crate::transport::segment_mut;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_spec::anno;
use castanet_wire::ipv4::OFFSET_MASK;
use castanet_wire::ipv4::protocol::{DCCP, SCTP, TCP, UDP, UDP_LITE};
use castanet_wire::{Ipv4Header, UdpHeader};

/// Exchanges source and destination of IPv4 packets: the addresses and, for TCP and UDP, the ports.
///
/// Fragments other than the first have no ports. All checksums stay correct, because a checksum does not depend on the
/// order of the words. The network header must be marked.
///
/// # Ports
/// Input 0: IP packets. Output 0: the packets with source and destination exchanged.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 401177cf 01000001 02000002 00010002 00080000>, LIMIT 5, STOP true)
///     -> CheckIPHeader -> IPMirror -> CheckIPHeader(VERBOSE true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "IPMirror", offload = none, ports = "1/1", processing = "a/a", packets = "ip/same", workers = replicate)]
#[class(drops(NoIpHeader), depends = packet)]
#[class(kernel)]
pub struct IpMirror {
    args: Args,
}

/// Arguments of IPMirror.
#[derive(Args)]
pub struct Args {
    /// Whether the destination address annotation is set to the new destination.
    #[arg(default = true)]
    dst_anno: bool,
}

impl Action for IpMirror {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let Some(network) = p.network_mut() else { return Verdict::Drop(Reason::NoIpHeader) };
        let Some(h) = Ipv4Header::from_prefix_mut(network) else { return Verdict::Drop(Reason::NoIpHeader) };
        (h.src, h.dst) = (h.dst, h.src);
        let dst = h.dst.get();
        let has_ports = matches!(h.protocol, TCP | UDP | DCCP | UDP_LITE | SCTP) && h.is_first_fragment();
        if has_ports
            && let Some((_, carried)) = segment_mut(network)
            && let Some(ports) = UdpHeader::from_prefix_mut(carried)
        {
            (ports.src_port, ports.dst_port) = (ports.dst_port, ports.src_port);
        }
        if self.args.dst_anno {
            p.set_dst_ip(dst);
        }
        Verdict::Next
    }
}

impl InKernel for IpMirror {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let Some((at, _)) = code.network() else {
            code.drop(Reason::NoIpHeader as u16);
            return Ok(());
        };
        let swap = |code: &mut Code<'_>, one: i32, two: i32, size: Size| {
            let (a, b) = (code.load(one, size), code.load(two, size));
            code.store(one, size, b);
            code.store(two, size, a);
        };
        let addresses = |code: &mut Code<'_>| {
            swap(code, at + 12, at + 16, Size::Word);
            if self.args.dst_anno {
                let dst = code.load(at + 16, Size::Word);
                code.set_annotation(anno::DST_IP, Size::Word, dst);
            }
            code.next(0);
        };
        let (with_ports, plain, short, other) = (code.label(), code.label(), code.label(), code.label());
        code.need_at(at, Ipv4Header::LEN as u32, short);
        let protocol = code.load(at + 9, Size::Byte);
        for number in [TCP, UDP, DCCP, UDP_LITE, SCTP] {
            code.branch(protocol, Test::Equal, u32::from(number), with_ports);
        }
        code.jump(plain);
        code.bind(with_ports);
        let fragment = code.load(at + 6, Size::Half);
        code.branch(fragment, Test::Common, u32::from(OFFSET_MASK.to_be()), plain);
        // Headers with options and truncated transport headers go up.
        let first = code.load(at, Size::Byte);
        let words = code.compute(Arithmetic::And, first, 15u32);
        code.branch(words, Test::Differ, Ipv4Header::LEN as u32 / 4, other);
        let end = (Ipv4Header::LEN + UdpHeader::LEN) as u32;
        let total = code.load_number(at + 2, Size::Half);
        code.branch(total, Test::Less, end, other);
        let total = code.compute(Arithmetic::Add, total, i64::from(at));
        code.branch_length(total, Some(other), None);
        code.need_at(at, end, other);
        swap(code, at + 20, at + 22, Size::Half);
        addresses(code);
        code.bind(plain);
        addresses(code);
        code.bind(short);
        code.drop(Reason::NoIpHeader as u16);
        code.bind(other);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use etherparse::PacketBuilder;

    fn marked(data: &[u8]) -> Packet {
        let mut p = packet(data);
        p.set_network_header(0, 20);
        p
    }

    #[test]
    fn there_and_back() {
        let built = |tcp: bool, turned: bool| {
            let (a, b, p, q) = ([1, 0, 0, 1], [2, 0, 0, 2], 1000, 53);
            let (a, b, p, q) = if turned { (b, a, q, p) } else { (a, b, p, q) };
            let (mut data, from) = (Vec::new(), PacketBuilder::ipv4(a, b, 64));
            match tcp {
                true => from.tcp(p, q, 3, 4).write(&mut data, b"abc").unwrap(),
                false => from.udp(p, q).write(&mut data, b"abc").unwrap(),
            }
            data
        };
        for tcp in [true, false] {
            let mut kit = Kit::<IpMirror>::new("").unwrap();
            let out = kit.act([marked(&built(tcp, false))]);
            assert_eq!((out[0].1.data(), out[0].1.dst_ip()), (&built(tcp, true)[..], 0x0100_0001));
            let mut kit = Kit::<IpMirror>::new("false").unwrap();
            let out = kit.act(out.into_iter().map(|o| o.1));
            assert_eq!((out[0].1.data(), out[0].1.dst_ip()), (&built(tcp, false)[..], 0x0100_0001));
        }
        // Later fragments, packets of other protocols and truncated packets have no ports.
        let mut kit = Kit::<IpMirror>::new("").unwrap();
        for (at, v) in [(7, 1), (9, 47), (3, 27)] {
            let mut data = built(false, false);
            data[at] = v;
            assert_eq!(kit.act([marked(&data)])[0].1.data()[20..], data[20..], "{at}");
        }
        for n in 0..20 {
            assert!(kit.act([marked(&built(false, false)[..n])]).is_empty());
        }
        assert_eq!((kit.act([packet(&[7; 60])]).len(), kit.dropped(Reason::NoIpHeader)), (0, 21));
        assert!(Kit::<IpMirror>::new("2").is_err());
    }
}

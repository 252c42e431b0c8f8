// SPDX-License-Identifier: MIT OR Apache-2.0
//! FixIPSrc: gives the router's own ICMP errors the address of the interface on which they leave.

use castanet_element::kernel::{Code, Lowered, Size, Test};
use castanet_element::prelude::*;
use castanet_spec::anno::FIX_IP_SRC;
use castanet_wire::Ipv4Header;
use std::net::Ipv4Addr;

/// Sets the source address of packets whose FIX_IP_SRC annotation is set.
///
/// The source of an ICMP error should be an address of the interface on which the error leaves (RFC 1812 section
/// 4.3.2.4). FIX_IP_SRC is cleared, and the header checksum is updated incrementally (RFC 1624). All other packets pass
/// unchanged.
///
/// # Ports
/// Input 0, output 0: IP packets.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader -> FixIPSrc(10.0.0.1) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "FixIPSrc", ports = "1/1", processing = "a/a", packets = "ip optional/same", workers = replicate)]
#[class(depends = packet)]
#[class(kernel)]
pub struct FixIpSrc {
    args: Args,
}

/// Arguments of FixIPSrc.
#[derive(Args)]
pub struct Args {
    /// The source address to set.
    ipaddr: Ipv4Addr,
}

impl Action for FixIpSrc {
    #[inline(always)]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        if p.anno_u8(FIX_IP_SRC) != 0 {
            self.fix(p);
        }
        Verdict::Next
    }
}

impl FixIpSrc {
    #[cold]
    #[inline(never)]
    fn fix(&self, p: &mut Packet) {
        p.set_anno_u8(FIX_IP_SRC, 0);
        if let Some(h) = p.network_mut().and_then(Ipv4Header::from_prefix_mut) {
            h.rewrite_src(self.args.ipaddr.to_bits());
        }
    }
}

impl InKernel for FixIpSrc {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // The router's own errors are made at user level, so the packets to be changed are there.
        let marked = code.label();
        let mark = code.annotation(FIX_IP_SRC, Size::Byte);
        code.branch(mark, Test::Differ, 0u32, marked);
        code.next(0);
        code.bind(marked);
        code.up();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn only_with_the_annotation() {
        let mut data = Vec::new();
        let b = etherparse::PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 9).udp(1, 2);
        b.write(&mut data, &[0; 7]).unwrap();
        let mut kit = Kit::<FixIpSrc>::new("10.0.0.1").unwrap();
        for set in [0u8, 1, 255] {
            let mut p = packet(&data);
            p.set_network_header(0, 20);
            p.set_anno_u8(FIX_IP_SRC, set);
            let out = kit.act([p]);
            let (h, rest) = etherparse::Ipv4Header::from_slice(out[0].1.data()).unwrap();
            assert_eq!(h.source, if set == 0 { [1, 2, 3, 4] } else { [10, 0, 0, 1] });
            assert_eq!(h.calc_header_checksum(), h.header_checksum);
            assert_eq!((rest, out[0].1.anno_u8(FIX_IP_SRC)), (&data[20..], 0));
        }
    }

    #[test]
    fn without_a_whole_header_it_changes_nothing() {
        let mut kit = Kit::<FixIpSrc>::new("10.0.0.1").unwrap();
        for len in 0..20 {
            let mut p = packet(&vec![0x45; len]);
            p.set_network_header(0, 20);
            p.set_anno_u8(FIX_IP_SRC, 1);
            assert_eq!(kit.act([p])[0].1.data(), vec![0x45; len]);
        }
        let mut p = packet(&[0x45; 40]);
        p.set_anno_u8(FIX_IP_SRC, 1);
        assert_eq!(kit.act([p])[0].1.data(), [0x45; 40]);
    }
}

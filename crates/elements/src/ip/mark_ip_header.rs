// SPDX-License-Identifier: MIT OR Apache-2.0
//! MarkIPHeader: marks the position of the IP header, without checks.

use castanet_element::kernel::{Arithmetic, Code, Lowered, Refused, Size, Test};
use castanet_element::prelude::*;
use castanet_wire::Ipv4Header;

/// Marks the position of the IPv4 header of packets, without checking the header.
///
/// The start of the transport header is computed from the header length field. The destination address annotation stays
/// unchanged. A packet that ends before the offset passes without a mark.
///
/// # Ports
/// Input 0: packets with an IP header at `OFFSET`. Output 0: the packets with their header marked.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> MarkIPHeader(14) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "MarkIPHeader", ports = "1/1", processing = "a/a", packets = "network at OFFSET/mark OFFSET", workers = replicate)]
#[class(depends = packet)]
#[class(kernel)]
pub struct MarkIpHeader {
    args: Args,
}

/// Arguments of MarkIPHeader.
#[derive(Args)]
pub struct Args {
    /// Where the IP header starts, in bytes from the start of the packet.
    #[arg(default = 0)]
    offset: u32,
}

impl Action for MarkIpHeader {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let offset = self.args.offset as usize;
        if let Some(first) = p.data().get(offset) {
            let length = usize::from(first & 15) << 2;
            p.set_network_header(offset, length);
        }
        Verdict::Next
    }
}

impl InKernel for MarkIpHeader {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let at = i32::try_from(self.args.offset).map_err(|_| Refused("OFFSET is too large".into()))?;
        // Headers with options and truncated headers go up: the compiler must know where the transport header is.
        let other = code.label();
        code.need_at(at, Ipv4Header::LEN as u32, other);
        let first = code.load(at, Size::Byte);
        let words = code.compute(Arithmetic::And, first, 15u32);
        code.branch(words, Test::Differ, Ipv4Header::LEN as u32 / 4, other);
        code.mark_network(at, Ipv4Header::LEN as u32);
        code.next(0);
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

    #[test]
    fn marks_at_every_length() {
        for len in 0..60usize {
            let mut kit = Kit::<MarkIpHeader>::new("14").unwrap();
            let mut data = vec![0u8; len];
            if let Some(b) = data.get_mut(14) {
                *b = 0x46;
            }
            let out = kit.act([packet(&data)]);
            let p = &out[0].1;
            if len <= 14 {
                assert_eq!(p.network_offset(), None, "{len}");
            } else {
                assert_eq!(p.network_offset(), Some(14));
                assert_eq!(p.network_header_length(), 24.min(len - 14), "{len}");
            }
            assert_eq!(p.dst_ip(), 0);
        }
    }

    #[test]
    fn arguments() {
        let mut kit = Kit::<MarkIpHeader>::new("").unwrap();
        assert_eq!(kit.act([packet(&[0x45; 30])])[0].1.transport_offset(), Some(20));
        assert!(Kit::<MarkIpHeader>::new("x").is_err());
        assert!(Kit::<MarkIpHeader>::new("0, 1").is_err());
    }
}

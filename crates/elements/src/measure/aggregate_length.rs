// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregateLength: sets the aggregate annotation to the packet length.

use castanet_element::prelude::*;
use castanet_spec::anno;

/// Sets the aggregate annotation to the length of the packet, including bytes that were not captured.
///
/// With IP, the length in the IP header is used; for packets without an IP header, the length of the packet.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> AggregateLength -> AggregateCounter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregateLength", offload = none, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct AggregateLength {
    args: Args,
}

/// Arguments of AggregateLength.
#[derive(Args)]
pub struct Args {
    /// Whether to use the length in the IP header.
    #[arg(keyword, default = false)]
    ip: bool,
}

impl Action for AggregateLength {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let whole = u32::try_from(p.len()).unwrap_or(u32::MAX).saturating_add(p.anno_u32(anno::EXTRA_LENGTH));
        let ip = p.ip_header().filter(|_| self.args.ip).map(|h| u32::from(u16::from_be_bytes([h[2], h[3]])));
        p.set_anno_u32(anno::AGGREGATE, ip.unwrap_or(whole));
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn lengths() {
        for n in 0..60 {
            for (config, marked, want) in
                [("", true, n + 7), ("IP true", false, n + 7), ("IP true", true, 0x405)]
            {
                let mut p = packet(&[4, 5].repeat(30));
                p.truncate(n);
                p.set_anno_u32(anno::EXTRA_LENGTH, 7);
                if marked {
                    p.set_network_header(0, 20);
                }
                let want = if marked && n < 20 { n + 7 } else { want };
                let p = Kit::<AggregateLength>::new(config).unwrap().act1(p).1;
                assert_eq!(p.anno_u32(anno::AGGREGATE) as usize, want, "{config} {n}");
            }
        }
    }
}

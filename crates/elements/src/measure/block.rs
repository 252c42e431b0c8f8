// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block: separates packets of senders that are too fast.

use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Sends packets to output 1 if their forward rate annotation exceeds a threshold.
///
/// `IPRateMonitor` sets this annotation to the rate at which the sender's packets arrive. A threshold of 0 or less lets
/// all packets pass.
///
/// # Ports
/// Input 0: packets with the annotation. Output 0: packets within the threshold. Output 1 (push): packets beyond it.
///
/// # Example
/// ```click
/// InfiniteSource(DATA \<4500001c 00000000 40110000 01000001 02000002 0001 0002 0008 0000>, LIMIT 50, STOP true)
///     -> MarkIPHeader -> IPRateMonitor(PACKETS, 0.5, 1, 10000) -> b :: Block(20) -> Discard;
/// b [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Block", ports = "1/2", processing = "a/ah", packets = "any/same", workers = replicate)]
pub struct Block {
    args: Args,
}

/// Arguments of Block.
#[derive(Args)]
pub struct Args {
    /// The highest rate of packets that pass; 0 or less for no limit.
    #[arg(handler = "rw")]
    thresh: i32,
}

impl Action for Block {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let limit = u32::try_from(self.args.thresh).unwrap_or(0);
        if limit > 0 && p.anno_u32(anno::FWD_RATE) > limit { Verdict::Out(1) } else { Verdict::Next }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn thresholds() {
        for (config, limit) in [("1", 1), ("20", 20), ("2147483647", i32::MAX as u32), ("0", 0), ("-5", 0)] {
            let mut kit = Kit::<Block>::with_ports(config, 1, 2).unwrap();
            for rate in [0, 1, 2, 19, 20, 21, 2_147_483_647, 2_147_483_648, u32::MAX] {
                let mut p = packet(b"x");
                p.set_anno_u32(anno::FWD_RATE, rate);
                let port = usize::from(limit > 0 && rate > limit);
                assert_eq!(kit.act([p])[0].0, port, "{config}: {rate}");
            }
        }
        let mut kit = Kit::<Block>::with_ports("3", 1, 2).unwrap();
        kit.write("thresh", "4").unwrap();
        assert_eq!(kit.read("thresh").unwrap(), "4");
        assert!(Kit::<Block>::with_ports("", 1, 2).is_err());
    }
}

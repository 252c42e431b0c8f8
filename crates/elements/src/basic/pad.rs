// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pad: lengthens packets that are too short.

use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Appends zeros to packets until they have LENGTH bytes.
///
/// Without LENGTH, appends as many zeros as the extra length annotation says.
/// The extra length annotation is cleared, because the packet has its full length again.
///
/// # Ports
/// Input 0: packets. Output 0: the padded packets, at least LENGTH bytes long.
///
/// # Example
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 5, STOP true) -> Pad(60) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Pad", offload = none, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(reconfigure = keeps, drops(TooLong), depends = packet)]
pub struct Pad {
    args: Args,
}

/// Arguments of Pad.
#[derive(Args)]
pub struct Args {
    /// Minimum length of packets in bytes; 0 to append as many bytes as the extra length annotation says.
    #[arg(default = 0)]
    length: u32,
    /// Whether the appended bytes must be zero; has no effect, because they are always zero.
    #[arg(keyword, default = true, handler = "r")]
    zero: bool,
}

impl Action for Pad {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let length = self.args.length;
        let extra = p.anno_u32(anno::EXTRA_LENGTH);
        let missing = if length == 0 { extra as usize } else { (length as usize).saturating_sub(p.len()) };
        if missing > 0 && !p.put(missing) {
            return Verdict::Drop(Reason::TooLong);
        }
        if extra != 0 {
            p.set_anno_u32(anno::EXTRA_LENGTH, 0);
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn with_extra(len: usize, extra: u32) -> Packet {
        let mut p = packet(&vec![7; len]);
        p.set_anno_u32(anno::EXTRA_LENGTH, extra);
        p
    }

    #[test]
    fn every_length() {
        for config in ["40", "40, ZERO false"] {
            let mut kit = Kit::<Pad>::new(config).unwrap();
            for len in 0..60 {
                let out = kit.act([with_extra(len, 9)]);
                let mut want = vec![7; len];
                want.resize(len.max(40), 0);
                assert_eq!((out[0].1.data(), out[0].1.anno_u32(anno::EXTRA_LENGTH)), (&want[..], 0));
            }
        }
        let mut kit = Kit::<Pad>::new("").unwrap();
        for extra in [0, 1, 3000, 60_000] {
            let out = kit.act([with_extra(20, extra)]);
            let mut want = vec![7; 20];
            want.resize(20 + extra as usize, 0);
            assert_eq!((out[0].1.data(), out[0].1.anno_u32(anno::EXTRA_LENGTH)), (&want[..], 0));
        }
        assert!(kit.act([with_extra(20, 70_000), with_extra(20, u32::MAX)]).is_empty());
        assert_eq!(kit.dropped(Reason::TooLong), 2);
        assert!(Kit::<Pad>::new("-1").is_err());
    }
}

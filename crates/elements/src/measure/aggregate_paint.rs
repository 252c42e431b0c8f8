// SPDX-License-Identifier: MIT OR Apache-2.0
//! AggregatePaint: sets the aggregate annotation to bits of the paint.

use castanet_element::prelude::*;
use castanet_spec::anno;

/// Sets the aggregate annotation to the low BITS bits of the paint annotation.
///
/// With INCREMENTAL, the previous aggregate is shifted to the left by BITS bits, and the paint fills the
/// lower bits.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Paint(3) -> AggregatePaint -> AggregateCounter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AggregatePaint", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(build)]
pub struct AggregatePaint {
    args: Args,
}

/// Arguments of AggregatePaint.
#[derive(Args)]
pub struct Args {
    /// The number of low bits of the paint to use, 1 to 8.
    #[arg(default = 8, min = 1, max = 8)]
    bits: u8,
    /// Whether to append the bits to the previous aggregate.
    #[arg(keyword, default = false)]
    incremental: bool,
}

impl Build for AggregatePaint {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(AggregatePaint { args })
    }
}

impl Action for AggregatePaint {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let bits = u32::from(self.args.bits);
        let value = u32::from(p.paint()) & ((1 << bits) - 1);
        let before = if self.args.incremental { p.anno_u32(anno::AGGREGATE) << bits } else { 0 };
        p.set_anno_u32(anno::AGGREGATE, before | value);
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn paints() {
        for (config, want) in [
            ("", 0xf3),
            ("4", 3),
            ("1", 1),
            ("4, INCREMENTAL true", 0x1234_5673),
            ("INCREMENTAL true", 0x2345_67f3),
        ] {
            let mut p = packet(b"");
            p.set_paint(0xf3);
            p.set_anno_u32(anno::AGGREGATE, 0x0123_4567 | 0xf000_0000);
            if config.starts_with('4') {
                p.set_anno_u32(anno::AGGREGATE, 0xf123_4567);
            }
            let p = Kit::<AggregatePaint>::new(config).unwrap().act1(p).1;
            assert_eq!(p.anno_u32(anno::AGGREGATE), want, "{config}");
        }
        for bad in ["0", "9", "x", "-1"] {
            assert!(Kit::<AggregatePaint>::new(bad).is_err(), "{bad}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! AdjustTimestamp: adds a given time to timestamps.

use castanet_element::prelude::*;
use castanet_spec::anno;

/// Adds a time, which may be negative, to timestamps.
///
/// Timestamps that are not set (0) stay unchanged, unless ALL is true. With FIRST, all this applies to the
/// FIRST_TIMESTAMP annotation in place of the timestamp.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 1, STOP true) -> SetTimestamp(5) -> AdjustTimestamp(-2) -> Print(TIMESTAMP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AdjustTimestamp", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct AdjustTimestamp {
    args: Args,
}

/// Arguments of AdjustTimestamp.
#[derive(Args)]
pub struct Args {
    /// The time to add.
    #[arg(default = Elapsed(0), show = "0", handler = "rw")]
    time: Elapsed,
    /// Whether to change the FIRST_TIMESTAMP annotation.
    #[arg(keyword, default = false)]
    first: bool,
    /// Whether to change timestamps that are not set.
    #[arg(keyword, default = false)]
    all: bool,
}

impl Action for AdjustTimestamp {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let add = |t: i64| if t != 0 || self.args.all { t.saturating_add(self.args.time.0) } else { t };
        if self.args.first {
            let first = i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP));
            p.set_anno(anno::FIRST_TIMESTAMP, add(first).to_ne_bytes());
        } else {
            p.set_timestamp(add(p.timestamp()));
        }
        Verdict::Next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn adds() {
        for (config, time, want) in [
            ("2", 5, (2_000_000_005, 0)),
            ("-2", 3_000_000_000, (1_000_000_000, 0)),
            ("2", 0, (0, 0)),
            ("2, ALL true", 0, (2_000_000_000, 0)),
            ("2, FIRST true, ALL true", 7, (7, 2_000_000_000)),
            ("9", i64::MAX, (i64::MAX, 0)),
        ] {
            let mut p = packet(b"");
            p.set_timestamp(time);
            let p = Kit::<AdjustTimestamp>::new(config).unwrap().act1(p).1;
            assert_eq!((p.timestamp(), i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP))), want, "{config}");
        }
        let mut kit = Kit::<AdjustTimestamp>::new("1").unwrap();
        kit.write("time", "2.5").unwrap();
        assert_eq!(kit.read("time").unwrap(), "2.500000s");
        assert_eq!(Kit::<AdjustTimestamp>::new("-2").unwrap().read("time").unwrap(), "-2.000000s");
        assert!(Kit::<AdjustTimestamp>::new("x").is_err());
    }
}

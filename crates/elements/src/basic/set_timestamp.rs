// SPDX-License-Identifier: MIT OR Apache-2.0
//! SetTimestamp: sets the timestamp of packets.

use castanet_element::prelude::*;
use castanet_element::spec::anno;

/// Sets the timestamp of packets, by default to the current time.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets with the new timestamp.
///
/// # Example
/// ```click
/// InfiniteSource(TIMESTAMP false, LIMIT 5, STOP true) -> SetTimestamp -> Print(TIMESTAMP true) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SetTimestamp", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
pub struct SetTimestamp {
    args: Args,
}

/// Arguments of SetTimestamp.
#[derive(Args)]
pub struct Args {
    /// The time to set, in seconds since 1970; by default the time at which the packet passes.
    timestamp: Option<Nanos>,
    /// Whether to set the FIRST_TIMESTAMP annotation, not the timestamp.
    #[arg(keyword, default = false)]
    first: bool,
    /// Whether to subtract the packet's FIRST_TIMESTAMP annotation from the time, and set the timestamp to the
    /// difference.
    #[arg(keyword, default = false)]
    delta: bool,
    /// Whether all packets of a batch get the time of the first.
    #[arg(keyword, default = false)]
    per_batch: bool,
}

impl SetTimestamp {
    #[inline]
    fn set(&self, p: &mut Packet, time: i64) {
        if self.args.delta {
            let first = i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP));
            p.set_timestamp(time.saturating_sub(first));
        } else if self.args.first {
            p.set_anno(anno::FIRST_TIMESTAMP, time.to_ne_bytes());
        } else {
            p.set_timestamp(time);
        }
    }
}

impl Action for SetTimestamp {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let time = self.args.timestamp.map_or_else(|| cx.now(), |t| t.0);
        self.set(p, time);
        Verdict::Next
    }

    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.args.per_batch {
            return cx.apply(batch, |p, cx| self.action(p, cx));
        }
        let time = self.args.timestamp.map_or_else(|| cx.now(), |t| t.0);
        for p in batch.iter_mut() {
            self.set(p, time);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const START: i64 = 1_000_000_000_000;

    #[test]
    fn sets_the_time() {
        for (config, want) in
            [("", [START + 1, START + 2]), ("1.5", [1_500_000_000; 2]), ("PER_BATCH true", [START + 1; 2])]
        {
            let mut kit = Kit::<SetTimestamp>::new(config).unwrap();
            let out = kit.act([packet(b""), packet(b"x")]);
            assert_eq!([0, 1].map(|i: usize| out[i].1.timestamp()), want, "{config}");
        }
    }

    #[test]
    fn first_and_delta() {
        let mut first = Kit::<SetTimestamp>::new("2, FIRST true").unwrap();
        let p = first.act1(packet(b"")).1;
        assert_eq!((p.timestamp(), i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP))), (0, 2_000_000_000));
        let mut delta = Kit::<SetTimestamp>::new("5, DELTA true").unwrap();
        assert_eq!(delta.act1(p).1.timestamp(), 3_000_000_000);
        assert_eq!(Kit::<SetTimestamp>::new("soon").err().unwrap(), ["TIMESTAMP: expected time in seconds"]);
    }
}

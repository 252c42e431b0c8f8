// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimestampAccum: sums up the age of packets.

use castanet_element::prelude::*;

/// Sums up the ages of packets: the time that has passed since the timestamp of each.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> SetTimestamp -> TimestampAccum -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimestampAccum", ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(takes_state = "the time")]
#[class(lifecycle, handlers)]
pub struct TimestampAccum {
    /// Packets so far.
    #[count(unit = "packets")]
    count: Count,
    /// The sum of the ages, in nanoseconds.
    time: i64,
}

impl Action for TimestampAccum {
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.count.add(1);
        self.time = self.time.saturating_add(cx.now().saturating_sub(p.timestamp()));
        Verdict::Next
    }
}

#[handlers]
impl TimestampAccum {
    /// The average age of a packet; with several workers, the greatest of the workers' averages.
    #[read(merge = max, unit = "seconds")]
    fn average_time(&self) -> Seconds {
        Seconds(Nanos(self.time).seconds() / self.count.get().max(1) as f64)
    }
    /// The sum of the ages of all packets.
    #[read(name = "time", merge = sum, unit = "seconds")]
    fn total_time(&self) -> Nanos {
        Nanos(self.time)
    }
    /// Sets the count and the sum to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.count.reset();
        self.time = 0;
    }
}

impl Lifecycle for TimestampAccum {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.time = self.time.saturating_add(std::mem::take(&mut old.time));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn sums() {
        for batch in [1, 2, 3] {
            let mut kit = Kit::<TimestampAccum>::new("").unwrap();
            assert_eq!(["count", "time", "average_time"].map(|h| kit.read(h).unwrap()), ["0", "0", "0"]);
            let mut packets: Vec<_> = (0..6)
                .map(|i| {
                    let mut p = packet(b"");
                    p.set_timestamp((1000 - i) * 1_000_000_000);
                    p
                })
                .collect();
            while !packets.is_empty() {
                assert_eq!(kit.act(packets.drain(..batch)).len(), batch);
            }
            let seconds: f64 = kit.read("time").unwrap().parse().unwrap();
            let average: f64 = kit.read("average_time").unwrap().parse().unwrap();
            assert!(
                (15.0..15.001).contains(&seconds) && (2.5..2.501).contains(&average),
                "{seconds} {average}"
            );
            kit.write("reset_counts", "").unwrap();
            assert_eq!((kit.read("count").unwrap(), kit.read("time").unwrap()), ("0".into(), "0".into()));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeRange: records the first and the last timestamp.

use castanet_element::prelude::*;
use castanet_spec::anno;

/// Records the span of time that the timestamps of packets cover.
///
/// The span begins with the earliest timestamp and ends with the latest. If a packet has a FIRST_TIMESTAMP
/// annotation, the beginning is computed from the annotation instead of the timestamp. With SIMPLE, the
/// times of the first and the last packet are used. Packets without a timestamp are ignored.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> TimeRange -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimeRange", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, lifecycle, handlers)]
#[class(takes_state = "the range")]
pub struct TimeRange {
    args: Args,
    range: Option<(i64, i64)>,
}

/// Arguments of TimeRange.
#[derive(Args)]
pub struct Args {
    /// Whether to assume that packets arrive in the order of their timestamps.
    #[arg(keyword, default = false)]
    simple: bool,
}

impl TimeRange {
    /// Returns the start and the end of the span; zeros before the first packet.
    fn ends(&self) -> (i64, i64) {
        self.range.unwrap_or((0, 0))
    }
}

impl Action for TimeRange {
    #[inline]
    fn action(&mut self, p: &mut Packet, _: &mut Cx<'_>) -> Verdict {
        let last = p.timestamp();
        if last != 0 {
            let first = match i64::from_ne_bytes(p.anno(anno::FIRST_TIMESTAMP)) {
                0 => last,
                t => t,
            };
            self.range = Some(match self.range {
                None => (first, last),
                Some((f, _)) if self.args.simple => (f, last),
                Some((f, l)) => (f.min(first), l.max(last)),
            });
        }
        Verdict::Next
    }
}

#[handlers]
impl TimeRange {
    /// The start of the span.
    #[read(unit = "seconds")]
    fn first(&self) -> Timestamp {
        Timestamp(self.ends().0)
    }
    /// The end of the span.
    #[read(unit = "seconds")]
    fn last(&self) -> Timestamp {
        Timestamp(self.ends().1)
    }
    /// The start and the end of the span.
    #[read]
    fn range(&self) -> String {
        format!("{} {}", self.first().show(), self.last().show())
    }
    /// The length of the span.
    #[read(unit = "seconds")]
    fn interval(&self) -> Nanos {
        let (first, last) = self.ends();
        Nanos(last.saturating_sub(first))
    }
    /// Forgets the span and starts again.
    #[write(button)]
    fn reset(&mut self) {
        self.range = None;
    }
}

impl Lifecycle for TimeRange {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.range = old.range;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn ranges() {
        for (config, want) in [("", "0.500000 9.000000"), ("SIMPLE true", "7.000000 8.000000")] {
            for batch in [1, 2, 4] {
                let mut kit = Kit::<TimeRange>::new(config).unwrap();
                let mut packets: Vec<_> = [(7, 0), (0, 0), (9, 500), (8, 0)]
                    .map(|(second, first)| {
                        let mut p = packet(b"");
                        p.set_timestamp(second * 1_000_000_000);
                        p.set_anno(anno::FIRST_TIMESTAMP, i64::to_ne_bytes(first * 1_000_000));
                        p
                    })
                    .into();
                while !packets.is_empty() {
                    kit.act(packets.drain(..batch));
                }
                assert_eq!(kit.read("range").unwrap(), want);
            }
        }
        let mut kit = Kit::<TimeRange>::new("").unwrap();
        let read = |kit: &mut Kit<TimeRange>| ["first", "last", "interval"].map(|h| kit.read(h).unwrap());
        assert_eq!(read(&mut kit), ["0.000000", "0.000000", "0"]);
        let mut p = packet(b"");
        p.set_timestamp(2_500_000_000);
        kit.act1(p);
        assert_eq!(read(&mut kit), ["2.500000", "2.500000", "0"]);
        kit.write("reset", "").unwrap();
        assert_eq!(read(&mut kit), ["0.000000", "0.000000", "0"]);
    }
}

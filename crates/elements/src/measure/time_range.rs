// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimeRange: the first and the last timestamp.

use castanet_element::prelude::*;
use castanet_spec::{Show, anno};

/// Remembers the span of time that the timestamps of packets cover.
///
/// It begins with the least timestamp, or FIRST_TIMESTAMP annotation where one is set, and ends with the greatest; with
/// SIMPLE, with those of the first and of the last packet. Timestamps that are not set do not count.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 10, STOP true) -> TimeRange -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimeRange", ports = "1/1", processing = "a/a", packets = "any/same", workers = exclusive, lifecycle)]
#[class(takes_state = "the range")]
#[handler(name = "first", flags = "r", doc = "Where the span begins.")]
#[handler(name = "last", flags = "r", doc = "Where the span ends.")]
#[handler(name = "range", flags = "r", doc = "Both.")]
#[handler(name = "interval", flags = "r", doc = "How long it is.")]
#[handler(name = "reset", flags = "wb", doc = "Starts again.")]
pub struct TimeRange {
    args: Args,
    range: Option<(i64, i64)>,
}

/// Arguments of TimeRange.
#[derive(Args)]
pub struct Args {
    /// Whether packets are in the order of their timestamps.
    #[arg(keyword, default = false)]
    simple: bool,
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

impl Lifecycle for TimeRange {
    fn read(&mut self, handler: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        let (first, last) = self.range.unwrap_or((0, 0));
        let show = |t: i64| Nanos(t).show();
        Ok(match handler {
            "first" => show(first),
            "last" => show(last),
            "range" => format!("{} {}", show(first), show(last)),
            _ => show(last.saturating_sub(first)),
        })
    }
    fn write(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<(), String> {
        self.range = None;
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), String> {
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
        for (config, want) in [("", "0.5 9"), ("SIMPLE true", "7 8")] {
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
        assert_eq!(read(&mut kit), ["0", "0", "0"]);
        let mut p = packet(b"");
        p.set_timestamp(2_500_000_000);
        kit.act1(p);
        assert_eq!(read(&mut kit), ["2.5", "2.5", "0"]);
        kit.write("reset", "").unwrap();
        assert_eq!(read(&mut kit), ["0", "0", "0"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! AverageCounter: counts packets and bytes, and their average rates.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Counts packets and bytes; the rates are averages from the first packet to the last.
///
/// Times have a resolution of a millisecond. Packets of the first IGNORE seconds are not counted.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> AverageCounter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AverageCounter", offload = none, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(takes_state = "the span of time")]
#[class(lifecycle, handlers, depends = packet)]
#[class(kernel)]
pub struct AverageCounter {
    args: Args,
    /// Packets so far.
    #[count(unit = "packets")]
    count: Count,
    /// Bytes so far.
    #[count(unit = "bytes")]
    byte_count: Count,
    /// The times of the first and the last packet, in milliseconds.
    span: Option<(i64, i64)>,
}

/// Arguments of AverageCounter.
#[derive(Args)]
pub struct Args {
    /// How many seconds to wait after the first packet before packets are counted.
    #[arg(default = 0)]
    ignore: u32,
}

impl AverageCounter {
    #[inline]
    fn update(&mut self, packets: u64, bytes: u64, cx: &mut Cx<'_>) {
        let now = cx.peek().div_euclid(1_000_000);
        let first = self.span.map_or(now, |s| s.0);
        self.span = Some((first, now));
        if now.saturating_sub(first) >= self.ignored() {
            self.count.add(packets);
            self.byte_count.add(bytes);
        }
    }
    fn ignored(&self) -> i64 {
        i64::from(self.args.ignore) * 1000
    }
    /// Returns `count` divided by the time in seconds in which packets were counted.
    fn average(&self, count: Count) -> Rate {
        let ms = self
            .span
            .map_or(1, |(first, last)| last.saturating_sub(first).saturating_sub(self.ignored()).max(1));
        Rate(count.get() as f64 * 1000.0 / ms as f64)
    }
}

impl Action for AverageCounter {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.update(1, p.len() as u64, cx);
        Verdict::Next
    }
    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !batch.is_empty() {
            let bytes = batch.iter().map(|p| p.len() as u64).sum();
            self.update(batch.len() as u64, bytes, cx);
        }
    }
}

#[handlers]
impl AverageCounter {
    /// Packets a second.
    #[read(merge = sum, unit = "packets/s")]
    fn rate(&self) -> Rate {
        self.average(self.count)
    }
    /// Bytes a second.
    #[read(merge = sum, unit = "bytes/s")]
    fn byte_rate(&self) -> Rate {
        self.average(self.byte_count)
    }
    /// Sets counts and rates to 0 and starts a new measurement.
    #[write(button)]
    fn reset(&mut self) {
        self.count.reset();
        self.byte_count.reset();
        self.span = None;
    }
}

impl Lifecycle for AverageCounter {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.span = match (self.span, old.span.take()) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Ok(())
    }
}

impl InKernel for AverageCounter {
    fn lower(&self, _: u32, _: &mut Code<'_>) -> Lowered {
        Err("its rates need the times of packets".into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn averages_from_first_to_last() {
        let mut kit = Kit::<AverageCounter>::new("").unwrap();
        assert_eq!(["count", "rate", "byte_rate"].map(|h| kit.read(h).unwrap()), ["0", "0", "0"]);
        for i in 0..41 {
            kit.at(i * 3_901_000_000 / 40);
            assert_eq!(kit.act([packet(&[0; 100])]).len(), 1);
        }
        kit.at(90_000_000_000);
        assert_eq!(["count", "byte_count"].map(|h| kit.read(h).unwrap()), ["41", "4100"]);
        assert_eq!(["rate", "byte_rate"].map(|h| kit.read(h).unwrap()), ["10.5101256088", "1051.01256088"]);
        kit.write("reset", "").unwrap();
        assert_eq!(kit.read("rate").unwrap(), "0");
    }

    #[test]
    fn bytes_that_were_not_captured_do_not_count() {
        let mut kit = Kit::<AverageCounter>::new("").unwrap();
        let mut p = packet(&[0; 10]);
        p.set_anno_u32(castanet_element::spec::anno::EXTRA_LENGTH, 90);
        kit.act([p]);
        assert_eq!(kit.read("byte_count").unwrap(), "10");
    }

    #[test]
    fn ignores_the_beginning() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<AverageCounter>::new("2").unwrap();
            for s in 0..6 {
                kit.at(s * 1_000_000_000);
                assert_eq!(kit.act((0..n).map(|_| packet(b"x"))).len(), n);
            }
            assert_eq!(kit.read("count").unwrap(), (4 * n).to_string());
            assert_eq!(kit.read("rate").unwrap(), Rate(4.0 * n as f64 / 3.0).show());
        }
        assert!(Kit::<AverageCounter>::new("-1").is_err());
    }
}

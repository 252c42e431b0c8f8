// SPDX-License-Identifier: MIT OR Apache-2.0
//! AverageCounter: counts packets and bytes, and their average rates.

use castanet_element::Attached;
use castanet_element::kernel::{Arithmetic, Code, Lowered, Size, Table, TableSpec, Test};
use castanet_element::prelude::*;
use std::sync::Arc;

/// Counts packets and bytes; the rates are averages from the first packet to the last.
///
/// Times have a resolution of a millisecond. Packets of the first IGNORE seconds are not counted. Packets in the kernel are
/// included, with their times.
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
    /// The times of the first and the last packet, in nanoseconds.
    span: Option<(i64, i64)>,
    /// The table in which these times are kept instead, if packets also pass in the kernel.
    words: Option<Arc<dyn Table>>,
    /// The time at which a table was attached.
    attached: i64,
}

/// The table: the times of the first and the last packet on the exact clock of programs. The first is 0 before any packet.
const WORDS: TableSpec = TableSpec::shared(2);
const FIRST: usize = 0;
const LAST: usize = 1;
/// Nanoseconds in a millisecond.
const MS: i64 = 1_000_000;

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
        let now = cx.peek();
        let first = self.span(now).map_or(now, |s| s.0);
        self.set_span(Some((first, now)), now);
        if length((first, now)) >= self.ignored() {
            self.count.add(packets);
            self.byte_count.add(bytes);
        }
    }
    fn ignored(&self) -> i64 {
        i64::from(self.args.ignore) * 1000
    }
    /// Returns `count` divided by the time in seconds in which packets were counted.
    fn average(&self, count: Count, now: i64) -> Rate {
        let ms = self.span(now).map_or(1, |span| length(span).saturating_sub(self.ignored()).max(1));
        Rate(count.get() as f64 * 1000.0 / ms as f64)
    }
    /// Returns the times of the first and the last packet. `now` is the time.
    #[inline]
    fn span(&self, now: i64) -> Option<(i64, i64)> {
        let Some(words) = &self.words else { return self.span };
        let program = words.exact_time(now);
        let time = |word| Some(now.saturating_sub(program.wrapping_sub(words.word(word)?).cast_signed()));
        words.word(FIRST).filter(|first| *first != 0)?;
        Some((time(FIRST)?, time(LAST)?))
    }
    #[inline]
    fn set_span(&mut self, span: Option<(i64, i64)>, now: i64) {
        let Some(words) = &self.words else {
            self.span = span;
            return;
        };
        let program = words.exact_time(now);
        let time = |at: i64| program.wrapping_sub(now.saturating_sub(at).cast_unsigned()).max(1);
        let (first, last) = span.map_or((0, 0), |(first, last)| (time(first), time(last)));
        words.set_word(LAST, last);
        words.set_word(FIRST, first);
    }
}

/// Returns the length of a span of time in milliseconds.
fn length((first, last): (i64, i64)) -> i64 {
    last.div_euclid(MS).saturating_sub(first.div_euclid(MS))
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
    fn rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        self.average(self.count, cx.peek())
    }
    /// Bytes a second.
    #[read(merge = sum, unit = "bytes/s")]
    fn byte_rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        self.average(self.byte_count, cx.peek())
    }
    /// Sets counts and rates to 0 and starts a new measurement.
    #[write(button)]
    fn reset(&mut self) {
        self.count.reset();
        self.byte_count.reset();
        self.set_span(None, 0);
    }
}

impl Lifecycle for AverageCounter {
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.span = match (self.span, old.span(cx.peek())) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Ok(())
    }
}

impl InKernel for AverageCounter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        let (known, ignored) = (code.label(), code.label());
        let length = code.length();
        let now = code.exact_time();
        let words = code.shared(0, WORDS);
        let first = code.load_entry(words, 8 * FIRST as i32, Size::Double);
        code.branch_wide(first, Test::Differ, 0i64, known);
        // Processors that have their first packets at the same time store about the same time.
        code.store_entry(words, 8 * FIRST as i32, Size::Double, now);
        code.compute_into(first, Arithmetic::Add, now, 0i64);
        code.bind(known);
        code.store_entry(words, 8 * LAST as i32, Size::Double, now);
        if self.args.ignore > 0 {
            let end = code.compute(Arithmetic::Divide, first, MS);
            code.compute_into(end, Arithmetic::Add, end, self.ignored());
            let now = code.compute(Arithmetic::Divide, now, MS);
            code.branch_wide(now, Test::Less, end, ignored);
        }
        code.count("count");
        code.count_at("byte_count", 0, length);
        code.bind(ignored);
        code.next(0);
        Ok(())
    }
    fn attach(&mut self, to: Attached) {
        match to {
            Attached::Time(now) => self.attached = now,
            Attached::Table(_, words) => {
                let (span, now) = (self.span(self.attached), self.attached);
                self.words = Some(words);
                self.set_span(span, now);
            }
            Attached::Points(_) | Attached::Started | Attached::Stopped => {}
        }
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counter: counts packets and bytes, and measures their rates.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_tables::Ewma;

/// Counts packets and bytes, and measures their rates.
///
/// The rates are exponentially weighted moving averages over epochs of a millisecond. COUNT_CALL writes a
/// handler once, when a packet makes the count exactly N. BYTE_COUNT_CALL writes a handler once, when a
/// packet makes the byte count N or more. The handler is written before that packet passes on. Resetting the
/// counts re-arms the calls. With several workers, each worker counts its own packets, and the handlers show
/// the sums. Packets in the kernel are included in the rates as if they had come evenly since a handler was last read.
///
/// # Ports
/// Input 0: packets. Output 0: the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100) -> c :: Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Counter", offload = aware, ports = "1/1", processing = "a/a", packets = "any/same", workers = replicate)]
#[class(takes_state = "the rates, which calls were made")]
#[class(build, lifecycle, handlers, effects(calls), depends = packet)]
#[class(kernel)]
pub struct Counter {
    args: Args,
    /// Packets so far.
    #[count(unit = "packets")]
    count: Count,
    /// Bytes so far.
    #[count(unit = "bytes")]
    byte_count: Count,
    /// Whether COUNT_CALL or BYTE_COUNT_CALL is set and has not written its handler yet.
    armed: bool,
    count_called: bool,
    bytes_called: bool,
    rates: Rates,
}

/// Arguments of Counter.
#[derive(Args)]
pub struct Args {
    /// A number of packets and the handler to write when the count reaches it.
    #[arg(keyword)]
    count_call: Option<CallAt<true>>,
    /// A number of bytes and the handler to write when the byte count reaches it.
    #[arg(keyword)]
    byte_count_call: Option<CallAt<false>>,
}

/// A number, and the call to make when the count of packets or bytes reaches it.
#[derive(Clone, Debug)]
pub struct CallAt<const PACKETS: bool> {
    at: u64,
    call: HandlerRef,
}

impl<const PACKETS: bool> ArgValue for CallAt<PACKETS> {
    const TYPE: &'static str = "number and handler";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (number, call) = text.split_at_checked(end).unwrap_or((text, ""));
        let name = if PACKETS { "count_call" } else { "byte_count_call" };
        let at = u64::parse(number, cx)
            .map_err(|_| ValueError::whole(format!("'{name}' first word should be unsigned (count)")))?;
        Ok(CallAt { at, call: HandlerRef::parse(call, cx)? })
    }
}

/// The rates, and recent counts that are not included in the rates yet.
///
/// Reading the clock costs more than counting. While packets come fast, the clock is therefore read only for some
/// packets. It is still read often enough that the averages include each count within a small part of an epoch (the
/// millisecond over which the rates are averaged). While packets come slowly, the clock is read for each packet.
/// Simulated time is always read for each packet.
struct Rates {
    packets: Ewma,
    bytes: Ewma,
    waiting: (u64, u64),
    /// The number of calls of `update` that come before the clock is read again.
    skip: u32,
    /// The value that was assigned to `skip` when the clock was last read. `skip` has counted down since then.
    skipped: u32,
    now: i64,
    /// The rates of packets and bytes in the kernel.
    below: (Ewma, Ewma),
}

/// The longest time for which counted packets should wait before the averages include them, in nanoseconds: 1/32 of an
/// epoch.
const WAIT: i64 = 31_250;
/// Largest number of calls of `update` without reading the clock.
const MAX_SKIP: u32 = 64;

impl Rates {
    fn new() -> Rates {
        let (packets, bytes) = (Ewma::packets(), Ewma::bytes());
        let below = (packets, bytes);
        Rates { packets, bytes, waiting: (0, 0), skip: 0, skipped: 0, now: 0, below }
    }
    #[inline]
    fn update(&mut self, packets: u64, bytes: u64, cx: &mut Cx<'_>) {
        self.waiting.0 = self.waiting.0.wrapping_add(packets);
        self.waiting.1 = self.waiting.1.wrapping_add(bytes);
        if self.skip > 0 {
            self.skip -= 1;
        } else {
            let now = cx.peek();
            self.look(now, !cx.is_simulated());
        }
    }
    fn look(&mut self, now: i64, may_skip: bool) {
        if may_skip {
            let each = now.saturating_sub(self.now) / i64::from(self.skipped.saturating_add(1));
            self.skip = u32::try_from(WAIT / each.max(1)).unwrap_or(MAX_SKIP).min(MAX_SKIP);
            self.skipped = self.skip;
        }
        self.now = now;
        self.flush(now);
    }
    fn flush(&mut self, now: i64) {
        let (packets, bytes) = std::mem::take(&mut self.waiting);
        self.packets.update(packets, now);
        self.bytes.update(bytes, now);
    }
    /// Returns the rates of packets and bytes at the time `now`.
    fn at(&mut self, now: i64) -> (f64, f64) {
        // Add the recent counts with the time of the last clock reading, because their packets came soon after that
        // reading.
        self.flush(self.now);
        // Everything that the kernel has counted until now was added before.
        self.below.0.update(0, now);
        self.below.1.update(0, now);
        (self.packets.rate(now) + self.below.0.rate(now), self.bytes.rate(now) + self.below.1.rate(now))
    }
}

impl Counter {
    fn arm(&mut self) {
        self.armed = self.args.count_call.is_some() && !self.count_called
            || self.args.byte_count_call.is_some() && !self.bytes_called;
    }
    /// Writes the handler of COUNT_CALL if the last `packets` packets made the count reach its number. Does the same
    /// for BYTE_COUNT_CALL and the byte count.
    #[cold]
    fn call(&mut self, packets: u64, cx: &mut Cx<'_>) {
        let count = self.count.get();
        let due =
            |c: &&CallAt<true>| !self.count_called && c.at <= count && c.at > count.wrapping_sub(packets);
        if let Some(c) = self.args.count_call.as_ref().filter(due) {
            self.count_called = true;
            cx.call(&c.call);
        }
        if let Some(c) =
            self.args.byte_count_call.as_ref().filter(|c| !self.bytes_called && c.at <= self.byte_count.get())
        {
            self.bytes_called = true;
            cx.call(&c.call);
        }
        self.arm();
    }
}

#[handlers]
impl Counter {
    /// Packets a second.
    #[read(merge = sum, unit = "packets/s")]
    fn rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        Rate(self.rates.at(cx.peek()).0)
    }
    /// Bits a second.
    #[read(merge = sum, unit = "bits/s")]
    fn bit_rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        Rate(self.byte_rate(cx).0 * 8.0)
    }
    /// Bytes a second.
    #[read(merge = sum, unit = "bytes/s")]
    fn byte_rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        Rate(self.rates.at(cx.peek()).1)
    }
    /// Sets counts and rates to 0 and arms the calls again.
    #[write(button)]
    fn reset(&mut self) {
        self.count.reset();
        self.byte_count.reset();
        self.rates = Rates::new();
        (self.count_called, self.bytes_called) = (false, false);
        self.arm();
    }
    /// The same as reset.
    #[write(button, uncommon)]
    fn reset_counts(&mut self) {
        self.reset();
    }
    /// The count at which a handler is called; a write sets both the count and the handler.
    #[read(merge = first)]
    fn count_call(&self) -> Option<u64> {
        self.args.count_call.as_ref().map(|c| c.at)
    }
    #[write]
    fn set_count_call(&mut self, call: CallAt<true>) {
        self.args.count_call = Some(call);
        self.count_called = false;
        self.arm();
    }
    /// The byte count at which a handler is called, and that handler.
    #[write]
    fn set_byte_count_call(&mut self, call: CallAt<false>) {
        self.args.byte_count_call = Some(call);
        self.bytes_called = false;
        self.arm();
    }
}

impl Build for Counter {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let (count, byte_count) = (Count::default(), Count::default());
        let (armed, count_called, bytes_called) = (false, false, false);
        let mut counter =
            Counter { args, count, byte_count, armed, count_called, bytes_called, rates: Rates::new() };
        counter.arm();
        Ok(counter)
    }
}

impl Action for Counter {
    #[inline]
    fn action(&mut self, p: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let (packets, bytes) = p.segments();
        self.count.add(packets);
        self.byte_count.add(bytes);
        self.rates.update(packets, bytes, cx);
        if self.armed {
            self.call(packets, cx);
        }
        Verdict::Next
    }

    fn action_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.armed {
            return cx.apply(batch, |p, cx| self.action(p, cx));
        }
        let each = batch.iter().map(Packet::segments);
        let (packets, bytes) = each.fold((0, 0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        self.count.add(packets);
        self.byte_count.add(bytes);
        self.rates.update(packets, bytes, cx);
    }
}

impl Lifecycle for Counter {
    fn effects(&self, declared: Effects) -> Effects {
        let calls = self.args.count_call.is_some() || self.args.byte_count_call.is_some();
        if calls { declared } else { Effects::empty() }
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        // After a hot swap from several workers, the greatest of their rates is kept. The rate is correct again after
        // some seconds of traffic.
        let now = cx.peek();
        if old.rates.at(now).0 >= self.rates.at(now).0 {
            std::mem::swap(&mut self.rates, &mut old.rates);
        }
        let at = |c: &Args| (c.count_call.as_ref().map(|c| c.at), c.byte_count_call.as_ref().map(|c| c.at));
        let (mine, theirs) = (at(&self.args), at(&old.args));
        self.count_called |= old.count_called && mine.0 == theirs.0;
        self.bytes_called |= old.bytes_called && mine.1 == theirs.1;
        self.arm();
        Ok(())
    }
}

impl InKernel for Counter {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.args.count_call.is_some() || self.args.byte_count_call.is_some() {
            return Err("it has COUNT_CALL or BYTE_COUNT_CALL".into());
        }
        let length = code.length();
        code.count("count");
        code.count_at("byte_count", 0, length);
        code.next(0);
        Ok(())
    }
    /// The code in the kernel does not measure rates, so what it has counted is spread over the time since the last call.
    fn counted(&mut self, name: &str, more: u64, now: i64) {
        let below = &mut self.rates.below;
        let rate = if name == "count" { &mut below.0 } else { &mut below.1 };
        rate.spread(more, now);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn packets(n: usize) -> impl Iterator<Item = Packet> {
        (0..n).map(|_| packet(&[0; 10]))
    }

    #[test]
    fn counts() {
        for batch in [1, 2, 3, 32] {
            let mut kit = Kit::<Counter>::new("").unwrap();
            for _ in 0..5 {
                assert_eq!(kit.act(packets(batch)).len(), batch);
            }
            assert_eq!(kit.read("count").unwrap(), (5 * batch).to_string());
            assert_eq!(kit.read("byte_count").unwrap(), (50 * batch).to_string());
            assert_eq!(kit.read("count_call").unwrap(), "");
            kit.write("reset", "").unwrap();
            assert_eq!((kit.read("count").unwrap(), kit.read("rate").unwrap()), ("0".into(), "0".into()));
        }
        assert!(Kit::<Counter>::new("").unwrap().element.effects(Effects::CALLS).is_empty());
        assert!(
            !Kit::<Counter>::new("COUNT_CALL 1 stop").unwrap().element.effects(Effects::CALLS).is_empty()
        );
    }

    #[test]
    fn bytes_that_were_not_captured_do_not_count() {
        let mut kit = Kit::<Counter>::new("").unwrap();
        let mut p = packet(&[0; 10]);
        p.set_anno_u32(castanet_element::spec::anno::EXTRA_LENGTH, 90);
        kit.act1(p);
        assert_eq!(kit.read("byte_count").unwrap(), "10");
    }

    #[test]
    fn rates_include_the_kernel() {
        let mut kit = Kit::<Counter>::new("").unwrap();
        for second in 1..=5 {
            kit.at(second * 1_000_000_000);
            // The simulated time starts at 1000 s.
            let now = (1000 + second) * 1_000_000_000;
            InKernel::counted(&mut kit.element, "count", 50_000, now);
            InKernel::counted(&mut kit.element, "byte_count", 5_000_000, now);
        }
        let read = |kit: &mut Kit<Counter>, handler| kit.read(handler).unwrap().parse::<f64>().unwrap();
        assert!((read(&mut kit, "rate") - 50_000.0).abs() < 50.0);
        assert!((read(&mut kit, "byte_rate") - 5_000_000.0).abs() < 5_000.0);
        kit.at(6_000_000_000);
        assert!(read(&mut kit, "rate") < 10.0);
    }

    #[test]
    fn ten_packets_a_second() {
        let mut kit = Kit::<Counter>::new("").unwrap();
        for i in 0..40 {
            kit.at(i * 100_000_000);
            kit.act1(packet(&[0; 64]));
        }
        kit.at(4_000_000_000);
        for (handler, value) in [("rate", "7.8125"), ("byte_rate", "500"), ("bit_rate", "4000")] {
            assert_eq!(kit.read(handler).unwrap(), value);
        }
    }

    #[test]
    fn calls_once_at_exactly_n() {
        for batch in [1, 2, 3, 32] {
            let mut kit = Kit::<Counter>::new("COUNT_CALL 5 stop 2, BYTE_COUNT_CALL 75 go").unwrap();
            let mut calls = Vec::new();
            for _ in 0..96 / batch {
                kit.act(packets(batch));
                calls.extend(kit.calls());
            }
            let want = [(None, "stop".to_string(), "2".to_string()), (None, "go".to_string(), String::new())];
            assert_eq!(calls, want);
            assert_eq!(kit.read("count_call").unwrap(), "5");
            kit.write("reset_counts", "").unwrap();
            kit.act(packets(5));
            assert_eq!(kit.calls(), want[..1]);
            kit.write("count_call", "3 late").unwrap();
            kit.act(packets(2));
            assert!(kit.calls().is_empty(), "a number below the count never comes");
            kit.write("count_call", "8 now").unwrap();
            kit.act(packets(1));
            assert_eq!(kit.calls().iter().map(|c| c.1.as_str()).collect::<Vec<_>>(), ["now", "go"]);
        }
    }

    #[test]
    fn errors() {
        let first = "'count_call' first word should be unsigned (count)";
        assert_eq!(Kit::<Counter>::new("COUNT_CALL x stop").err().unwrap(), [first]);
        assert_eq!(
            Kit::<Counter>::new("COUNT_CALL 3").err().unwrap(),
            ["COUNT_CALL: expected a handler name"]
        );
        let mut kit = Kit::<Counter>::new("").unwrap();
        assert_eq!(kit.write("count_call", "2s.x").unwrap_err().to_string(), first);
        assert_eq!(kit.write("count_call", "2 s.x").unwrap_err().to_string(), "no element named 's'");
    }

    /// Simulates one second of packets, `gap` nanoseconds apart. Returns how often the clock was read, and
    /// the measured rate.
    fn looks(gap: i64) -> (usize, f64) {
        let mut rates = Rates::new();
        let (start, mut looks) = (1_000_000_000_000, 0);
        for i in 0..1_000_000_000 / gap {
            rates.waiting.0 += 1;
            if rates.skip > 0 {
                rates.skip -= 1;
            } else {
                rates.look(start + i * gap, true);
                looks += 1;
            }
        }
        (looks, rates.at(start + 1_000_000_000).0)
    }

    #[test]
    fn fast_packets_share_a_look_at_the_clock_and_slow_ones_do_not() {
        for (gap, most) in [(1000, 32_000), (100_000, 10_000), (100_000_000, 10)] {
            let (looks, rate) = looks(gap);
            assert!(looks <= most, "{looks} at {gap}");
            let mut exact = Ewma::packets();
            (0..1_000_000_000 / gap).for_each(|i| exact.update(1, 1_000_000_000_000 + i * gap));
            let exact = exact.rate(1_001_000_000_000);
            assert!((rate / exact - 1.0).abs() < 0.02, "{rate} for {exact}");
        }
    }
}

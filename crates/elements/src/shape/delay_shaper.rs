// SPDX-License-Identifier: MIT OR Apache-2.0
//! DelayShaper: delays packets on a pull path.

use super::gate::Gate;
use castanet_element::prelude::*;

/// Passes each packet no sooner than DELAY after the time in its timestamp.
///
/// If a packet has no timestamp, or a timestamp below one second, DELAY counts from when it is pulled. The element
/// holds the next packet until it may leave; the packets behind it stay upstream. The timestamp of a packet is set to
/// the time at which it leaves. Pulling tasks sleep until the held packet may leave.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (pull): the same packets, later.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 20) -> Queue -> DelayShaper(0.5) -> Unqueue -> Counter(COUNT_CALL 20 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(holds))]
#[class(name = "DelayShaper", ports = "1/1", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the packet that waits")]
#[class(lifecycle, capabilities(EmptyNotifier))]
pub struct DelayShaper {
    args: Args,
    /// The waiting packet, and the time at which it may leave.
    held: Option<(Packet, i64)>,
    gate: Gate,
}

/// Arguments of DelayShaper.
#[derive(Args)]
pub struct Args {
    /// Least time from the timestamp of a packet until it leaves.
    #[arg(handler = "rw.")]
    delay: Interval,
}

impl Element for DelayShaper {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }

    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.peek();
        let (mut p, at) = match self.held.take() {
            Some(held) => held,
            None => {
                let Some(p) = cx.pull_one(0) else {
                    self.gate.found_empty(cx);
                    return None;
                };
                let at = release(&p, self.args.delay, now);
                (p, at)
            }
        };
        if at > now {
            self.held = Some((p, at));
            self.gate.close_until(Some(at), cx);
            return None;
        }
        p.set_timestamp(now);
        Some(p)
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.gate.woken(cx);
        Turn::Sleep
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.gate.open(cx);
    }
}

/// Timestamps below this, one second in nanoseconds, are treated as missing.
const SECOND: i64 = 1_000_000_000;

/// Returns when a packet that was pulled at `now` may leave.
pub(super) fn release(p: &Packet, delay: Interval, now: i64) -> i64 {
    let from = if (0..SECOND).contains(&p.timestamp()) { now } else { p.timestamp() };
    from.saturating_add(delay.0)
}

impl Lifecycle for DelayShaper {
    fn held(&self) -> u64 {
        u64::from(self.held.is_some())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.gate.initialise(cx);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some((p, _)) = self.held.take() {
            cx.drop(p, Reason::Stopped);
        }
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(held) = old.held.take() {
            self.held = Some(held);
            cx.clear_timer(0);
            self.gate.open(cx);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const START: i64 = 1_000_000_000_000;
    const MS: i64 = 1_000_000;

    #[test]
    fn each_packet_leaves_at_its_time() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<DelayShaper>::new("0.1").unwrap();
            for (i, ms) in [(0, 0), (1, 30), (2, 30), (3, 10), (4, 400)] {
                let mut p = packet(&[i]);
                p.set_timestamp(START + ms * MS);
                kit.supply(0, p);
            }
            let (mut got, mut now) = (Vec::new(), 0);
            while got.len() < 5 {
                if kit.note(Capability::EmptyNotifier) {
                    for p in kit.pull(0, n) {
                        assert_eq!(p.timestamp(), START + now);
                        got.push((p.data()[0], now / MS));
                    }
                } else {
                    now = kit.next_timer().unwrap();
                    kit.expire().unwrap();
                }
            }
            assert_eq!(got, [(0, 100), (1, 130), (2, 130), (3, 130), (4, 500)]);
        }
    }

    /// A timestamp below one second is treated as missing. The first valid timestamp is exactly one second.
    #[test]
    fn timestamps_below_one_second_count_as_none() {
        let at = |time| {
            let mut p = packet(b"x");
            p.set_timestamp(time);
            release(&p, Interval(5), 7_000_000_000)
        };
        for time in [0, 1, 500_000_000, 999_999_999] {
            assert_eq!(at(time), 7_000_000_005, "{time}");
        }
        assert_eq!((at(1_000_000_000), at(-1)), (1_000_000_005, 4));
    }

    #[test]
    fn packets_without_time_and_changes() {
        let mut kit = Kit::<DelayShaper>::new("2s").unwrap();
        assert!(kit.pull(0, 1).is_empty() && !kit.note(Capability::EmptyNotifier), "nothing upstream");
        kit.at(5000 * MS);
        kit.supply(0, packet(b"x"));
        kit.task();
        assert!(kit.note(Capability::EmptyNotifier) && kit.pull(0, 3).is_empty());
        assert_eq!(kit.next_timer(), Some(7000 * MS));
        kit.write("delay", "0").unwrap();
        kit.supply(0, packet(b"y"));
        kit.task();
        assert!(!kit.note(Capability::EmptyNotifier), "what is held waits on");
        kit.expire().unwrap();
        assert_eq!(kit.pull(0, 9).len(), 2);
        assert_eq!(kit.read("delay").unwrap(), "0s");
        kit.write("delay", "1").unwrap();
        kit.supply(0, packet(b"z"));
        assert!(kit.pull(0, 1).is_empty());
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 1);
        assert!(Kit::<DelayShaper>::new("").is_err() && Kit::<DelayShaper>::new("x").is_err());
    }
}

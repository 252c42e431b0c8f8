// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimedSink: drops a packet at regular intervals.

use castanet_element::prelude::*;

/// Pulls and drops one packet every INTERVAL.
///
/// The first pull is one INTERVAL after the start.
///
/// # Ports
/// Input 0 (pull): packets to drop.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20) -> Queue -> Counter(COUNT_CALL 10 stop) -> TimedSink(0.1);
/// ```
#[derive(Class)]
#[class(ends(Discarded))]
#[class(name = "TimedSink", ports = "1/0", processing = "l/l", packets = "any/", workers = exclusive)]
#[class(takes_state = "the time of the next pull")]
#[class(build, lifecycle, drops(Discarded))]
pub struct TimedSink {
    args: Args,
    /// When the timer will expire, in nanoseconds.
    next: i64,
}

/// Arguments of TimedSink.
#[derive(Args)]
pub struct Args {
    /// Time between pulls.
    #[arg(default = Interval(500_000_000), min = Interval::SHORTEST_PERIOD, show = "0.5", handler = "rw")]
    interval: Interval,
}

impl Build for TimedSink {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(TimedSink { args, next: 0 })
    }
}

impl Element for TimedSink {
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        if let Some(p) = cx.pull_one(0) {
            cx.drop(p, Reason::Discarded);
        }
        // The next pull is due one INTERVAL after this one was due, so that delays do not add up. After a long delay,
        // at most one missed pull is made up for.
        let now = cx.peek();
        self.next = self.next.saturating_add(self.args.interval.0).max(now);
        cx.set_timer(0, self.next);
    }
}

impl Lifecycle for TimedSink {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.next = cx.now().saturating_add(self.args.interval.0);
        cx.set_timer(0, self.next);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.next = old.next;
        cx.set_timer(0, self.next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn one_every_interval() {
        let mut kit = Kit::<TimedSink>::new("").unwrap();
        (0..3).for_each(|_| kit.supply(0, packet(b"x")));
        for i in 1..=4 {
            assert_eq!(kit.next_timer().unwrap() / 1_000_000, 500 * i);
            assert!(kit.expire().unwrap().is_empty());
            assert_eq!(kit.dropped(Reason::Discarded), i.min(3) as u64);
        }
        kit.write("interval", "2").unwrap();
        kit.expire().unwrap();
        assert_eq!(
            (kit.next_timer().unwrap() / 1_000_000, kit.read("interval").unwrap()),
            (4500, "2s".into())
        );
        kit.at(60_000_000_000);
        kit.expire().unwrap();
        assert_eq!(kit.next_timer().unwrap() / 1_000_000, 60_000, "late, and not thirty times at once");
        assert!(kit.write("interval", "0").is_err());
        assert_eq!(Kit::<TimedSink>::new("0").err().unwrap(), ["INTERVAL: must be at least 1us"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! TimedUnqueue: pulls packets and pushes them in periodic bursts.

use castanet_element::prelude::*;

/// Pulls at most BURST packets every INTERVAL and pushes them on.
///
/// The first packets leave one INTERVAL after the start. While there are no packets upstream, neither the task nor the
/// timer runs. The next packets to arrive leave at the end of the interval in which they arrive.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100) -> Queue -> TimedUnqueue(0.1, 10) -> Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "TimedUnqueue", offload = none, aliases("Burster"), ports = "1/1", processing = "l/h", packets = "any/same")]
#[class(takes_state = "the time of the next burst, what is left of this one")]
#[class(workers = exclusive, task, build, lifecycle)]
pub struct TimedUnqueue {
    args: Args,
    burst: u32,
    /// The number of packets that may still leave in this interval.
    left: usize,
    /// The time at which the timer expires, in nanoseconds. If the timer is not set, the time at which it last expired.
    next: i64,
    /// True while the timer is off because there were no packets upstream when it last expired.
    resting: bool,
    upstream: Signal,
    batch: Batch,
}

/// Arguments of TimedUnqueue.
#[derive(Args)]
pub struct Args {
    /// The time from one burst to the next.
    #[arg(min = Nanos::SHORTEST_PERIOD)]
    interval: Nanos,
    /// The maximum number of packets in a burst; default: 1, or 8 under the alias Burster.
    #[arg(show = "1")]
    burst: Option<u32>,
}

impl Build for TimedUnqueue {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let burst = args.burst.unwrap_or(if cx.written_class == "Burster" { 8 } else { 1 });
        Ok(TimedUnqueue {
            args,
            burst,
            left: 0,
            next: 0,
            resting: false,
            upstream: Signal::always(),
            batch: Batch::new(),
        })
    }
}

impl TimedUnqueue {
    /// Sets the timer to the end of the interval that contains `now`.
    fn rearm(&mut self, now: i64, cx: &mut Cx<'_>) {
        let interval = self.args.interval.0.max(1);
        let behind = now.saturating_sub(self.next).max(0) / interval;
        self.next = self.next.saturating_add(behind.saturating_add(1).saturating_mul(interval));
        cx.set_timer(0, self.next);
    }
}

impl Element for TimedUnqueue {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let n = self.left.min(cx.limit());
        if n > 0 {
            // A burst ends at the first pull that finds no packet. A call that pulls several packets does not report
            // which of its pulls found none, so pull packets one by one.
            while self.batch.len() < n
                && let Some(p) = cx.pull_one(0)
            {
                self.batch.push(p);
            }
            let got = self.batch.len();
            cx.forward(0, &mut self.batch);
            self.left = if got == n { self.left - n } else { 0 };
            if self.left > 0 {
                return Turn::More;
            }
        }
        if std::mem::take(&mut self.resting) {
            let now = cx.peek();
            self.rearm(now, cx);
        }
        Turn::Sleep
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        if !cx.is_on(&self.upstream) {
            self.resting = true;
            return;
        }
        let now = cx.peek();
        self.left = self.burst as usize;
        self.rearm(now, cx);
        cx.schedule();
    }
}

impl Lifecycle for TimedUnqueue {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        cx.scheduled = false;
        self.upstream = cx.upstream(0);
        self.next = cx.now().saturating_add(self.args.interval.0);
        cx.set_timer(0, self.next);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        (self.next, self.resting) = (old.next, old.resting);
        self.left = old.left.min(self.burst as usize);
        if self.resting {
            cx.clear_timer(0);
        } else {
            cx.set_timer(0, self.next);
        }
        // Packets that arrived before the swap have woken only the task of the old element, so wake this one.
        cx.schedule();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn bursts_come_at_their_times() {
        for limit in [1, 2, 3, 32] {
            let mut kit = Kit::<TimedUnqueue>::new("0.25, 5").unwrap().limit(limit);
            (0..12).for_each(|i| kit.supply(0, packet(&[i])));
            let (mut next, mut counts) = (0, Vec::new());
            for turn in 1..=3 {
                assert_eq!(kit.next_timer().unwrap() / 1_000_000, 250 * turn);
                assert!(kit.expire().unwrap().is_empty() && kit.woken());
                let mut count = 0;
                loop {
                    let (turn, out) = kit.task();
                    assert!(out.len() <= limit);
                    for (_, p) in out {
                        assert_eq!(p.data(), [next]);
                        (next, count) = (next + 1, count + 1);
                    }
                    if turn == Turn::Sleep {
                        break;
                    }
                }
                counts.push(count);
            }
            assert_eq!(counts, [5, 5, 2]);
        }
    }

    #[test]
    fn rests_while_there_is_nothing() {
        let mut kit = Kit::<TimedUnqueue>::new("1").unwrap();
        assert!(kit.expire().unwrap().is_empty());
        assert!(!kit.woken() && kit.next_timer().is_none(), "nothing upstream, no timer");
        kit.at(7_300_000_000);
        kit.supply(0, packet(b"x"));
        assert_eq!((kit.task().1.len(), kit.next_timer().unwrap() / 1_000_000), (0, 8000));
        kit.expire().unwrap();
        assert_eq!(kit.task().1.len(), 1);
        for (bad, message) in
            [("0", "INTERVAL: must be at least 0.000001"), ("", "INTERVAL: required argument missing")]
        {
            assert_eq!(Kit::<TimedUnqueue>::new(bad).err().unwrap(), [message]);
        }
    }
}

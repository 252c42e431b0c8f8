// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel: drops packets if they wait too long in a queue.

use super::lengths::{Lengths, Queues};
use castanet_element::prelude::*;

/// Drops packets from a queue if waits have been longer than TARGET for at least INTERVAL (CoDel, RFC 8289).
///
/// The wait of a packet begins at its timestamp: put a `SetTimestamp` before the queue if no element before the queue
/// sets timestamps. A packet without a timestamp counts as not having waited. The first packet is dropped when all
/// waits have been longer than TARGET for a whole INTERVAL. After that, packets are dropped at intervals of INTERVAL
/// divided by the square root of the number of drops, until a packet has waited less than TARGET (RFC 8289 section 5).
/// Nothing is dropped while at most one packet is left in the queues upstream. A pull returns the next packet in place
/// of a dropped one.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (pull): packets that are not dropped.
///
/// # Example
/// ```click
/// RatedSource(RATE 1000, LIMIT 900, STOP true) -> Queue -> CoDel -> RatedUnqueue(500) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "CoDel", ports = "1/1", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, build, lifecycle, handlers, drops(EarlyDrop), takes_state = "what the control law remembers")]
pub struct CoDel {
    args: Args,
    lengths: Lengths,
    law: Law,
    /// Packets dropped.
    #[count(unit = "packets")]
    drops: Count,
}

/// Arguments of CoDel.
#[derive(Args)]
pub struct Args {
    /// How long packets may wait.
    #[arg(default = Nanos(5_000_000), show = "5ms")]
    target: Nanos,
    /// How long waits may exceed TARGET before packets are dropped.
    #[arg(default = Nanos(100_000_000), show = "100ms")]
    interval: Nanos,
    /// The names of the queues whose lengths are added up; the nearest queues upstream if not given.
    #[arg(keyword)]
    queues: Option<Queues>,
}

/// The state of the control law (RFC 8289 section 5.3). Times are nanoseconds since 1970.
#[derive(Clone, Default)]
struct Law {
    /// When dropping may begin: one interval after waits became too long. `None` while waits are short enough.
    above: Option<i64>,
    dropping: bool,
    /// When the next packet is to be dropped.
    next: i64,
    /// The number of drops, which sets the drop rate. Counts up from `first_count` when dropping begins.
    count: u32,
    /// The value of `count` when dropping began: 1, or more if dropping resumed soon after it had ended.
    first_count: u32,
}

/// Checks that TARGET is not negative, and that INTERVAL is positive.
fn check(target: Nanos, interval: Nanos) -> Result<(), ValueError> {
    match (target.0, interval.0) {
        (..0, _) => Err("TARGET: must not be negative".into()),
        (_, ..=0) => Err("INTERVAL: must be positive".into()),
        _ => Ok(()),
    }
}

impl Build for CoDel {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        check(args.target, args.interval)?;
        Ok(CoDel { args, lengths: Lengths::default(), law: Law::default(), drops: Count::default() })
    }
}

impl CoDel {
    /// Pulls the next packet. Returns the packet, and whether the packet may be dropped.
    #[inline]
    fn next(&mut self, now: i64, cx: &mut Cx<'_>) -> Option<(Packet, bool)> {
        let Some(p) = cx.pull_one(0) else {
            self.law.above = None;
            return None;
        };
        let waited = if p.timestamp() == 0 { 0 } else { now.saturating_sub(p.timestamp()) };
        // RFC 8289 drops nothing while the queue holds no more bytes than one packet of maximum size. Queues here
        // count packets, so the limit is one packet.
        if waited < self.args.target.0 || self.lengths.total() <= 1 {
            self.law.above = None;
            return Some((p, false));
        }
        let interval = self.args.interval.0;
        let above = *self.law.above.get_or_insert(now.saturating_add(interval));
        Some((p, now >= above))
    }

    fn discard(&mut self, p: Packet, cx: &mut Cx<'_>) {
        self.drops.add(1);
        cx.drop(p, Reason::EarlyDrop);
    }

    /// Returns the time of the next drop, if the last drop was at `t`.
    fn law(&self, t: i64) -> i64 {
        let pause = self.args.interval.0 as f64 / f64::from(self.law.count.max(1)).sqrt();
        // At least 1 ns, so that the time advances even with a tiny interval.
        t.saturating_add((pause as i64).max(1))
    }

    /// Drops packets while drops are due, and returns the next packet. Returns none if no packet is left, or if
    /// `try_again` allows no further pull.
    #[cold]
    fn drop_due(&mut self, p: Packet, now: i64, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut p = p;
        while now >= self.law.next {
            self.discard(p, cx);
            self.law.count = self.law.count.saturating_add(1);
            if !cx.try_again() {
                // No further pull is allowed now, so return no packet. The next call continues dropping.
                self.law.next = self.law(self.law.next);
                return None;
            }
            let Some((following, may_drop)) = self.next(now, cx) else {
                self.law.dropping = false;
                return None;
            };
            p = following;
            if !may_drop {
                self.law.dropping = false;
                break;
            }
            self.law.next = self.law(self.law.next);
        }
        Some(p)
    }

    /// Drops a packet, begins the dropping state, and returns the next packet.
    #[cold]
    fn begin(&mut self, p: Packet, now: i64, cx: &mut Cx<'_>) -> Option<Packet> {
        self.discard(p, cx);
        let following = self.next(now, cx);
        self.law.dropping = true;
        // If dropping ended only recently, it resumes at the rate at which it ended.
        let before = self.law.count.saturating_sub(self.law.first_count);
        let short = now.saturating_sub(self.law.next) < self.args.interval.0.saturating_mul(16);
        self.law.count = if before > 1 && short { before } else { 1 };
        self.law.next = self.law(now);
        self.law.first_count = self.law.count;
        following.map(|f| f.0)
    }
}

impl Element for CoDel {
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        for _ in 0..max {
            let Some(p) = self.pull_one(0, cx) else { break };
            into.push(p);
        }
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        cx.with_tries(|cx| self.pull_next(cx))
    }
}

impl CoDel {
    #[inline]
    fn pull_next(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.peek();
        let Some((p, may_drop)) = self.next(now, cx) else {
            self.law.dropping = false;
            return None;
        };
        match (self.law.dropping, may_drop) {
            (true, true) => self.drop_due(p, now, cx),
            (false, true) => self.begin(p, now, cx),
            (_, false) => {
                self.law.dropping = false;
                Some(p)
            }
        }
    }
}

#[handlers]
impl CoDel {
    /// How long packets may wait.
    #[read]
    fn codel_target(&self) -> Elapsed {
        Elapsed(self.args.target.0)
    }
    #[write]
    fn set_codel_target(&mut self, target: Nanos) -> Result<(), HandlerError> {
        check(target, self.args.interval)?;
        self.args.target = target;
        Ok(())
    }
    /// How long waits may exceed the target before packets are dropped.
    #[read]
    fn codel_interval(&self) -> Elapsed {
        Elapsed(self.args.interval.0)
    }
    #[write]
    fn set_codel_interval(&mut self, interval: Nanos) -> Result<(), HandlerError> {
        check(self.args.target, interval)?;
        self.args.interval = interval;
        Ok(())
    }
    /// The number of packets in the queues and the number of drops, one on each line.
    #[read]
    fn stats(&self) -> Table {
        Table(format!("{} current queue\n{} drops\n", self.lengths.total(), self.drops.get()))
    }
    /// The queues whose lengths are added up, one on each line.
    #[read]
    fn queues(&self, cx: &mut Cx<'_>) -> Table {
        Table(self.lengths.names("\n", cx) + "\n")
    }
    /// The configuration string with the current settings.
    #[read]
    fn config(&self, cx: &mut Cx<'_>) -> String {
        let (target, interval) = (self.args.target.show(), self.args.interval.show());
        format!("{target}, {interval}{}", self.lengths.argument(cx))
    }
}

impl Lifecycle for CoDel {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.lengths = Lengths::find(self.args.queues.as_ref(), true, cx)?;
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.law = old.law.clone();
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/codel.rs"]
mod tests;

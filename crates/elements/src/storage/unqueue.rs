// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unqueue: pulls packets and pushes them.

use castanet_element::prelude::*;

/// Pulls packets and pushes them on.
///
/// Its task pulls at most BURST packets a turn and sleeps while there are no packets upstream.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> Queue -> Unqueue(BURST 8) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Unqueue", ports = "1/1", processing = "l/h", packets = "any/same", workers = replicate)]
#[class(task, lifecycle, handlers, depends = packet)]
pub struct Unqueue {
    args: Args,
    /// Packets pushed on.
    #[count(unit = "packets")]
    count: Count,
    /// The number of packets of the current burst that have been moved so far.
    done: usize,
    upstream: Signal,
    batch: Batch,
}

/// Arguments of Unqueue.
#[derive(Args)]
pub struct Args {
    /// The maximum number of packets to pull in a turn; negative for no limit.
    #[arg(default = 1, handler = "rw")]
    burst: i32,
    /// Whether the task pulls packets.
    #[arg(keyword, default = true, handler = "rwc")]
    active: bool,
    /// The maximum number of packets to pull in total; negative for no limit.
    #[arg(keyword, default = -1, handler = "rw")]
    limit: i64,
}

/// The maximum number of packets to pull in a turn if BURST is negative, so that other tasks also get their turns.
const UNLIMITED: usize = 1 << 16;

impl Element for Unqueue {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        if self.args.burst == 1 && self.args.limit < 0 && self.args.active {
            // A burst of one packet is complete after one pull, so `done` is always 0.
            self.done = 0;
            if cx.quantum() > 1 {
                return self.pull_several(cx);
            }
            let Some(p) = cx.pull_one(0) else { return self.found_nothing(cx) };
            self.count.add(1);
            cx.emit(0, p);
            return Turn::Again;
        }
        self.pull_burst(cx)
    }
    fn plain_turns(&self, _: &Cx<'_>) -> usize {
        let plain = self.args.burst == 1 && self.args.limit < 0 && self.args.active;
        if plain { usize::MAX } else { 0 }
    }
}

impl Unqueue {
    #[cold]
    fn found_nothing(&self, cx: &Cx<'_>) -> Turn {
        if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep }
    }

    /// Pulls the packets of several turns, one for each turn.
    #[inline(never)]
    fn pull_several(&mut self, cx: &mut Cx<'_>) -> Turn {
        cx.pull(0, cx.quantum(), &mut self.batch);
        self.count.add(self.batch.len() as u64);
        cx.forward(0, &mut self.batch);
        Turn::Again
    }

    #[inline(never)]
    fn pull_burst(&mut self, cx: &mut Cx<'_>) -> Turn {
        let burst = usize::try_from(self.args.burst).unwrap_or(UNLIMITED);
        let mut n = burst.saturating_sub(self.done).min(cx.limit());
        if let Ok(limit) = u64::try_from(self.args.limit) {
            n = n.min(usize::try_from(limit.saturating_sub(self.count.get())).unwrap_or(usize::MAX));
        }
        if n == 0 || !self.args.active {
            return Turn::Sleep;
        }
        let got = if n == 1 {
            cx.pull_one(0).map_or(0, |p| {
                cx.emit(0, p);
                1
            })
        } else {
            cx.pull(0, n, &mut self.batch);
            let got = self.batch.len();
            cx.forward(0, &mut self.batch);
            got
        };
        self.count.add(got as u64);
        self.done += got;
        if got == n && self.done < burst {
            return Turn::More;
        }
        self.done = 0;
        // If a pull returned fewer packets than requested, act as if a further pull had found no packet.
        if got < n && !cx.is_on(&self.upstream) { Turn::Sleep } else { Turn::Again }
    }
}

#[handlers]
impl Unqueue {
    /// Sets the count of packets to 0, so that LIMIT more packets may pass.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.count.reset();
        cx.schedule();
    }
    /// Does the same as `reset`.
    #[write(button)]
    fn reset_counts(&mut self, cx: &mut Cx<'_>) {
        self.reset(cx);
    }
}

impl Lifecycle for Unqueue {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        cx.schedule();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    fn kit(config: &str, packets: u8) -> Kit<Unqueue> {
        let mut kit = Kit::new(config).unwrap();
        for i in 0..packets {
            kit.supply(0, packet(&[i]));
        }
        kit
    }

    #[test]
    fn bursts_and_limits() {
        for (config, turns) in [
            ("", &[1, 1, 1, 1][..]),
            ("1", &[1, 1]),
            ("4", &[4, 4, 2, 0]),
            ("-1", &[8, 2, 0]),
            ("100", &[8, 2, 0]),
            ("3, LIMIT 5", &[3, 2, 0, 0]),
            ("LIMIT 0", &[0]),
            ("0", &[0]),
            ("ACTIVE false", &[0]),
        ] {
            let mut kit = kit(config, 10).limit(8);
            let mut next = 0;
            for &n in turns {
                let (_, out) = kit.task();
                assert_eq!(out.len(), n, "{config}");
                for (_, p) in out {
                    assert_eq!(p.data(), [next]);
                    next += 1;
                }
            }
            assert_eq!(kit.read("count").unwrap(), turns.iter().sum::<usize>().to_string());
        }
    }

    #[test]
    fn sleeps_when_it_may_and_wakes_by_handlers() {
        let mut k = kit("LIMIT 2, BURST 9", 5);
        assert_eq!((k.task().0, k.task().0), (Turn::More, Turn::Sleep));
        k.write("limit", "3").unwrap();
        assert!(k.woken());
        assert_eq!((k.task().1.len(), k.task().0), (1, Turn::Sleep));
        k.write("reset", "").unwrap();
        assert!(k.woken());
        assert_eq!(k.task().1.len(), 2);
        k.write("active", "false").unwrap();
        k.write("limit", "-1").unwrap();
        k.supply(0, packet(b"x"));
        assert_eq!(k.task().0, Turn::Sleep);
        k.write("active", "true").unwrap();
        assert_eq!(k.task().1.len(), 1);
        assert_eq!(kit("", 0).task().0, Turn::Sleep, "nothing upstream");
        assert_eq!(Kit::<Unqueue>::new("x").err().unwrap(), ["BURST: invalid number"]);
    }
}

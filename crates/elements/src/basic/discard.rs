// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discard: drops packets.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Drops every packet.
///
/// If its input is push, Discard drops packets as they arrive. If its input is pull, its task pulls and drops up to
/// BURST packets per turn, and sleeps while there are no packets upstream. Buffers always return to their pools, even
/// under the alias `DiscardNoFree`.
///
/// # Ports
/// Input 0: packets to drop, push or pull.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> Queue -> Discard(BURST 8);
/// ```
#[derive(Class)]
#[class(ends(Discarded))]
#[class(name = "Discard", offload = aware, ports = "1/0", processing = "a/a", packets = "any/", workers = replicate)]
#[class(aliases("DiscardNoFree"), task, build, lifecycle, handlers, drops(Discarded), depends = packet)]
#[class(kernel)]
pub struct Discard {
    args: Args,
    /// Packets dropped.
    #[count(unit = "packets")]
    count: Count,
    /// Whether the input is pull.
    pulls: bool,
    /// Packets dropped so far in the current burst.
    done: usize,
    upstream: Signal,
    batch: Batch,
}

/// Arguments of Discard.
#[derive(Args)]
pub struct Args {
    /// Whether the task pulls packets.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
    /// The maximum number of packets that the task pulls in a turn.
    #[arg(keyword, default = 1)]
    burst: u32,
}

impl Build for Discard {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let pulls = !cx.is_push_input(0);
        let (count, upstream, batch) = (Count::default(), Signal::always(), Batch::new());
        Ok(Discard { args, count, pulls, done: 0, upstream, batch })
    }
}

impl Discard {
    #[cold]
    #[inline(never)]
    fn discard_super(&mut self, p: Packet, cx: &mut Cx<'_>) {
        self.count.add(p.segments().0);
        cx.drop(p, Reason::Discarded);
    }
}
impl Element for Discard {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(cx.drop_counted(batch, Reason::Discarded));
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        if p.has_offload() {
            return self.discard_super(p, cx);
        }
        self.count.add(1);
        cx.drop(p, Reason::Discarded);
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let burst = self.args.burst as usize;
        let n = cx.limit().min(burst.saturating_sub(self.done));
        if !self.args.active || n == 0 {
            return Turn::Sleep;
        }
        cx.pull(0, n, &mut self.batch);
        let got = self.batch.len();
        self.count.add(cx.drop_counted(&mut self.batch, Reason::Discarded));
        self.done += got;
        if got == n && self.done < burst {
            return Turn::More;
        }
        self.done = 0;
        if got < n && !cx.is_on(&self.upstream) { Turn::Sleep } else { Turn::Again }
    }
}

#[handlers]
impl Discard {
    /// Sets the count of dropped packets to 0.
    #[write(button)]
    fn reset_counts(&mut self) {
        self.count.reset();
    }
}

impl Lifecycle for Discard {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        cx.scheduled = self.pulls;
        if self.pulls {
            self.upstream = cx.upstream(0);
        }
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if self.pulls {
            cx.schedule();
        }
        Ok(())
    }
}

impl InKernel for Discard {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        if self.pulls {
            return Err("it pulls packets".into());
        }
        code.count("count");
        code.drop(Reason::Discarded as u16);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn drops_what_is_pushed() {
        let mut kit = Kit::<Discard>::new("").unwrap();
        for n in [1, 2, 3, 32] {
            kit.push(0, (0..n).map(|_| packet(b"x")));
        }
        assert_eq!((kit.read("count").unwrap().as_str(), kit.dropped(Reason::Discarded)), ("38", 38));
        kit.write("reset_counts", "").unwrap();
        assert_eq!(kit.read("count").unwrap(), "0");
    }

    #[test]
    fn pulls_bursts() {
        let mut kit = Kit::<Discard>::new("BURST 3").unwrap();
        for _ in 0..7 {
            kit.supply(0, packet(b"x"));
        }
        for count in ["3", "6", "7", "7"] {
            assert_eq!(kit.task().0, Turn::Again, "the notifier upstream is still on");
            assert_eq!(kit.read("count").unwrap(), count);
        }
        kit.supply(0, packet(b"x"));
        kit.write("active", "false").unwrap();
        assert_eq!(kit.task().0, Turn::Sleep);
        assert_eq!(kit.read("count").unwrap(), "7");
        let mut kit = Kit::<Discard>::new("BURST 64").unwrap().limit(2);
        for _ in 0..7 {
            kit.supply(0, packet(b"x"));
        }
        assert_eq!(kit.task().0, Turn::More);
        assert_eq!(kit.read("count").unwrap(), "2", "a turn keeps to the limit of the run loop");
        assert!(Kit::<Discard>::new("BURST x").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unqueue2: pulls packets and pushes them while a queue downstream has free space.

use castanet_element::prelude::*;

/// Pulls packets and pushes them on while a queue downstream has free space.
///
/// Its task pulls at most BURST packets a turn. When all queues downstream are full, the task ends its turn and sleeps.
/// It also sleeps while there are no packets upstream. If there is no queue downstream, Unqueue2 works like `Unqueue`.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> Queue -> Unqueue2(8) -> Queue(5) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Unqueue2", ports = "1/1", processing = "l/h", packets = "any/same", workers = replicate)]
#[class(task, lifecycle)]
pub struct Unqueue2 {
    args: Args,
    /// Packets pushed on.
    #[count(unit = "packets")]
    packets: Count,
    /// The number of packets of the current burst that have been moved so far.
    done: u32,
    upstream: Signal,
    downstream: Signal,
}

/// Arguments of Unqueue2.
#[derive(Args)]
pub struct Args {
    /// The maximum number of packets to pull in a turn; negative for no limit.
    #[arg(default = 1)]
    burst: i32,
    /// Accepted for old configurations, but ignored: the nearest queues downstream are always used.
    #[arg(keyword, name = "QUEUES")]
    _queues: Option<String>,
    /// Accepted for old configurations, but ignored: nothing is ever printed.
    #[arg(keyword, name = "QUIET", default = false)]
    _quiet: bool,
}

/// The maximum number of packets to pull in a turn if BURST is negative, so that other tasks also get their turns.
const UNLIMITED: u32 = 1 << 16;

impl Element for Unqueue2 {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let burst = u32::try_from(self.args.burst).unwrap_or(UNLIMITED);
        if burst == 0 {
            return Turn::Sleep;
        }
        // Move one packet at a time, because the queue reports its new free space only after the packet has arrived.
        if let Err(turn) = cx.room(&self.downstream, 1, false) {
            self.done = 0;
            return turn;
        }
        let Some(p) = cx.pull_one(0) else {
            self.done = 0;
            return if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep };
        };
        self.packets.add(1);
        cx.emit(0, p);
        self.done += 1;
        if self.done < burst {
            return Turn::More;
        }
        self.done = 0;
        Turn::Again
    }
}

impl Lifecycle for Unqueue2 {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        self.downstream = cx.downstream(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn bursts() {
        for (config, turns) in [
            ("", &[1, 1, 1][..]),
            ("4, QUEUES q r, QUIET true", &[4, 4, 2, 0]),
            ("-1", &[10, 0]),
            ("100", &[10, 0]),
            ("0", &[0]),
        ] {
            let mut kit = Kit::<Unqueue2>::new(config).unwrap();
            for i in 0..10 {
                kit.supply(0, packet(&[i]));
            }
            let mut next = 0;
            for &n in turns {
                // A turn ends when the task returns anything other than `Turn::More`.
                let mut out = Vec::new();
                loop {
                    let (turn, some) = kit.task();
                    out.extend(some);
                    if turn != Turn::More {
                        break;
                    }
                }
                assert_eq!(out.len(), n, "{config}");
                for (_, p) in out {
                    assert_eq!(p.data(), [next]);
                    next += 1;
                }
            }
            assert_eq!(kit.read("packets").unwrap(), turns.iter().sum::<usize>().to_string());
        }
        assert!(Kit::<Unqueue2>::new("x").is_err());
    }
}

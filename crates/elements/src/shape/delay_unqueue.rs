// SPDX-License-Identifier: MIT OR Apache-2.0
//! DelayUnqueue: pulls packets, and pushes them later.

use super::delay_shaper::release;
use castanet_element::prelude::*;

/// Pulls packets, and pushes each packet at its timestamp plus DELAY, or immediately if that moment has passed.
///
/// If a packet has no timestamp, or a timestamp below one second, DELAY counts from when it is pulled. The element
/// holds the next packet until it is due; the packets behind it stay upstream. The timestamp of a packet is set to the
/// time at which it was due. The task sleeps until the held packet is due.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets, later.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 20) -> Queue -> DelayUnqueue(0.5) -> Counter(COUNT_CALL 20 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(holds))]
#[class(name = "DelayUnqueue", ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the packet that waits")]
#[class(task, lifecycle)]
pub struct DelayUnqueue {
    args: Args,
    /// The waiting packet.
    held: Option<Packet>,
    upstream: Signal,
}

/// Arguments of DelayUnqueue.
#[derive(Args)]
pub struct Args {
    /// Time from the timestamp of a packet until it leaves.
    #[arg(handler = "rw")]
    delay: Interval,
}

impl Element for DelayUnqueue {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let now = cx.peek();
        let p = match self.held.take() {
            Some(held) => held,
            None => {
                let Some(mut p) = cx.pull_one(0) else {
                    return if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep };
                };
                p.set_timestamp(release(&p, self.args.delay, now));
                p
            }
        };
        let at = p.timestamp();
        if at > now {
            cx.set_timer(0, at);
            self.held = Some(p);
            return Turn::Sleep;
        }
        cx.emit(0, p);
        Turn::Again
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}

impl Lifecycle for DelayUnqueue {
    fn held(&self) -> u64 {
        u64::from(self.held.is_some())
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(p) = self.held.take() {
            cx.drop(p, Reason::Stopped);
        }
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let Some(held) = old.held.take() {
            self.held = Some(held);
            cx.schedule();
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
        for limit in [1, 2, 3, 32] {
            let mut kit = Kit::<DelayUnqueue>::new("0.1").unwrap().limit(limit);
            for (i, ms) in [(0, 0), (1, 30), (2, 30), (3, 10), (4, 400)] {
                let mut p = packet(&[i]);
                p.set_timestamp(START + ms * MS);
                kit.supply(0, p);
            }
            let (mut got, mut now) = (Vec::new(), 0);
            while got.len() < 5 {
                let (turn, out) = kit.task();
                for (_, p) in out {
                    got.push((p.data()[0], now / MS, (p.timestamp() - START) / MS));
                }
                if turn == Turn::Sleep {
                    now = kit.next_timer().unwrap();
                    assert!(kit.expire().unwrap().is_empty() && kit.woken());
                }
            }
            assert_eq!(got, [(0, 100, 100), (1, 130, 130), (2, 130, 130), (3, 130, 110), (4, 500, 500)]);
        }
    }

    #[test]
    fn packets_without_time_and_what_is_held_at_the_end() {
        let mut kit = Kit::<DelayUnqueue>::new("2s").unwrap();
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, None), "nothing upstream");
        kit.at(5000 * MS);
        kit.supply(0, packet(b"x"));
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, Some(7000 * MS)));
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, Some(7000 * MS)), "woken too early");
        kit.write("delay", "1").unwrap();
        assert_eq!(kit.read("delay").unwrap(), "1s");
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 1);
        assert!(Kit::<DelayUnqueue>::new("").is_err() && Kit::<DelayUnqueue>::new("x").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! LinkUnqueue: simulates a link with a bandwidth and a latency.

use castanet_element::prelude::*;
use castanet_spec::anno;
use std::collections::VecDeque;

/// Pulls packets, and pushes them after the time that they would take on a link.
///
/// The time to send a packet is its length divided by BANDWIDTH; the extra length annotation is part of the length, and
/// an empty packet takes the time of one byte. The next packet is sent when that time is over. A packet arrives LATENCY
/// after it was sent, and is then pushed. So the link holds at most the packets that are sent within LATENCY, and one
/// that is being sent. The timestamp of a packet is set to the time of its arrival.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets, when they have arrived.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 20, LENGTH 100) -> Queue -> LinkUnqueue(0.1, 1kBps) -> Counter(COUNT_CALL 20 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(ledger(holds))]
#[class(name = "LinkUnqueue", offload = none, ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive)]
#[class(takes_state = "the packets on the link")]
#[class(task, build, lifecycle, handlers, drops(Cleared, Stopped))]
pub struct LinkUnqueue {
    args: Args,
    /// Packets on the link. Their timestamps are the times of their arrival.
    link: VecDeque<Packet>,
    /// When the last packet on the link arrives completely, in nanoseconds; `i64::MIN` at first and after
    /// `reset`.
    end: i64,
    upstream: Signal,
}

/// Arguments of LinkUnqueue.
#[derive(Args)]
pub struct Args {
    /// The time from when a packet is completely sent until it arrives.
    latency: Nanos,
    /// The bandwidth, in bytes a second.
    bandwidth: Bandwidth,
}

/// The least bandwidth in bytes a second. With less, the times of packets would be too long to be useful.
const SLOWEST: u64 = 100;

fn check_latency(latency: Nanos) -> Result<Nanos, ValueError> {
    if latency.0 >= 0 { Ok(latency) } else { Err("LATENCY: must not be negative".into()) }
}
fn check_bandwidth(bandwidth: Bandwidth) -> Result<Bandwidth, ValueError> {
    if bandwidth.0 >= SLOWEST {
        Ok(bandwidth)
    } else {
        Err(format!("BANDWIDTH: must be at least {SLOWEST}Bps").into())
    }
}

impl Build for LinkUnqueue {
    fn build(args: Args, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        check_latency(args.latency)?;
        check_bandwidth(args.bandwidth)?;
        Ok(LinkUnqueue { args, link: VecDeque::new(), end: i64::MIN, upstream: Signal::always() })
    }
}

impl LinkUnqueue {
    /// Returns how long it takes to send a packet, in nanoseconds.
    fn duration(&self, p: &Packet) -> i64 {
        let bytes = (p.len() as u64).saturating_add(p.anno_u32(anno::EXTRA_LENGTH).into()).max(1);
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.args.bandwidth.0.max(SLOWEST));
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
    /// Returns the time at which the sender has sent all packets on the link.
    fn free(&self) -> i64 {
        self.end.saturating_sub(self.args.latency.0)
    }
}

impl Element for LinkUnqueue {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        let now = cx.peek();
        for _ in 0..cx.limit() {
            let Some(p) = self.link.pop_front_if(|p| p.timestamp() <= now) else { break };
            cx.emit(0, p);
        }
        // All packets that have arrived leave in the same turn, before another packet is pulled.
        if self.link.front().is_some_and(|p| p.timestamp() <= now) {
            return Turn::More;
        }
        let (mut more, mut idle) = (false, false);
        if self.free() <= now {
            match cx.pull_one(0) {
                Some(mut p) => {
                    self.end = self.end.max(now.saturating_add(self.args.latency.0));
                    self.end = self.end.saturating_add(self.duration(&p));
                    p.set_timestamp(self.end);
                    self.link.push_back(p);
                    more |= self.free() <= now;
                }
                None => {
                    idle = true;
                    more |= cx.is_on(&self.upstream);
                }
            }
        }
        if more {
            return Turn::Again;
        }
        let arrival = self.link.front().map(Packet::timestamp);
        let free = (!idle).then(|| self.free());
        if let Some(next) = arrival.into_iter().chain(free).min() {
            cx.set_timer(0, next);
        }
        Turn::Sleep
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}

#[handlers]
impl LinkUnqueue {
    /// The time from when a packet is completely sent until it arrives.
    #[read]
    fn latency(&self) -> Interval {
        Interval(self.args.latency.0)
    }
    #[write]
    fn set_latency(&mut self, latency: Nanos, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let latency = check_latency(latency)?;
        // The new latency changes neither the time at which the sender becomes ready nor the arrival times of packets
        // on the link.
        self.end = self.free().saturating_add(latency.0);
        self.args.latency = latency;
        cx.schedule();
        Ok(())
    }
    /// The bandwidth, in bytes a second.
    #[read(unit = "bytes/s")]
    fn bandwidth(&self) -> u64 {
        self.args.bandwidth.0
    }
    #[write]
    fn set_bandwidth(&mut self, bandwidth: Bandwidth, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.args.bandwidth = check_bandwidth(bandwidth)?;
        cx.schedule();
        Ok(())
    }
    /// Packets on the link.
    #[read(unit = "packets")]
    fn size(&self) -> usize {
        self.link.len()
    }
    /// Drops all packets on the link.
    #[write]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.link.drain(..).for_each(|p| cx.drop(p, Reason::Cleared));
        self.end = i64::MIN;
        cx.schedule();
    }
}

impl Lifecycle for LinkUnqueue {
    fn held(&self) -> u64 {
        self.link.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.link.drain(..).for_each(|p| cx.drop(p, Reason::Stopped));
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.link.append(&mut old.link);
        // Adapt to the new latency, as in `set_latency`.
        if old.end > i64::MIN {
            self.end = old.free().saturating_add(self.args.latency.0);
        }
        cx.schedule();
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

    /// Returns the packets that arrive up to a time: the first byte and the arrival time, in milliseconds, of each.
    /// Checks that the timestamps agree with the arrival times.
    fn run(kit: &mut Kit<LinkUnqueue>, until: i64) -> Vec<(u8, i64)> {
        let (mut got, mut now) = (Vec::new(), 0);
        loop {
            let (turn, out) = kit.task();
            if turn == Turn::Again && out.is_empty() {
                // Turn the notifier off, as an empty queue does.
                kit.with(|_, cx| cx.clear_note(Note::new(2)));
            }
            for (_, p) in out {
                assert_eq!((p.timestamp() - START) / MS, now / MS);
                got.push((p.data()[0], now / MS));
            }
            if turn == Turn::Sleep {
                match kit.next_timer() {
                    Some(t) if t / MS <= until => now = t,
                    _ => return got,
                }
                assert!(kit.expire().unwrap().is_empty() && kit.woken());
            }
        }
    }
    fn supply(kit: &mut Kit<LinkUnqueue>, first: u8, length: usize) {
        let mut data = vec![first; length];
        if let Some(d) = data.first_mut() {
            *d = first;
        }
        kit.supply(0, packet(&data));
    }

    #[test]
    fn back_to_back() {
        for limit in [1, 2, 3, 32] {
            let mut kit = Kit::<LinkUnqueue>::new("0.1, 1000").unwrap().limit(limit);
            (0..4).for_each(|i| supply(&mut kit, i, 100));
            supply(&mut kit, 4, 50);
            supply(&mut kit, 5, 1);
            assert_eq!(run(&mut kit, 9000), [(0, 200), (1, 300), (2, 400), (3, 500), (4, 550), (5, 551)]);
        }
    }

    #[test]
    fn missing_bytes_take_time_too() {
        let mut kit = Kit::<LinkUnqueue>::new("0.1, 1000").unwrap();
        for (first, extra) in [(1, 900), (2, 0)] {
            let mut p = packet(&[first; 100]);
            p.set_anno_u32(anno::EXTRA_LENGTH, extra);
            kit.supply(0, p);
        }
        assert_eq!(run(&mut kit, 9000), [(1, 1100), (2, 1200)]);
    }

    #[test]
    fn takes_no_more_than_fit() {
        let mut kit = Kit::<LinkUnqueue>::new("1s, 1000").unwrap();
        (0..50).for_each(|i| supply(&mut kit, i, 100));
        assert_eq!(run(&mut kit, 1099), []);
        assert_eq!(kit.read("size").unwrap(), "11", "ten under way, one being sent");
        assert_eq!(run(&mut kit, 1100).len(), 1);
        kit.write("reset", "").unwrap();
        assert!(kit.woken());
        assert_eq!((kit.read("size").unwrap(), kit.dropped(Reason::Cleared)), ("0".into(), 11));
        kit.task();
        kit.cleanup().unwrap();
        assert_eq!(kit.dropped(Reason::Stopped), 1);
    }

    #[test]
    fn after_a_pause_and_at_other_speeds() {
        let mut kit = Kit::<LinkUnqueue>::new("0.1, 1000").unwrap();
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, None), "nothing upstream");
        supply(&mut kit, 1, 100);
        assert_eq!(run(&mut kit, 9000), [(1, 200)]);
        kit.at(1000 * MS);
        supply(&mut kit, 2, 100);
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, Some(1100 * MS)));
        kit.write("bandwidth", "16kbps").unwrap();
        kit.write("latency", "0.3").unwrap();
        supply(&mut kit, 3, 100);
        assert_eq!(run(&mut kit, 9000), [(2, 1200), (3, 1450)]);
        assert_eq!(
            ["latency", "bandwidth"].map(|h| kit.read(h).unwrap()),
            ["300ms".to_string(), "2000".to_string()]
        );
        assert!(kit.write("latency", "-1").is_err() && kit.write("bandwidth", "99").is_err());
    }

    #[test]
    fn zero_latency_empty_packets_and_errors() {
        let mut kit = Kit::<LinkUnqueue>::new("0, 1000").unwrap();
        supply(&mut kit, 1, 100);
        supply(&mut kit, 2, 1);
        assert_eq!(run(&mut kit, 9000), [(1, 100), (2, 101)]);
        let mut kit = Kit::<LinkUnqueue>::new("1, 1000").unwrap();
        kit.supply(0, packet(b""));
        kit.task();
        assert_eq!(kit.next_timer(), Some(MS));
        for (config, error) in [
            ("1, 99", "BANDWIDTH: must be at least 100Bps"),
            ("-1, 100", "LATENCY: must not be negative"),
            ("1", "BANDWIDTH: required argument missing"),
        ] {
            assert_eq!(Kit::<LinkUnqueue>::new(config).err().unwrap(), [error]);
        }
    }
}

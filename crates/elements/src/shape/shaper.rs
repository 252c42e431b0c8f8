// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shaper: limits the packets a second on a pull path.

use super::rate::{Packets, RateArgs};
use super::shaping::Shaping;
use castanet_element::prelude::*;

/// Passes at most RATE packets a second on a pull path.
///
/// Packets are spread evenly over each second: after n packets, the next one may pass n / RATE seconds after the second
/// began. So there are no bursts while packets are always available. After a pause, the packets that were due in the
/// current second may pass at once. Packets that may not pass yet stay upstream. Pulling tasks sleep until the next
/// packet may pass.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (pull): packets within the rate. Output 1 (pull, optional): packets beyond it. A
/// pull from output 1 gives a packet only if output 0 would give none at that moment, and does not count towards the
/// rate. If output 1 is connected, pulling tasks sleep only while no packets wait upstream.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100) -> Queue -> Shaper(1000) -> Unqueue -> Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Shaper", offload = none, ports = "1/1-2", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "what went in this second, at the same rate")]
#[class(capabilities(EmptyNotifier))]
pub struct Shaper {
    #[engine(element)]
    shaping: Shaping<Args>,
}

/// Arguments of Shaper.
#[derive(Args)]
pub struct Args {
    /// The rate, in packets a second.
    #[arg(handler = "rw")]
    rate: u32,
}

impl RateArgs for Args {
    type Unit = Packets;
    fn rate(&self) -> u64 {
        u64::from(self.rate)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Pulls `n` packets at once whenever the notifier is on, as a task would. Returns the times at which packets
    /// arrive, in milliseconds.
    fn times(kit: &mut Kit<Shaper>, count: usize, n: usize) -> Vec<i64> {
        let (mut times, mut now) = (Vec::new(), 0);
        while times.len() < count {
            if kit.note(Capability::EmptyNotifier) {
                times.extend(kit.pull(0, n).iter().map(|_| now / 1_000_000));
            } else {
                now = kit.next_timer().unwrap();
                assert!(kit.expire().unwrap().is_empty());
            }
        }
        times
    }

    #[test]
    fn spreads_packets_evenly_at_any_batch() {
        for n in [1, 2, 3, 32, 256] {
            let mut kit = Kit::<Shaper>::new("4").unwrap();
            (0..6).for_each(|_| kit.supply(0, packet(b"x")));
            assert_eq!(times(&mut kit, 6, n), [0, 250, 500, 750, 1000, 1250]);
        }
    }

    #[test]
    fn what_is_due_goes_at_once_and_no_more() {
        for n in [1, 3, 32] {
            let mut kit = Kit::<Shaper>::new("10").unwrap();
            assert!(kit.pull(0, n).is_empty());
            (0..20).for_each(|_| kit.supply(0, packet(b"x")));
            kit.at(450_000_000);
            let got: usize = (0..20).map(|_| kit.pull(0, n).len()).sum();
            assert_eq!(got, 5);
            assert!(!kit.note(Capability::EmptyNotifier));
        }
    }

    /// Output 1 gives packets if and only if output 0 gives none. It has no limit, and does not affect output 0.
    #[test]
    fn the_rest_leaves_by_output_1() {
        for n in [1, 3, 32] {
            let mut kit = Kit::<Shaper>::with_ports("10", 1, 2).unwrap();
            (0..1000).for_each(|_| kit.supply(0, packet(b"x")));
            let (mut shaped, mut rest) = (Vec::new(), 0);
            for ms in 0..1000i64 {
                kit.at(ms * 1_000_000);
                // Output 1 gives nothing until output 0 has given all packets that the rate allows.
                let before = kit.pull(1, n).len();
                let got = kit.pull(0, n).len();
                assert!(got <= 1 && (before == 0 || got == 0), "{ms}: {before} {got}");
                if got > 0 {
                    shaped.push(ms);
                }
                rest += before;
                assert!(kit.note(Capability::EmptyNotifier), "pullers of the other output must not sleep");
                assert_eq!(kit.next_timer(), None);
                if ms % 10 == 5 {
                    kit.supply(0, packet(b"x"));
                }
                if rest + shaped.len() > 900 {
                    (0..900).for_each(|_| kit.supply(0, packet(b"x")));
                    rest = 0;
                }
            }
            assert_eq!(shaped, (0..10).map(|i| i * 100).collect::<Vec<_>>());
        }
        let mut kit = Kit::<Shaper>::with_ports("10", 1, 2).unwrap();
        assert!(kit.pull(0, 1).is_empty() && !kit.note(Capability::EmptyNotifier), "nothing upstream");
        (0..50).for_each(|_| kit.supply(0, packet(b"x")));
        kit.task();
        assert!(kit.note(Capability::EmptyNotifier));
        assert_eq!((kit.pull(1, 9).len(), kit.pull(0, 9).len(), kit.pull(1, 9).len()), (0, 1, 9));
        // Turn the notifier off, as an empty queue does.
        kit.with(|_, cx| cx.clear_note(Note::new(2)));
        assert_eq!(kit.pull(1, 99).len(), 40);
        assert!(!kit.note(Capability::EmptyNotifier), "nothing upstream");
    }

    #[test]
    fn sleeps_and_wakes() {
        let mut kit = Kit::<Shaper>::new("10").unwrap();
        assert!(kit.note(Capability::EmptyNotifier), "the first pull finds out");
        assert!(kit.pull(0, 1).is_empty() && !kit.note(Capability::EmptyNotifier), "nothing upstream");
        assert_eq!(kit.next_timer(), None, "and nothing to wait for");
        kit.supply(0, packet(b"x"));
        kit.supply(0, packet(b"y"));
        assert_eq!(kit.task().0, Turn::Sleep, "upstream gives a turn");
        assert!(kit.note(Capability::EmptyNotifier));
        assert_eq!((kit.pull(0, 2).len(), kit.note(Capability::EmptyNotifier)), (1, false));
        kit.task();
        assert!(!kit.note(Capability::EmptyNotifier), "what comes now has to wait for the timer");
        kit.write("reset", "").unwrap();
        assert_eq!((kit.next_timer(), kit.note(Capability::EmptyNotifier)), (None, true));
        assert_eq!(kit.pull(0, 2).len(), 1);
        kit.write("rate", "0").unwrap();
        assert_eq!((kit.pull(0, 1).len(), kit.next_timer()), (0, None));
        assert!(!kit.note(Capability::EmptyNotifier));
        kit.write("rate", "5").unwrap();
        assert!(kit.note(Capability::EmptyNotifier));
        assert_eq!(kit.read("rate").unwrap(), "5");
        assert!(kit.write("rate", "x").is_err());
        assert_eq!(Kit::<Shaper>::new("").err().unwrap(), ["RATE: required argument missing"]);
    }
}

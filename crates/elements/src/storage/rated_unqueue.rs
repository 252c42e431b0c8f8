// SPDX-License-Identifier: MIT OR Apache-2.0
//! RatedUnqueue: pulls packets and pushes them at a limited rate.

use super::rated::Rated;
use crate::shape::rate::PacketRate;
use castanet_element::prelude::*;

/// Pulls packets and pushes them on, at most RATE packets a second.
///
/// A token bucket, which is full at the start, limits the rate. After a pause, BURST_SIZE packets (or RATE times
/// BURST_DURATION) may leave back to back. The task sleeps while there are no packets upstream. It also sleeps until
/// the next packet may leave; this time is rounded up to a whole millisecond.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100) -> Queue -> RatedUnqueue(1000) -> Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RatedUnqueue", offload = none, ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "the tokens, the calls")]
#[class(task)]
pub struct RatedUnqueue {
    #[engine(element)]
    rated: Rated<PacketRate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Returns the times at which the first `n` packets leave, in milliseconds.
    fn times(kit: &mut Kit<RatedUnqueue>, n: usize) -> Vec<i64> {
        let (mut times, mut now) = (Vec::new(), 0);
        (0..n).for_each(|_| kit.supply(0, packet(b"x")));
        while times.len() < n {
            let (turn, out) = kit.task();
            times.extend(out.iter().map(|_| now / 1_000_000));
            if turn == Turn::Sleep {
                now = kit.next_timer().unwrap();
                assert!(kit.expire().unwrap().is_empty() && kit.woken());
            }
        }
        times
    }

    #[test]
    fn keeps_the_rate() {
        for (config, want) in [
            ("5", &[0, 201, 401, 601][..]),
            ("10, BURST_SIZE 3", &[0, 0, 0, 101, 201, 301]),
            ("10, BURST_DURATION 0.2", &[0, 0, 101, 201]),
            ("100", &[0, 0, 11, 21]),
        ] {
            let mut kit = Kit::<RatedUnqueue>::new(config).unwrap();
            assert_eq!(times(&mut kit, want.len()), want, "{config}");
        }
    }

    #[test]
    fn sleeps_and_handlers() {
        let mut kit = Kit::<RatedUnqueue>::new("5").unwrap();
        assert_eq!((kit.task().0, kit.next_timer()), (Turn::Sleep, None), "nothing upstream");
        let calls = "1 calls to run_task()\n0 empty runs\n0 pushes\n1 failed pulls\n";
        assert_eq!(kit.read("calls").unwrap(), calls);
        kit.write("active", "false").unwrap();
        kit.supply(0, packet(b"x"));
        assert_eq!((kit.task().0, kit.read("active").unwrap()), (Turn::Sleep, "false".into()));
        kit.write("active", "true").unwrap();
        kit.write("rate", "1000").unwrap();
        assert!(kit.woken());
        assert_eq!(kit.task().1.len(), 1);
        let calls = "3 calls to run_task()\n0 empty runs\n1 pushes\n1 failed pulls\n";
        assert_eq!(kit.read("calls").unwrap(), calls);
        assert!(kit.write("rate", "-1").is_err());
        let both = Kit::<RatedUnqueue>::new("5, BURST_SIZE 1, BURST_DURATION 1").err().unwrap();
        assert_eq!(both, ["specify at most one of BURST_SIZE and BURST_DURATION"]);
        assert_eq!(Kit::<RatedUnqueue>::new("").err().unwrap(), ["RATE: required argument missing"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! BandwidthRatedUnqueue: pulls packets and pushes them at a limited rate in bytes.

use super::rated::Rated;
use crate::shape::rate::ByteRate;
use castanet_element::prelude::*;

/// Pulls packets and pushes them on, at most RATE bytes a second.
///
/// A token bucket, which is full at the start, limits the rate. After a pause, BURST_BYTES bytes (or RATE times
/// BURST_DURATION) may leave at once, plus one packet of any length. A packet may leave while the number of tokens is
/// not negative. It then takes one token for each of its bytes. The extra length annotation does not count. As in
/// Click, the bucket holds a few bytes more than configured. The task sleeps while there are no packets upstream. It
/// also sleeps until the next packet may leave; this time is rounded up to a whole millisecond.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (push): the same packets.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, LENGTH 100) -> Queue -> BandwidthRatedUnqueue(80kbps) -> Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "BandwidthRatedUnqueue", offload = none, ports = "1/1", processing = "l/h", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "the tokens, the calls")]
#[class(task)]
pub struct BandwidthRatedUnqueue {
    #[engine(element)]
    rated: Rated<ByteRate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Returns the times at which packets of these lengths leave, in milliseconds.
    fn times(kit: &mut Kit<BandwidthRatedUnqueue>, lengths: &[usize]) -> Vec<i64> {
        let (mut times, mut now) = (Vec::new(), 0);
        lengths.iter().for_each(|&n| kit.supply(0, packet(&vec![7; n])));
        while times.len() < lengths.len() {
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
        for (config, lengths, want) in [
            ("500", &[100; 4][..], &[0, 177, 377, 577][..]),
            ("500, BURST_BYTES 0", &[100; 3], &[0, 193, 393]),
            ("500, BURST_BYTES 100", &[100; 4], &[0, 0, 201, 401]),
            ("500, BURST_DURATION 0.4", &[100, 150, 100], &[0, 0, 101]),
            ("8kbps, BURST_BYTES 0", &[0, 0, 2000, 1, 1], &[0, 0, 0, 1997, 1998]),
        ] {
            let mut kit = Kit::<BandwidthRatedUnqueue>::new(config).unwrap();
            assert_eq!(times(&mut kit, lengths), want, "{config}");
        }
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<BandwidthRatedUnqueue>::new("1Mbps").unwrap();
        assert_eq!(kit.read("rate").unwrap(), "1Mbps");
        kit.write("rate", "1kBps").unwrap();
        assert!(kit.woken());
        assert_eq!(kit.read("rate").unwrap(), "8kbps");
        kit.write("active", "false").unwrap();
        kit.supply(0, packet(b"x"));
        assert_eq!((kit.task().0, kit.read("active").unwrap()), (Turn::Sleep, "false".into()));
        assert!(kit.read("calls").unwrap().starts_with("1 calls to run_task()\n"));
        assert!(kit.write("rate", "fast").is_err());
        let both = Kit::<BandwidthRatedUnqueue>::new("5Bps, BURST_BYTES 1, BURST_DURATION 1").err().unwrap();
        assert_eq!(both, ["specify at most one of BURST_BYTES and BURST_DURATION"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! BandwidthShaper: limits the bytes a second on a pull path.

use super::rate::{Bytes, RateArgs};
use super::shaping::Shaping;
use castanet_element::prelude::*;

/// Passes at most RATE bytes a second on a pull path.
///
/// Bytes are spread evenly over each second. After n bytes in a second, the next packet may pass n / RATE seconds after
/// the start of that second. A long packet may exceed the rate. The packets after it wait until the rate allows the
/// excess too. After a pause within a second, the bytes missed in that second may follow without delay. The extra
/// length annotation does not count. Packets that may not pass yet stay upstream. Pulling tasks sleep until the next
/// packet may pass.
///
/// # Ports
/// Input 0 (pull): packets. Output 0 (pull): packets within the rate. Output 1 (pull, optional): packets beyond it. A
/// pull from output 1 gives a packet only if output 0 would give none at that moment, and does not count towards the
/// rate. If output 1 is connected, pulling tasks sleep only while no packets wait upstream.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, LENGTH 100) -> Queue -> BandwidthShaper(1Mbps) -> Unqueue
///     -> Counter(COUNT_CALL 50 stop) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "BandwidthShaper", offload = none, ports = "1/1-2", processing = "l/l", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "what went in this second, at the same rate")]
#[class(capabilities(EmptyNotifier))]
pub struct BandwidthShaper {
    #[engine(element)]
    shaping: Shaping<Args>,
}

/// Arguments of BandwidthShaper.
#[derive(Args)]
pub struct Args {
    /// The rate, in bytes a second.
    #[arg(handler = "rw")]
    rate: Bandwidth,
}

impl RateArgs for Args {
    type Unit = Bytes;
    fn rate(&self) -> u64 {
        self.rate.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packets_pay_by_their_lengths() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<BandwidthShaper>::new("1000").unwrap();
            [100, 0, 1500, 60, 40, 1].into_iter().for_each(|n| kit.supply(0, packet(&vec![7; n])));
            let (mut times, mut now) = (Vec::new(), 0);
            while times.len() < 6 {
                if kit.note(Capability::EmptyNotifier) {
                    times.extend(kit.pull(0, n).iter().map(|p| (now / 1_000_000, p.len())));
                } else {
                    now = kit.next_timer().unwrap();
                    kit.expire().unwrap();
                }
            }
            assert_eq!(times, [(0, 100), (100, 0), (100, 1500), (1600, 60), (1660, 40), (1700, 1)]);
        }
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<BandwidthShaper>::new("8Mbps").unwrap();
        assert_eq!(kit.read("rate").unwrap(), "8Mbps");
        kit.write("rate", "8kbps").unwrap();
        kit.write("reset", "").unwrap();
        assert_eq!(kit.read("rate").unwrap(), "8kbps");
        assert!(kit.write("rate", "-1").is_err());
    }
}

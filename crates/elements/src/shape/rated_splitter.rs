// SPDX-License-Identifier: MIT OR Apache-2.0
//! RatedSplitter: sends a limited rate of packets to one output, and the rest to the other.

use super::rate::PacketRate;
use super::splitting::Splitting;
use castanet_element::prelude::*;

/// Sends at most RATE packets a second to output 0, and the packets beyond that rate to output 1.
///
/// A token bucket, which is full at the start, limits the rate. After a pause, BURST_SIZE packets (or the packets that
/// are due in BURST_DURATION) may pass at once. Packets beyond the rate are dropped if output 1 is not connected.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (push): packets within the rate. Output 1 (push, optional): packets beyond it.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 50, STOP true) -> s :: RatedSplitter(20) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RatedSplitter", offload = none, ports = "1/1-2", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "the tokens")]
#[class(drops(OverRate))]
pub struct RatedSplitter {
    #[engine(element)]
    splitting: Splitting<PacketRate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn keeps_the_rate_at_any_batch() {
        for (config, rate) in [("100", 100), ("1000, BURST_SIZE 1", 1000), ("100, BURST_DURATION 1", 100)] {
            let mut runs = Vec::new();
            for n in [1, 2, 3, 32] {
                let mut kit = Kit::<RatedSplitter>::with_ports(config, 1, 2).unwrap();
                let (mut random, mut now, mut good) = (Random::new(8, "split"), 0, Vec::new());
                while now < 20_000_000_000 {
                    now += random.below(30_000_000) as i64;
                    kit.at(now);
                    for part in vec![(); 1 + random.below(90) as usize].chunks(n) {
                        let out = kit.push(0, part.iter().map(|()| packet(b"x")));
                        assert_eq!(out.len(), part.len());
                        good.extend(out.iter().map(|o| o.0 == 0));
                    }
                }
                let sent = good.iter().filter(|g| **g).count();
                assert!((1000..=21 * rate).contains(&sent), "{sent} {config}");
                assert!(!config.contains("DURATION") || sent > 19 * rate, "{sent} {config}");
                runs.push(good);
            }
            assert!(runs.iter().all(|r| *r == runs[0]), "{config}");
        }
    }

    #[test]
    fn boundaries_handlers_and_errors() {
        let mut kit = Kit::<RatedSplitter>::new("10, BURST_SIZE 3").unwrap();
        assert_eq!(kit.push(0, (0..5).map(|_| packet(b"x"))).len(), 3);
        assert_eq!(kit.dropped(Reason::OverRate), 2);
        kit.at(99_999_999);
        assert!(kit.push(0, [packet(b"x")]).is_empty());
        kit.at(100_000_000);
        assert_eq!(kit.push(0, [packet(b"x"), packet(b"y")]).len(), 1);
        kit.write("rate", "1000").unwrap();
        assert!(kit.push(0, [packet(b"x")]).is_empty(), "another rate brings no tokens");
        kit.at(101_000_000);
        assert_eq!(kit.push(0, [packet(b"x"), packet(b"y")]).len(), 1);
        assert_eq!(kit.read("rate").unwrap(), "1000");
        assert!(kit.write("rate", "much").is_err());
        let both = Kit::<RatedSplitter>::new("5, BURST_SIZE 1, BURST_DURATION 1").err().unwrap();
        assert_eq!(both, ["specify at most one of BURST_SIZE and BURST_DURATION"]);
    }
}

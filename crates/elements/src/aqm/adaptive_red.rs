// SPDX-License-Identifier: MIT OR Apache-2.0
//! AdaptiveRED: random early detection that adapts its probability.

use super::early::{Averaging, Early, EarlyArgs, Settings};
use castanet_element::prelude::*;

/// Drops packets like `RED`, and adapts the drop probability to keep the average length of queues near TARGET.
///
/// The thresholds are 0.5 and 1.5 times TARGET (Floyd, Gummadi and Shenker 2001). The probability is adapted
/// every half second, on arrival of the first packet after that time. If the average lies above the middle fifth
/// of the range between the thresholds, the probability grows by 0.01, or by a quarter of itself if that is less.
/// If the average lies below the middle fifth, the probability shrinks by a tenth.
///
/// # Ports
/// Input 0: packets. Output 0: packets that are not dropped. Output 1 (push, optional): dropped packets.
///
/// # Example
/// ```click
/// RatedSource(RATE 1000, LIMIT 500, STOP true) -> AdaptiveRED(20, 0.02) -> Queue -> RatedUnqueue(500) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AdaptiveRED", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = share)]
#[class(reconfigure = keeps, effects(looks), drops(EarlyDrop))]
#[class(takes_state = "the average length, the probability, the drops")]
pub struct AdaptiveRed {
    #[engine(element)]
    early: Early<Args>,
}

/// Arguments of AdaptiveRED.
#[derive(Args)]
pub struct Args {
    /// The average length to aim for, in packets.
    target: u32,
    /// The initial probability at the upper threshold.
    max_p: f64,
    #[arg(flatten)]
    averaging: Averaging,
}

impl EarlyArgs for Args {
    const ADAPTS: bool = true;
    fn settings(&self) -> Result<Settings, ConfigError> {
        let half = self.target / 2;
        Ok(Settings {
            min: half,
            max: self.target.saturating_add(half),
            max_p: self.max_p,
            averaging: self.averaging.clone(),
            gentle: true,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const MS: i64 = 1_000_000;

    fn max_p(kit: &mut Kit<AdaptiveRed>) -> f64 {
        kit.read("max_p").unwrap().parse().unwrap()
    }

    #[test]
    fn the_probability_follows_the_average() {
        // Floyd, Gummadi and Shenker 2001: the target range is 18 to 22 for thresholds of 10 and 30.
        for n in [1, 3, 32] {
            for (length, rises, falls) in
                [(5, false, true), (17, false, true), (20, false, false), (23, true, false)]
            {
                let mut kit = Kit::<AdaptiveRed>::with_ports("20, 0.1, STABILITY 0", 1, 2).unwrap();
                kit.gauge(1).set(length);
                let mut want = 0.1;
                for i in 0..300 {
                    kit.at(i * 100 * MS);
                    assert_eq!(kit.push(0, (0..n).map(|_| packet(b"x"))).len(), n);
                    if i > 0 && i % 5 == 0 {
                        if rises && want <= 0.5 {
                            want += f64::min(0.01, want / 4.0);
                        } else if falls && want >= 0.01 {
                            want *= 0.9;
                        }
                    }
                    assert!((max_p(&mut kit) - want).abs() < 1e-12, "{length} at {i}");
                }
                assert!(if rises { want > 0.5 } else { want <= 0.1 });
            }
        }
    }

    #[test]
    fn small_probabilities_grow_by_quarters_and_pauses_count() {
        let mut kit = Kit::<AdaptiveRed>::new("20, 0.004, STABILITY 0").unwrap();
        kit.gauge(1).set(29);
        kit.push(0, [packet(b"x")]);
        kit.at(1000 * MS);
        kit.push(0, [packet(b"x")]);
        assert!((max_p(&mut kit) - 0.004 * 1.25 * 1.25).abs() < 1e-12, "two intervals");
        kit.write("max_p", "0.5").unwrap();
        kit.gauge(1).set(0);
        kit.at(i64::MAX / 4);
        kit.push(0, [packet(b"x")]);
        assert!((0.009..0.01).contains(&max_p(&mut kit)), "it has rested at the least");
        kit.at(i64::MAX - 2_000_000_000_000);
        kit.push(0, [packet(b"x")]);
    }

    #[test]
    fn handlers_and_errors() {
        for target in [20, 21] {
            let mut kit = Kit::<AdaptiveRed>::new(&format!("{target}, 0.02")).unwrap();
            let values = ["min_thresh", "max_thresh", "max_p", "drops"].map(|h| kit.read(h).unwrap());
            assert_eq!(values, ["10", &(target + 10).to_string(), "0.02", "0"]);
            let config = kit.read("config").unwrap();
            assert_eq!(config, format!("{target}, 0.02, STABILITY 4"));
            assert!(Kit::<AdaptiveRed>::new(&config).is_ok());
        }
        for (config, error) in [
            ("20", "MAX_P: required argument missing"),
            ("20, 1.5", "MAX_P: must lie between 0 and 1"),
            ("20, 0.1, STABILITY 33", "STABILITY: must be at most 32"),
            ("20, 0.1, 3", "too many arguments"),
        ] {
            assert_eq!(Kit::<AdaptiveRed>::new(config).err().unwrap(), [error]);
        }
        assert!(Kit::<AdaptiveRed>::new("4294967295, 1").is_ok());
    }

    #[test]
    fn hot_swap_keeps_what_was_found() {
        let (mut old, mut new) =
            (Kit::<AdaptiveRed>::new("20, 0.1").unwrap(), Kit::<AdaptiveRed>::new("20, 0.1").unwrap());
        old.gauge(1).set(1000);
        for i in 0..50 {
            old.at(i * 100 * MS);
            old.push(0, [packet(b"x")]);
        }
        let found =
            |kit: &mut Kit<AdaptiveRed>| ["max_p", "avg_queue_size", "drops"].map(|h| kit.read(h).unwrap());
        let before = found(&mut old);
        new.take_state_of(&mut old).unwrap();
        assert_eq!(found(&mut new), before);
        assert!(max_p(&mut new) > 0.15);
    }
}

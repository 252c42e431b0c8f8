// SPDX-License-Identifier: MIT OR Apache-2.0
//! RandomSample: passes a random sample of packets.

use crate::trace::Probability;
use castanet_element::prelude::*;

/// Passes each packet with a given probability, and sends packets that do not pass to output 1.
///
/// P is the probability that a packet passes. DROP is the probability that it does not. Exactly one of the two must be
/// given. Without output 1, packets that do not pass are dropped. While ACTIVE is false, all packets pass. The
/// element's random numbers depend only on the seed of the run, the element's name and the replica.
///
/// # Ports
/// Input 0: packets. Output 0: the packets that pass. Output 1 (optional): the packets that do not pass.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 50, STOP true) -> s :: RandomSample(0.4) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RandomSample", offload = none, ports = "1/1-2", processing = "a/ah", packets = "any/same")]
#[class(reconfigure = keeps, workers = replicate, build, handlers, drops(Sampled), depends = order)]
pub struct RandomSample {
    args: Args,
    /// The probability that a packet passes.
    pass: Probability,
    random: Random,
    /// Packets that did not pass.
    #[count(unit = "packets")]
    drops: Count,
}

/// Arguments of RandomSample.
#[derive(Args)]
#[args(exactly_one(p, drop))]
pub struct Args {
    /// The probability that a packet passes.
    #[arg(alias = "SAMPLE")]
    p: Option<Probability>,
    /// The probability that a packet does not pass.
    #[arg(keyword)]
    drop: Option<Probability>,
    /// Whether to sample packets; false to pass all of them.
    #[arg(keyword, default = true, handler = "rw")]
    active: bool,
}

impl Build for RandomSample {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        // Exactly one of the two is given.
        let pass = args.p.unwrap_or_else(|| Probability(1.0 - args.drop.map_or(0.0, |drop| drop.0)));
        Ok(RandomSample { args, pass, random: cx.random_of_replica(), drops: Count::default() })
    }
}

impl Action for RandomSample {
    #[inline]
    fn action(&mut self, _: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if !self.args.active || self.random.unit() < self.pass.0 {
            return Verdict::Next;
        }
        self.drops.add(1);
        cx.out_or(1, Reason::Sampled)
    }
}

#[handlers]
impl RandomSample {
    /// The probability that a packet passes.
    #[read(merge = first)]
    fn sampling_prob(&self) -> Real {
        Real(self.pass.0)
    }
    #[write]
    fn set_sampling_prob(&mut self, p: Probability) {
        self.pass = p;
    }
    /// The probability that a packet does not pass.
    #[read(merge = first)]
    fn drop_prob(&self) -> Real {
        Real(1.0 - self.pass.0)
    }
    #[write]
    fn set_drop_prob(&mut self, p: Probability) {
        self.pass = Probability(1.0 - p.0);
    }
    /// The configuration string, with the current probability.
    #[read(merge = first)]
    fn config(&self) -> String {
        let active = if self.args.active { "" } else { ", ACTIVE false" };
        format!("{}{active}", self.sampling_prob().show())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const PACKETS: usize = 7680;

    /// Returns the output of each packet, or 9 if the packet was dropped.
    fn run(config: &str, outputs: usize, n: usize) -> Vec<usize> {
        let mut kit = Kit::<RandomSample>::with_ports(config, 1, outputs).unwrap();
        let mut all = vec![9; PACKETS];
        for start in (0..PACKETS).step_by(n) {
            for (port, p) in kit.act((start..PACKETS.min(start + n)).map(|i| packet(&i.to_be_bytes()))) {
                all[usize::from_be_bytes(p.data().try_into().unwrap())] = port;
            }
        }
        let others = all.iter().filter(|o| **o != 0).count();
        assert_eq!(kit.read("drops").unwrap(), others.to_string());
        assert_eq!(kit.dropped(Reason::Sampled), if outputs == 1 { others as u64 } else { 0 });
        all
    }

    #[test]
    fn as_many_as_the_probability_says_at_any_batch() {
        for (config, p) in [("0.4", 0.4), ("DROP 0.25", 0.75), ("SAMPLE 0.01", 0.01), ("1", 1.0), ("0", 0.0)]
        {
            let one = run(config, 1, 1);
            for n in [2, 3, 32, 256] {
                assert_eq!(run(config, 1, n), one, "{config}");
            }
            let passed = one.iter().filter(|o| **o == 0).count() as f64;
            // The tolerance: six standard deviations of a binomial distribution.
            let (n, off) = (PACKETS as f64, 6.0 * (PACKETS as f64 * p * (1.0 - p)).sqrt());
            assert!((passed - n * p).abs() <= off, "{config}: {passed} of {n}");
            let two: Vec<_> = one.iter().map(|o| usize::from(*o != 0)).collect();
            assert_eq!(run(config, 2, 32), two, "the second output takes the rest");
        }
    }

    #[test]
    fn handlers() {
        let mut kit = Kit::<RandomSample>::new("DROP 0.25, ACTIVE false").unwrap();
        assert_eq!(kit.act((0..300).map(|_| packet(b"x"))).len(), 300, "all pass while it is not active");
        let mut values = |h: &[&str]| h.iter().map(|h| kit.read(h).unwrap()).collect::<Vec<_>>();
        assert_eq!(values(&["sampling_prob", "drop_prob", "active"]), ["0.75", "0.25", "false"]);
        assert_eq!(kit.read("config").unwrap(), "0.75, ACTIVE false");
        kit.write("active", "true").unwrap();
        kit.write("drop_prob", "0.9375").unwrap();
        assert_eq!(kit.read("config").unwrap(), "0.0625");
        for (handler, value, passed) in [
            ("sampling_prob", "0", 0),
            ("drop_prob", "0", 9),
            ("drop_prob", "1", 0),
            ("sampling_prob", "1", 9),
        ] {
            kit.write(handler, value).unwrap();
            assert_eq!(kit.act((0..9).map(|_| packet(b"x"))).len(), passed, "{handler} {value}");
        }
        assert!(kit.write("drop_prob", "1.1").is_err() && kit.write("sampling_prob", "x").is_err());
    }

    #[test]
    fn errors() {
        for (config, error) in [
            ("", "P or DROP: required argument missing"),
            ("0.1, DROP 0.1", "specify at most one of P and DROP"),
            ("1.1", "P: expected a probability between 0 and 1"),
            ("DROP -0.1", "DROP: expected a probability between 0 and 1"),
        ] {
            assert_eq!(Kit::<RandomSample>::new(config).err().unwrap(), [error]);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Meter: sends packets to one of several outputs, depending on their rate in packets a second.

use super::bands::{BandArgs, Bands};
use super::rate::Packets;
use castanet_element::prelude::*;

/// Sends packets to the output whose band contains their rate, in packets a second.
///
/// The rate is an exponentially weighted moving average over epochs of a millisecond, in which a new epoch has a weight
/// of 1/16. A packet is counted before the rate is compared with the RATEs. No packet is dropped. While the rate is
/// below the first RATE, all packets go to output 0; while it is below the second RATE, to output 1; and so on. The
/// last output is for higher rates. The rate includes packets in the kernel, which go by the same average.
///
/// # Ports
/// Input 0 (push): packets. Outputs 0, 1, ... (push): packets while the rate is below the first RATE, the second
/// RATE, and so on; one more output for higher rates.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 50, STOP true) -> m :: Meter(20) -> Discard;
/// m [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Meter", offload = none, ports = "1/2-", processing = "h/h", packets = "any/same", workers = share)]
#[class(takes_state = "the measured rate")]
#[class(handlers, kernel)]
pub struct Meter {
    #[engine(element)]
    bands: Bands<Args>,
}

/// Arguments of Meter.
#[derive(Args)]
pub struct Args {
    /// Rates that separate the outputs, in packets a second: in increasing order, one fewer than there are outputs.
    #[arg(rest)]
    rate: Vec<PacketsPerSecond>,
}

impl BandArgs for Args {
    type Unit = Packets;
    fn rates(&self) -> Vec<u64> {
        self.rate.iter().map(|r| r.0).collect()
    }
}

/// A rate of packets. It is parsed like a bandwidth. But a number without a unit causes no warning, because there is no
/// unit for packets: all units of bandwidth count bits or bytes.
#[derive(Clone, Copy, Debug)]
pub struct PacketsPerSecond(u64);

impl ArgValue for PacketsPerSecond {
    const TYPE: &'static str = Bandwidth::TYPE;
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Self, ValueError> {
        Ok(PacketsPerSecond(Bandwidth::parse(text, cx)?.0))
    }
}

#[handlers]
impl Meter {
    /// Packets a second, as measured.
    #[read(unit = "packets/s")]
    fn rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        Rate(self.bands.rate(cx))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    /// Sends `rate` packets a second for one second, `n` at a time. Returns how many packets each output got in the
    /// second half.
    fn shares(config: &str, outputs: usize, rate: i64, n: i64) -> Vec<usize> {
        let mut kit = Kit::<Meter>::with_ports(config, 1, outputs).unwrap();
        let mut got = vec![0; outputs];
        for i in 0..rate / n {
            kit.at(i * n * 1_000_000_000 / rate);
            let out = kit.push(0, (0..n).map(|_| packet(b"x")));
            assert_eq!(out.len() as i64, n, "no packet is lost");
            if i * n > rate / 2 {
                out.iter().for_each(|(port, _)| got[*port] += 1);
            }
        }
        got
    }

    #[test]
    fn the_first_rate_above_decides() {
        for (rate, port) in [(4_000, 0), (9_000, 0), (11_000, 1), (19_000, 1), (21_000, 2), (64_000, 2)] {
            for n in [1, 2] {
                let got = shares("10000, 20000", 3, rate, n);
                let all: usize = got.iter().sum();
                assert_eq!(got[port], all, "{got:?} at {rate} by {n}");
            }
        }
    }

    #[test]
    fn a_batch_goes_as_its_packets_would() {
        let mut random = Random::new(5, "meter");
        let moments: Vec<(i64, usize)> =
            (0..2000).map(|_| (random.below(3_000_000) as i64, 1 + random.below(40) as usize)).collect();
        let run = |n: usize| {
            let mut kit = Kit::<Meter>::with_ports("5000, 15000, 20000", 1, 4).unwrap();
            let (mut now, mut all) = (0, Vec::new());
            for &(gap, count) in &moments {
                now += gap;
                kit.at(now);
                for part in vec![(); count].chunks(n) {
                    all.extend(kit.push(0, part.iter().map(|()| packet(b"x"))).iter().map(|o| o.0));
                }
            }
            (all, kit.read("rate").unwrap())
        };
        let first = run(1);
        assert!((0..4).all(|port| first.0.contains(&port)));
        for n in [2, 3, 32] {
            assert_eq!(run(n), first);
        }
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<Meter>::with_ports("10, 20k", 1, 3).unwrap();
        assert_eq!(
            (kit.read("rate").unwrap(), kit.read("meters").unwrap()),
            ("0".into(), "9.766\n20000".into())
        );
        kit.push(0, [packet(b"x")]);
        kit.at(1_000_000_000);
        assert_eq!(kit.read("rate").unwrap(), "7.8125");
        for (config, outputs, error) in [
            ("", 2, "RATE: required argument missing"),
            ("5, 5", 3, "rates must be in increasing order, each once"),
            ("6, 5", 3, "rates must be in increasing order, each once"),
            ("5", 3, "1 rates need 2 outputs, and 3 are connected"),
            ("x", 2, "expected bandwidth"),
        ] {
            assert_eq!(Kit::<Meter>::with_ports(config, 1, outputs).err().unwrap(), [error]);
        }
    }
}

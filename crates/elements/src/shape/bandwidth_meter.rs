// SPDX-License-Identifier: MIT OR Apache-2.0
//! BandwidthMeter: sends packets to one of several outputs, depending on their rate in bytes a second.

use super::bands::{BandArgs, Bands};
use super::rate::Bytes;
use castanet_element::prelude::*;

/// Sends packets to the output whose band contains their rate, in bytes a second.
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
/// RatedSource(RATE 100, LIMIT 50, STOP true) -> m :: BandwidthMeter(8kbps) -> Discard;
/// m [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "BandwidthMeter", offload = none, ports = "1/2-", processing = "h/h", packets = "any/same", workers = share)]
#[class(takes_state = "the measured rate")]
#[class(handlers, kernel)]
pub struct BandwidthMeter {
    #[engine(element)]
    bands: Bands<Args>,
}

/// Arguments of BandwidthMeter.
#[derive(Args)]
pub struct Args {
    /// Rates that separate the outputs, in bytes a second: in increasing order, one fewer than there are outputs.
    #[arg(rest)]
    rate: Vec<Bandwidth>,
}

impl BandArgs for Args {
    type Unit = Bytes;
    fn rates(&self) -> Vec<u64> {
        self.rate.iter().map(|r| r.0).collect()
    }
}

#[handlers]
impl BandwidthMeter {
    /// Bytes a second, as measured.
    #[read(unit = "bytes/s")]
    fn rate(&mut self, cx: &mut Cx<'_>) -> Rate {
        Rate(self.bands.rate(cx))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn bytes_decide() {
        for (length, port) in [(60, 0), (99, 0), (101, 1), (400, 1), (1500, 2)] {
            for n in [1, 2, 3, 32] {
                let mut kit = Kit::<BandwidthMeter>::with_ports("800kbps, 4Mbps", 1, 3).unwrap();
                // At a thousand packets a second, 100 kB/s means packets of 100 bytes.
                for i in 0..960 / n {
                    kit.at(i * n * 1_000_000);
                    let out = kit.push(0, (0..n).map(|_| packet(&vec![7; length])));
                    assert_eq!(out.len() as i64, n);
                    // Several packets at once (`n` > 1) make the average fluctuate. So outputs are compared only for
                    // single packets, and only from the 500th on.
                    assert!(i * n < 500 || n > 1 || out.iter().all(|o| o.0 == port), "{length}");
                }
            }
        }
    }

    #[test]
    fn handlers_and_errors() {
        let mut kit = Kit::<BandwidthMeter>::with_ports("8kbps, 1MBps", 1, 3).unwrap();
        kit.push(0, [packet(&[0; 64])]);
        kit.at(1_000_000_000);
        assert_eq!(
            (kit.read("rate").unwrap(), kit.read("meters").unwrap()),
            ("500".into(), "1000\n1000000".into())
        );
        assert!(Kit::<BandwidthMeter>::with_ports("5", 1, 3).is_err());
    }
}

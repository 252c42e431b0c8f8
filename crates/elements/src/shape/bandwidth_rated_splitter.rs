// SPDX-License-Identifier: MIT OR Apache-2.0
//! BandwidthRatedSplitter: sends a limited rate of bytes to one output, and the rest to the other.

use super::rate::ByteRate;
use super::splitting::Splitting;
use castanet_element::prelude::*;

/// Sends at most RATE bytes a second to output 0, and the packets beyond that rate to output 1.
///
/// A token bucket, which is full at the start, limits the rate. After a pause, BURST_BYTES (or the bytes of
/// BURST_DURATION) may pass at once, and then one more packet of any length. A packet is within the rate if the number
/// of tokens is not negative when it arrives. Each packet within the rate takes as many tokens as it has bytes. The
/// extra length annotation does not count. Packets beyond the rate are dropped if output 1 is not connected.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (push): packets within the rate. Output 1 (push, optional): packets beyond it.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 50, STOP true) -> s :: BandwidthRatedSplitter(8kbps) -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "BandwidthRatedSplitter", offload = none, ports = "1/1-2", processing = "h/h", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, takes_state = "the tokens")]
#[class(drops(OverRate))]
pub struct BandwidthRatedSplitter {
    #[engine(element)]
    splitting: Splitting<ByteRate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packets_pay_by_their_lengths() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<BandwidthRatedSplitter>::with_ports("1000, BURST_BYTES 100", 1, 2).unwrap();
            let mut push = |at_ms: i64, lengths: &[usize]| {
                kit.at(at_ms * 1_000_000);
                let parts = lengths.chunks(n).flat_map(|part| {
                    let out = kit.push(0, part.iter().map(|&n| packet(&vec![7; n])));
                    // The kit returns packets by output, so put them back in their order of arrival.
                    assert!(out.is_sorted_by_key(|o| o.0));
                    out.into_iter().map(|o| o.0).collect::<Vec<_>>()
                });
                parts.collect::<Vec<_>>()
            };
            assert_eq!(push(0, &[60, 60, 1, 0]), [0, 0, 1, 1], "60 + 60 is 19 more than there were");
            assert_eq!(push(19, &[0]), [1]);
            assert_eq!(push(20, &[1500, 1]), [0, 1]);
            assert_eq!(push(1519, &[1]), [1]);
            assert_eq!(push(1520, &[1]), [0]);
        }
        let mut kit = Kit::<BandwidthRatedSplitter>::new("1Mbps").unwrap();
        kit.write("rate", "8kbps").unwrap();
        assert_eq!(kit.read("rate").unwrap(), "8kbps");
        let both = Kit::<BandwidthRatedSplitter>::new("5Bps, BURST_BYTES 1, BURST_DURATION 1").err().unwrap();
        assert_eq!(both, ["specify at most one of BURST_BYTES and BURST_DURATION"]);
    }
}

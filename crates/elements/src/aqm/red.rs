// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED: drops packets at random before a queue is full.

use super::early::{Averaging, Early, EarlyArgs, Settings};
use castanet_element::prelude::*;

/// Drops packets with a probability that grows with the average length of queues (Floyd and Jacobson 1993).
///
/// RED stands for random early detection. While the average is at most MIN_THRESH, no packet is dropped. From
/// there the probability grows from 0 to MAX_P at MAX_THRESH. Above MAX_THRESH it grows to 1 at twice
/// MAX_THRESH. If GENTLE is false, all packets are dropped above MAX_THRESH. Drops are spread evenly: with
/// probability p, at most 1/p packets lie between two drops.
///
/// The length is the number of packets in the nearest queues: downstream if packets are pushed, upstream if
/// they are pulled (flow-based router context, TOCS 2000 section 2.4). The lengths of several queues are
/// added. The length that a packet finds has a weight of 2 to the power of -STABILITY in the average. While
/// the queues are empty, the average falls as if a packet came every 20 ms.
///
/// On a pull path, packets are dropped from the front of the queue, and pulls return the packets after them.
///
/// # Ports
/// Input 0: packets. Output 0: packets that are not dropped. Output 1 (push, optional): dropped packets.
///
/// # Example
/// ```click
/// RatedSource(RATE 1000, LIMIT 500, STOP true) -> RED(5, 50, 0.02) -> Queue -> RatedUnqueue(500) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RED", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = share, effects(looks))]
#[class(reconfigure = keeps, drops(EarlyDrop), takes_state = "the average length, the drops")]
pub struct Red {
    #[engine(element)]
    early: Early<Args>,
}

/// Arguments of RED.
#[derive(Args)]
pub struct Args {
    /// The average length up to which no packet is dropped.
    min_thresh: u32,
    /// The average length at which the probability is MAX_P.
    max_thresh: u32,
    /// The probability at MAX_THRESH.
    max_p: f64,
    #[arg(flatten)]
    averaging: Averaging,
    /// Whether the probability grows gradually above MAX_THRESH, instead of jumping to 1.
    #[arg(keyword, default = true)]
    gentle: bool,
}

impl EarlyArgs for Args {
    const ADAPTS: bool = false;
    fn settings(&self) -> Result<Settings, ConfigError> {
        if self.min_thresh > self.max_thresh {
            return Err("MIN_THRESH: must not be above MAX_THRESH".into());
        }
        Ok(Settings {
            min: self.min_thresh,
            max: self.max_thresh,
            max_p: self.max_p,
            averaging: self.averaging.clone(),
            gentle: self.gentle,
        })
    }
}

#[cfg(test)]
#[path = "tests/red.rs"]
mod tests;

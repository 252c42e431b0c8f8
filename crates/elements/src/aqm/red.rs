// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED: drops packets at random before a queue is full.

use super::early::{Early, EarlyArgs, Settings};
use super::lengths::Queues;
use super::policy;
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
    #[engine]
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
    /// The names of the queues whose lengths are added up; the nearest queues if not given.
    #[arg(keyword)]
    queues: Option<Queues>,
    /// How slowly the average changes, 0 to 32: a new length has the weight 2 to the power of -STABILITY; 0 for no
    /// averaging.
    #[arg(keyword, default = 4)]
    stability: u32,
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
            queues: self.queues.clone(),
            stability: self.stability,
            gentle: self.gentle,
        })
    }
}

impl Element for Red {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        policy::push(&mut self.early, batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        policy::push_one(&mut self.early, p, cx);
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        policy::pull(&mut self.early, max, into, cx);
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        policy::pull_one(&mut self.early, cx)
    }
}

#[cfg(test)]
#[path = "tests/red.rs"]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! RED: packets are dropped before a queue is full.

use super::early::{Early, EarlyArgs, Settings};
use super::lengths::Queues;
use super::policy;
use castanet_element::prelude::*;

/// Drops packets with a probability that grows with the average length of queues (random early detection, Floyd and Jacobson 1993).
///
/// While the average is at most MIN_THRESH no packet is dropped; from there on the probability grows from 0 to MAX_P at MAX_THRESH.
/// Above that it grows further, to 1 at twice MAX_THRESH, or all packets are dropped if GENTLE is false. The packets
/// between two that are dropped are spread evenly: with probability p there are at most 1/p of them.
///
/// The length is the number of packets in the nearest queues: those downstream where packets are pushed, those upstream where they are
/// pulled (flow-based router context, TOCS 2000 section 2.4). If there are several, their packets are added. Each packet
/// counts in the average with weight 2 to the minus STABILITY. While the queues are empty, the average falls as if a packet came
/// every 20 ms.
///
/// On a pull path the packets at the front of the queue are dropped, and the next ones are given instead.
///
/// # Ports
/// Input 0: packets. Output 0: those that are not dropped. Output 1 (push, optional): those that are.
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
    /// The average length at which MAX_P is reached.
    max_thresh: u32,
    /// The probability at MAX_THRESH.
    max_p: f64,
    /// The queues that count, by name; the nearest ones if none are named.
    #[arg(keyword)]
    queues: Option<Queues>,
    /// How slowly the average follows the length; 0 for the length itself.
    #[arg(keyword, default = 4)]
    stability: u32,
    /// Whether the probability grows on above MAX_THRESH, instead of being 1.
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

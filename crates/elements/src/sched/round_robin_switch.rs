// SPDX-License-Identifier: MIT OR Apache-2.0
//! RoundRobinSwitch: sends packets to the outputs in turn.

use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;

/// Sends each packet to the next output: 0, 1, ..., and 0 again.
///
/// # Ports
/// Input 0: packets. Outputs 0, 1, ...: packets, each on one output.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 5, STOP true) -> s :: RoundRobinSwitch -> Discard;
/// s [1] -> Discard;
/// ```
#[derive(Class)]
#[class(name = "RoundRobinSwitch", ports = "1/1-", processing = "h/h", packets = "any/same")]
#[class(workers = replicate, build, lifecycle)]
#[class(takes_state = "whose turn it is", depends = order)]
#[class(kernel)]
pub struct RoundRobinSwitch {
    outputs: usize,
    next: usize,
}

impl Build for RoundRobinSwitch {
    fn build(_: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(RoundRobinSwitch { outputs: cx.outputs, next: 0 })
    }
}

impl Lifecycle for RoundRobinSwitch {
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.next = if old.next < self.outputs { old.next } else { 0 };
        Ok(())
    }
}

impl Element for RoundRobinSwitch {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            self.push_one(0, p, cx);
        }
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        let output = self.next;
        self.next = if output + 1 < self.outputs { output + 1 } else { 0 };
        cx.emit(output, p);
    }
}

impl InKernel for RoundRobinSwitch {
    fn lower(&self, _: u32, _: &mut Code<'_>) -> Lowered {
        Err("packets at user level take turns with those in the kernel".into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn packet_by_packet_whatever_the_batch() {
        for outputs in 1..6usize {
            for n in [1, 2, 3, 32, 256] {
                let mut kit = Kit::<RoundRobinSwitch>::with_ports("", 1, outputs).unwrap();
                let mut number = 0;
                while number < 300 {
                    let mut want: Vec<_> = (number..number + n).map(|i| (i % outputs, i)).collect();
                    want.sort_by_key(|w| w.0);
                    let got = kit.push(0, (number..number + n).map(|i| packet(&i.to_be_bytes())));
                    let at = |p: &Packet| usize::from_be_bytes(p.data().try_into().unwrap());
                    assert_eq!(got.iter().map(|(o, p)| (*o, at(p))).collect::<Vec<_>>(), want);
                    number += n;
                }
                assert_eq!(kit.all_dropped(), 0);
            }
        }
        assert!(Kit::<RoundRobinSwitch>::with_ports("2", 1, 2).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! FrontDropQueue: a queue that removes its oldest packets when it is full.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled, first in, first out; a full queue removes its oldest packets.
///
/// A packet that is removed to make room for another leaves on output 1, or is dropped if output 1 is not connected. A
/// message is printed when the first packet is removed. Tasks that pull from the queue sleep while it is empty.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (pull): the same packets. Output 1 (push, optional): packets that were
/// removed because the queue was full.
///
/// # Example
/// ```click
/// RatedSource(RATE 100, LIMIT 50, STOP true) -> FrontDropQueue(8) -> RatedUnqueue(20) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "FrontDropQueue", ports = "1/1-2", processing = "h/lh", packets = "any/same", workers = share)]
#[class(reconfigure = keeps, config_follows, capabilities(Storage, EmptyNotifier))]
#[class(ledger(holds), drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
pub struct FrontDropQueue {
    #[engine]
    store: Store,
}

impl Element for FrontDropQueue {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.store.push_over_oldest(batch, cx);
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        self.store.pull_one(cx)
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.store.pull(max, into, cx);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use std::collections::VecDeque;

    #[test]
    fn behaves_like_a_deque_that_forgets_its_front() {
        for (capacity, outputs) in [(0, 1), (1, 2), (2, 1), (5, 2), (40, 1)] {
            let mut kit = Kit::<FrontDropQueue>::with_ports(&capacity.to_string(), 1, outputs).unwrap();
            let mut random = Random::new(3, "front");
            let (mut model, mut next, mut drops) = (VecDeque::new(), 0_usize, 0_u64);
            for _ in 0..2000 {
                let n = random.below(12) as usize;
                if random.below(2) == 0 {
                    let mut over = Vec::new();
                    for i in next..next + n {
                        model.push_back(i);
                        if model.len() > capacity {
                            over.extend(model.pop_front());
                        }
                    }
                    let new = (next..next + n).map(|i| packet(&i.to_be_bytes()));
                    let out: Vec<_> = kit.push(0, new).iter().map(|(_, p)| number(p)).collect();
                    drops += over.len() as u64;
                    assert_eq!(out, if outputs == 2 { over } else { Vec::new() });
                    next += n;
                } else {
                    let got: Vec<_> = kit.pull(0, n).iter().map(number).collect();
                    assert_eq!(got, model.drain(..n.min(model.len())).collect::<Vec<_>>());
                    assert!(
                        got.len() == n || !kit.note(Capability::EmptyNotifier),
                        "a short pull is the last"
                    );
                }
                assert!(kit.note(Capability::EmptyNotifier) || model.is_empty());
                assert_eq!(kit.read("length").unwrap(), model.len().to_string());
                assert_eq!(kit.gauge(0).get(), model.len());
            }
            assert_eq!(kit.read("drops").unwrap(), drops.to_string());
            assert_eq!(kit.dropped(Reason::QueueFull), if outputs == 1 { drops } else { 0 });
            let silent = capacity == 0 || drops == 0;
            assert_eq!(kit.messages(), if silent { vec![] } else { vec!["e :: FrontDropQueue: overflow"] });
        }
    }

    fn number(p: &Packet) -> usize {
        usize::from_be_bytes(p.data().try_into().unwrap())
    }
}

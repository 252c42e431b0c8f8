// SPDX-License-Identifier: MIT OR Apache-2.0
//! MixedQueue: a queue with an input at each end.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled; input 0 adds packets at the end of the queue, input 1 at its front.
///
/// When the queue is full, a packet from input 0 is refused, and a packet from input 1 replaces the packet at the end
/// of the queue. A packet that is refused or replaced leaves on output 1, or is dropped if output 1 is not connected. A
/// message is printed for the first such packet. Tasks that pull from the queue sleep while it is empty.
///
/// # Ports
/// Input 0 (push): packets for the end of the queue. Input 1 (push): packets for the front of the queue. Output 0
/// (pull): the packets of both inputs. Output 1 (push, optional): packets that were refused or replaced.
///
/// # Example
/// ```click
/// RatedSource(DATA "later", RATE 50) -> [0] q :: MixedQueue(10) -> RatedUnqueue(60) -> Discard;
/// RatedSource(DATA "first", RATE 50, LIMIT 30, STOP true) -> [1] q;
/// ```
#[derive(Class)]
#[class(name = "MixedQueue", ports = "2/1-2", processing = "h/lh", packets = "any/same", workers = exclusive)]
#[class(reconfigure = keeps, config_follows, capabilities(Storage, EmptyNotifier))]
#[class(ledger(holds), drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
pub struct MixedQueue {
    #[engine]
    store: Store,
}

impl Element for MixedQueue {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        match port {
            0 => self.store.push(batch, cx),
            _ => self.store.push_front(batch, cx),
        }
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
    fn behaves_like_a_deque_with_two_doors() {
        for (capacity, outputs) in [(0, 1), (1, 2), (2, 1), (5, 2), (40, 1)] {
            let mut kit = Kit::<MixedQueue>::with_ports(&capacity.to_string(), 2, outputs).unwrap();
            let mut random = Random::new(4, "mixed");
            let (mut model, mut next, mut drops) = (VecDeque::new(), 0_usize, 0_u64);
            for _ in 0..2000 {
                let (n, port) = (random.below(12) as usize, random.below(3) as usize);
                if port < 2 {
                    let mut over = Vec::new();
                    for i in next..next + n {
                        match port {
                            0 if model.len() == capacity => over.push(i),
                            0 => model.push_back(i),
                            _ => {
                                model.push_front(i);
                                if model.len() > capacity {
                                    over.extend(model.pop_back());
                                }
                            }
                        }
                    }
                    let new = (next..next + n).map(|i| packet(&i.to_be_bytes()));
                    let out: Vec<_> = kit.push(port, new).iter().map(|(_, p)| number(p)).collect();
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
                assert_eq!(kit.gauge(0).get(), model.len());
            }
            assert_eq!(kit.read("drops").unwrap(), drops.to_string());
            assert_eq!(kit.dropped(Reason::QueueFull), if outputs == 1 { drops } else { 0 });
            kit.cleanup().unwrap();
            assert_eq!(kit.dropped(Reason::Stopped), model.len() as u64);
        }
    }

    fn number(p: &Packet) -> usize {
        usize::from_be_bytes(p.data().try_into().unwrap())
    }
}

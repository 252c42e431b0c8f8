// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queue: stores packets until they are pulled.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled, first in, first out.
///
/// A packet that finds the queue full leaves on output 1, or is dropped if output 1 is not connected. A message is
/// printed for the first such packet. Tasks that pull from the queue sleep while it is empty, and sources that use its
/// notifier sleep while it is full. Several workers may push and pull at the same time, because they share a lock-free
/// ring.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (pull): the same packets. Output 1 (push, optional): packets that found the queue
/// full.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> Queue(20) -> Unqueue -> Discard;
/// ```
#[derive(Class)]
#[class(name = "Queue", aliases("FullNoteQueue", "QuickNoteQueue", "ThreadSafeQueue", "MSQueue"))]
#[class(reconfigure = keeps, config_follows, fifo, ports = "1/1-2", processing = "h/lh", packets = "any/same", workers = share)]
#[class(capabilities(Storage, EmptyNotifier, FullNotifier))]
#[class(ledger(holds), drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
#[class(kernel)]
pub struct Queue {
    #[engine(element)]
    store: Store,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};
    use std::collections::VecDeque;

    fn packets(from: usize, n: usize) -> Vec<Packet> {
        (from..from + n).map(|i| packet(&i.to_be_bytes())).collect()
    }
    fn numbers<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Vec<usize> {
        packets.into_iter().map(|p| usize::from_be_bytes(p.data().try_into().unwrap())).collect()
    }

    #[test]
    fn behaves_like_a_bounded_deque() {
        for (capacity, outputs) in [(0, 1), (1, 2), (2, 1), (5, 2), (40, 1)] {
            let mut kit = Kit::<Queue>::with_ports(&capacity.to_string(), 1, outputs).unwrap();
            let mut random = Random::new(9, "queue");
            let (mut model, mut next, mut drops, mut high) = (VecDeque::new(), 0, 0, 0);
            for _ in 0..2000 {
                let n = random.below(12) as usize;
                if random.below(2) == 0 {
                    let out = kit.push(0, packets(next, n));
                    let room = n.min(capacity - model.len());
                    model.extend(next..next + room);
                    let over: Vec<_> = (next + room..next + n).collect();
                    let want = if outputs == 2 { over.clone() } else { Vec::new() };
                    assert_eq!(numbers(out.iter().map(|(_, p)| p)), want);
                    assert!(out.iter().all(|(port, _)| *port == 1));
                    (next, drops, high) = (next + n, drops + over.len(), high.max(model.len()));
                } else {
                    let got = kit.pull(0, n);
                    let want: Vec<_> = model.drain(..n.min(model.len())).collect();
                    assert_eq!(numbers(&got), want);
                    if want.len() < n {
                        assert!(!kit.note(Capability::EmptyNotifier));
                    }
                }
                assert!(kit.note(Capability::EmptyNotifier) || model.is_empty());
                assert_eq!(kit.note(Capability::FullNotifier), model.len() < capacity);
                assert_eq!(kit.read("length").unwrap(), model.len().to_string());
                assert_eq!(kit.gauge(0).get(), model.len());
            }
            assert_eq!(kit.read("drops").unwrap(), drops.to_string());
            assert_eq!(kit.read("highwater_length").unwrap(), high.to_string());
            assert_eq!(kit.dropped(Reason::QueueFull) as usize, if outputs == 1 { drops } else { 0 });
            let silent = capacity == 0 || drops == 0;
            assert_eq!(kit.messages(), if silent { vec![] } else { vec!["e :: Queue: overflow"] });
            kit.cleanup().unwrap();
            assert_eq!(kit.dropped(Reason::Stopped) as usize, model.len());
        }
    }

    #[test]
    fn handlers_as_the_reference_has_them() {
        let mut kit = Kit::<Queue>::new("2").unwrap();
        kit.push(0, packets(0, 20));
        for (handler, value) in
            [("length", "2"), ("drops", "18"), ("highwater_length", "2"), ("capacity", "2")]
        {
            assert_eq!(kit.read(handler).unwrap(), value);
        }
        kit.write("reset", "").unwrap();
        assert_eq!((kit.read("drops").unwrap(), kit.read("length").unwrap()), ("18".into(), "0".into()));
        assert!(kit.note(Capability::FullNotifier));
        kit.write("reset_counts", "").unwrap();
        assert_eq!(
            (kit.read("drops").unwrap(), kit.read("highwater_length").unwrap()),
            ("0".into(), "0".into())
        );
        kit.write("capacity", "10").unwrap();
        kit.push(0, packets(0, 6));
        kit.write("capacity", "3").unwrap();
        assert!(!kit.note(Capability::FullNotifier));
        assert_eq!(kit.read("drops").unwrap(), "0", "the others die without counting");
        assert_eq!(numbers(&kit.pull(0, 9)), [0, 1, 2], "the oldest stay");
        assert!(kit.write("capacity", "-1").is_err());
        let limits = "out of range, bound 16777216";
        for large in ["16777217", "2000000000", "4294967296", "18446744073709551616"] {
            assert_eq!(kit.write("capacity", large).unwrap_err().to_string(), limits);
        }
        assert_eq!(kit.read("capacity").unwrap(), "3");
        assert_eq!((kit.dropped(Reason::QueueFull), kit.dropped(Reason::Cleared)), (18, 2 + 3));
        assert_eq!(kit.messages(), ["e :: Queue: overflow"]);
    }

    #[test]
    fn a_queue_that_stores_nothing_is_warned_of() {
        let text = "CAPACITY: a queue of capacity 0 stores nothing, so that every packet overflows";
        for (config, warnings) in [("0", &[text][..]), ("CAPACITY 0", &[text]), ("1", &[]), ("", &[])] {
            assert_eq!(Kit::<Queue>::new(config).unwrap().warnings(), warnings, "{config}");
        }
    }
}

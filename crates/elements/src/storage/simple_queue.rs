// SPDX-License-Identifier: MIT OR Apache-2.0
//! SimpleQueue: a queue without notifiers.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled, first in, first out, without notifiers.
///
/// A packet that finds the queue full leaves on output 1, or is dropped if output 1 is not connected. A message is
/// printed for the first such packet. Tasks that pull from the queue never sleep.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (pull): the same packets. Output 1 (push, optional): packets that found the queue
/// full.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> SimpleQueue(200) -> Unqueue -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SimpleQueue", ports = "1/1-2", processing = "h/lh", packets = "any/same", workers = share)]
#[class(reconfigure = keeps, config_follows, fifo, capabilities(Storage))]
#[class(ledger(holds), drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
pub struct SimpleQueue {
    #[engine(element)]
    store: Store,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn stores_without_a_word() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<SimpleQueue>::new("5").unwrap();
            kit.push(0, (0..n).map(|i| packet(&[i])));
            assert!(!kit.note(Capability::EmptyNotifier) && !kit.note(Capability::FullNotifier));
            assert_eq!(kit.gauge(0).get(), usize::from(n.min(5)));
            let got = kit.pull(0, 64);
            assert!(got.len() == usize::from(n.min(5)) && got.iter().zip(0..).all(|(p, i)| p.data() == [i]));
            assert_eq!(kit.dropped(Reason::QueueFull), u64::from(n - n.min(5)));
            assert_eq!(kit.gauge(0).get(), 0);
            assert_eq!(kit.read("highwater_length").unwrap(), n.min(5).to_string());
        }
        assert_eq!(Kit::<SimpleQueue>::new("many").err().unwrap(), ["CAPACITY: invalid number"]);
    }
}

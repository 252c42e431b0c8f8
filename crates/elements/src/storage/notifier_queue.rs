// SPDX-License-Identifier: MIT OR Apache-2.0
//! NotifierQueue: a queue with a notifier for tasks that pull, but none for sources.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled, first in, first out, and wakes tasks that pull from it.
///
/// A packet that finds the queue full leaves on output 1, or is dropped if output 1 is not connected. A message is
/// printed for the first such packet. Tasks that pull from the queue sleep while it is empty. Sources upstream are not
/// notified when the queue is full, so they do not stop sending.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (pull): the same packets. Output 1 (push, optional): packets that found the queue
/// full.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> NotifierQueue(20) -> Unqueue -> Discard;
/// ```
#[derive(Class)]
#[class(name = "NotifierQueue", ports = "1/1-2", processing = "h/lh", packets = "any/same", workers = share)]
#[class(reconfigure = keeps, config_follows, fifo, capabilities(Storage, EmptyNotifier))]
#[class(ledger(holds), drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
pub struct NotifierQueue {
    #[engine(element)]
    store: Store,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    #[test]
    fn tells_pullers_only() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<NotifierQueue>::with_ports("5", 1, 2).unwrap();
            assert!(!kit.note(Capability::EmptyNotifier));
            let over = kit.push(0, (0..n).map(|i| packet(&[i])));
            assert!(kit.note(Capability::EmptyNotifier) && !kit.note(Capability::FullNotifier));
            assert!(over.iter().zip(5..).all(|((port, p), i)| *port == 1 && p.data() == [i]));
            assert_eq!(kit.gauge(0).get(), usize::from(n.min(5)));
            let got = kit.pull(0, 64);
            assert_eq!(got.len() + over.len(), usize::from(n));
            assert!(!kit.note(Capability::EmptyNotifier) && kit.gauge(0).get() == 0);
            assert!(kit.pull(0, 1).is_empty());
            let messages = if n > 5 { vec!["e :: NotifierQueue: overflow"] } else { vec![] };
            assert_eq!(kit.messages(), messages);
        }
    }
}

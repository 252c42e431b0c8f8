// SPDX-License-Identifier: MIT OR Apache-2.0
//! SimpleQueue: a queue that tells nobody.

use super::store::Store;
use castanet_element::prelude::*;

/// Stores packets until they are pulled, first in, first out, without notifying anybody.
///
/// A packet that finds the queue full leaves on output 1, or is dropped when that is not connected; a message tells of the
/// first. Tasks that pull from it never sleep.
///
/// # Ports
/// Input 0 (push): packets. Output 0 (pull): the same packets. Output 1 (push, optional): those that found no room.
///
/// # Example
/// ```click
/// InfiniteSource(LIMIT 100, STOP true) -> SimpleQueue(200) -> Unqueue -> Discard;
/// ```
#[derive(Class)]
#[class(name = "SimpleQueue", ports = "1/1-2", processing = "h/lh", packets = "any/same", workers = share)]
#[class(
    build,
    lifecycle,
    drops(QueueFull, Cleared, Stopped),
    takes_state = "the packets",
    capabilities(Storage)
)]
#[handler(name = "length", flags = "r", doc = "Packets in the queue.")]
#[handler(name = "highwater_length", flags = "r", doc = "The most packets that were in the queue.")]
#[handler(
    name = "capacity",
    flags = "rw.",
    doc = "The most packets in the queue; when it shrinks, the oldest stay."
)]
#[handler(name = "drops", flags = "r", doc = "Packets that found the queue full.")]
#[handler(name = "reset_counts", flags = "wb", doc = "Sets drops and highwater_length to 0.")]
#[handler(name = "reset", flags = "wb", doc = "Drops all packets in the queue.")]
pub struct SimpleQueue {
    args: Args,
    store: Store,
}

/// Arguments of SimpleQueue.
#[derive(Args)]
pub struct Args {
    /// The most packets in the queue.
    #[arg(default = 1000)]
    capacity: u32,
}

impl Build for SimpleQueue {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(SimpleQueue { store: Store::new(args.capacity, cx), args })
    }
}

impl Element for SimpleQueue {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.store.push(batch, cx);
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        self.store.pull(max, into, cx);
    }
}

impl Lifecycle for SimpleQueue {
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        self.store.clear(Reason::Stopped, cx);
        Ok(())
    }
    fn read(&mut self, handler: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.store.read(handler))
    }
    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.store.write(handler, value, cx)
    }
    fn take_state(&mut self, old: &mut dyn std::any::Any, cx: &mut Cx<'_>) -> Result<(), String> {
        if let Some(old) = old.downcast_mut::<SimpleQueue>() {
            self.store.take_over(&mut old.store, cx);
        }
        Ok(())
    }
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
            let got = kit.pull(0, 64);
            assert!(got.len() == usize::from(n.min(5)) && got.iter().zip(0..).all(|(p, i)| p.data() == [i]));
            assert_eq!(kit.dropped(Reason::QueueFull), u64::from(n - n.min(5)));
            assert_eq!(kit.read("highwater_length").unwrap(), n.min(5).to_string());
        }
        assert_eq!(Kit::<SimpleQueue>::new("many").err().unwrap(), ["CAPACITY: invalid number"]);
    }
}

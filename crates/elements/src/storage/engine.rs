// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of all queues: its argument, handlers and lifecycle.

use super::store::Store;
use castanet_element::prelude::*;

/// Arguments of queues.
#[derive(Args)]
pub struct Args {
    /// The maximum number of packets in the queue.
    #[arg(default = Capacity::new(1000), show = "1000")]
    pub(super) capacity: Capacity,
}

impl Element for Store {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        Store::push(self, batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        Store::push_one(self, p, cx);
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        Store::pull(self, max, into, cx);
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        Store::pull_one(self, cx)
    }
    fn level(&self) -> Option<Level> {
        Store::level(self)
    }
}

#[handlers]
impl Store {
    /// Packets in the queue.
    #[read(unit = "packets")]
    fn length(&self) -> usize {
        self.len()
    }
    /// The maximum number of packets that have been in the queue at one time.
    #[read(unit = "packets", merge = max)]
    fn highwater_length(&self) -> usize {
        self.highwater()
    }
    /// The maximum number of packets in the queue; if it shrinks, the oldest packets stay.
    #[read(name = "capacity", unit = "packets", calm)]
    fn read_capacity(&self) -> usize {
        self.capacity()
    }
    #[write(name = "capacity")]
    fn write_capacity(&mut self, capacity: Capacity, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        Ok(self.set_capacity(capacity, cx)?)
    }
    /// Sets drops and highwater_length to 0.
    #[write(name = "reset_counts", button)]
    fn write_reset_counts(&mut self) {
        self.reset_counts();
    }
    /// Drops all packets in the queue.
    #[write(button)]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.clear(Reason::Cleared, cx);
    }
}

impl Lifecycle for Store {
    fn held(&self) -> u64 {
        self.len() as u64
    }
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.allocate()?;
        self.notify(cx);
        Ok(())
    }
    fn cleanup(&mut self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.clear(Reason::Stopped, cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.take_packets(old, cx)
    }
}

impl Engine for Store {
    type Args = Args;
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.capacity == Capacity::new(0) {
            let text = "CAPACITY: a queue of capacity 0 stores nothing, so that every packet overflows";
            let help = "write a capacity of 1 or more, or leave it out for 1000 packets";
            cx.warn(ArgError::warning(text, 0..cx.config.len()).help(help));
        }
        Ok(Store::new(args, cx))
    }
    fn args(&mut self) -> &mut Args {
        &mut self.args
    }
}

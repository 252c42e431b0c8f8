// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all queues have in common: their argument, their handlers, what happens to them besides packets.

use castanet_element::prelude::*;

/// Arguments of queues.
#[derive(Args)]
pub struct Args {
    /// The most packets in the queue.
    #[arg(default = Capacity::new(1000), show = "1000")]
    pub(super) capacity: Capacity,
}

/// Declares the struct of a queue, which keeps its packets in a store; how they come in is left to its `Element`.
macro_rules! queue_class {
    ($(#[$meta:meta])* pub struct $class:ident;) => {
        $(#[$meta])*
        #[class(books(holds))]
        #[class(build, lifecycle, drops(QueueFull, Cleared, Stopped), takes_state = "the packets, the counts")]
        #[handler(name = "length", flags = "r", doc = "Packets in the queue.")]
        #[handler(name = "highwater_length", flags = "r", doc = "The most packets that were in the queue.")]
        #[handler(
            name = "capacity",
            flags = "rw.",
            doc = "The most packets in the queue; when it shrinks, the oldest stay."
        )]
        #[handler(name = "drops", flags = "r", doc = "Packets that found the queue full, or made room in it.")]
        #[handler(name = "reset_counts", flags = "wb", doc = "Sets drops and highwater_length to 0.")]
        #[handler(name = "reset", flags = "wb", doc = "Drops all packets in the queue.")]
        pub struct $class {
            args: $crate::storage::declare::Args,
            store: $crate::storage::store::Store,
        }

        impl Build for $class {
            fn build(args: Self::Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
                Ok($class { store: $crate::storage::store::Store::new(args.capacity, cx), args })
            }
        }

        impl Lifecycle for $class {
            fn held(&self) -> u64 {
                self.store.len() as u64
            }
            fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
                self.store.allocate()?;
                self.store.notify(Self::SPEC, cx);
                Ok(())
            }
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
                if let Some(old) = old.downcast_mut::<$class>() {
                    self.store.take_over(&mut old.store, cx);
                }
                Ok(())
            }
        }
    };
}
pub(super) use queue_class;

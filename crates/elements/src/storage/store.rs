// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of all queues. A queue that one worker uses needs no atomics. A queue that several workers use is a ring.

use super::engine::Args;
use castanet_element::kernel::{Code, Lowered};
use castanet_element::prelude::*;
use castanet_element::spec::ClassSpec;
use castanet_tables::{Fifo, Ring};
use parking_lot::RwLock;
use std::collections::TryReserveError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

mod ends;
mod moving;
mod pull;
mod push;
#[cfg(test)]
mod tests;

/// The state of a queue that several workers use. The lock is taken for writing only to change the capacity.
pub(super) struct Shared {
    ring: RwLock<Ring<Packet>>,
    highwater: AtomicUsize,
    drops: SharedCount,
    warned: AtomicBool,
}

enum Packets {
    Own { fifo: Fifo<Packet>, highwater: usize, warned: bool },
    Shared(Arc<Shared>),
}

impl Shared {
    fn new(capacity: usize) -> Shared {
        Shared {
            ring: RwLock::new(Ring::new(capacity)),
            highwater: AtomicUsize::new(0),
            drops: SharedCount::default(),
            warned: AtomicBool::new(false),
        }
    }
}

impl Room for Shared {
    fn room(&self, want: usize) -> usize {
        self.ring.read().room(want)
    }
    fn is_full(&self) -> bool {
        let ring = self.ring.read();
        ring.len() >= ring.capacity()
    }
}

impl Packets {
    fn own(capacity: usize) -> Packets {
        Packets::Own { fifo: Fifo::new(capacity), highwater: 0, warned: false }
    }
    /// Returns the drop counter for a new store. If several workers share the packets, they share the counter too.
    fn drops(&self) -> SharedCount {
        match self {
            Packets::Own { .. } => SharedCount::default(),
            Packets::Shared(s) => s.drops.clone(),
        }
    }
}

/// Returns the text of the error that a queue of this capacity could not be allocated.
fn no_memory(capacity: Capacity, e: &TryReserveError) -> String {
    format!("no memory for {} packets: {e}", capacity.get())
}

/// The engine of all queues: the stored packets, counters and notifiers.
#[derive(Counts)]
pub struct Store {
    pub(super) args: Args,
    packets: Packets,
    /// Packets that were refused, or removed to make room for others, because the queue was full.
    #[count(unit = "packets")]
    drops: SharedCount,
    /// The class of the queue.
    class: &'static ClassSpec,
    /// The notifier for tasks that pull. It is on while the store may have packets. `None` if the class declares no
    /// such notifier.
    empty: Option<Note>,
    /// The notifier for sources. It is on while the store is not full. `None` if the class declares no such notifier.
    full: Option<Note>,
    /// A copy of the number of packets, which other elements can read.
    gauge: Gauge,
}

impl Store {
    /// Makes an empty store with capacity 0. The replicas of one element share one store.
    pub fn new(args: Args, cx: &mut BuildCx<'_>) -> Store {
        let packets =
            if cx.replica.1 > 1 { Packets::Shared(cx.share(|| Shared::new(0))) } else { Packets::own(0) };
        Store {
            args,
            drops: packets.drops(),
            packets,
            class: cx.spec,
            empty: None,
            full: None,
            gauge: Gauge::default(),
        }
    }

    /// Allocates memory for the packets. This happens at initialisation and not in `build`, because some configurations
    /// are built only to be checked.
    pub fn allocate(&mut self) -> Result<(), ElementError> {
        let capacity = self.args.capacity.get() as usize;
        let failed = |e| no_memory(self.args.capacity, &e);
        match &mut self.packets {
            Packets::Own { fifo, .. } => *fifo = Fifo::try_new(capacity).map_err(failed)?,
            Packets::Shared(s) => {
                let mut ring = s.ring.write();
                // The first replica allocates the ring for all replicas. After live reconfiguration the ring is in use
                // already, and `take_packets` changes its capacity.
                if ring.capacity() == 0 && capacity != 0 {
                    *ring = Ring::try_new(capacity).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Gets the notifiers that the class declares, and the gauge, from the router.
    pub fn notify(&mut self, cx: &mut InitCx<'_>) {
        let note = |c: Capability| self.class.has(c).then(|| cx.note(c)).flatten();
        (self.empty, self.full) = (note(Capability::EmptyNotifier), note(Capability::FullNotifier));
        self.gauge = cx.gauge();
        self.gauge.set_capacity(self.capacity());
        if let (Some(full), Packets::Shared(s)) = (self.full, &self.packets) {
            cx.measure(full, s.clone());
        }
        if let Some(full) = self.full.filter(|_| !self.is_full()) {
            cx.set_note(full);
        }
    }

    /// Returns the number of packets in the store.
    pub fn len(&self) -> usize {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.len(),
            Packets::Shared(s) => s.ring.read().len(),
        }
    }
    /// Returns the maximum number of packets in the store.
    pub fn capacity(&self) -> usize {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.capacity(),
            Packets::Shared(s) => s.ring.read().capacity(),
        }
    }
    fn is_full(&self) -> bool {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.is_full(),
            Packets::Shared(s) => Room::is_full(s.as_ref()),
        }
    }
    /// Returns the number of packets and the capacity. None if several workers use the store.
    pub fn level(&self) -> Option<Level> {
        match &self.packets {
            Packets::Own { fifo, .. } => Some(Level { packets: fifo.len(), capacity: fifo.capacity() }),
            Packets::Shared(_) => None,
        }
    }
    /// Returns the maximum number of packets that have been in the store at one time.
    pub fn highwater(&self) -> usize {
        match &self.packets {
            Packets::Own { highwater, .. } => *highwater,
            Packets::Shared(s) => s.highwater.load(Ordering::Relaxed),
        }
    }
    /// Returns the number of packets that were refused or removed because the store was full.
    pub fn drops(&self) -> u64 {
        self.drops.get()
    }
    /// Sets the drop counter and the high-water mark to 0.
    pub fn reset_counts(&mut self) {
        match &mut self.packets {
            Packets::Own { highwater, .. } => *highwater = 0,
            Packets::Shared(s) => s.highwater.store(0, Ordering::Relaxed),
        }
        self.drops.reset();
    }
}

impl InKernel for Store {
    fn lower(&self, _: u32, code: &mut Code<'_>) -> Lowered {
        // In the kernel, a packet is pulled as soon as it is pushed. The compiler has checked that nothing observes the queue.
        code.next(0);
        Ok(())
    }
}

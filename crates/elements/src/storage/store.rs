// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a queue. A queue of one worker needs no atomics; a queue of several workers uses a ring.

use super::engine::Args;
use crate::handover;
use castanet_element::prelude::*;
use castanet_element::spec::ClassSpec;
use castanet_tables::{Fifo, Ring};
use std::collections::TryReserveError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

mod ends;
#[cfg(test)]
mod tests;

/// The part of a queue that all workers share. The lock is taken for writing only to change the capacity.
pub(super) struct Shared {
    ring: RwLock<Ring<Packet>>,
    highwater: AtomicUsize,
    drops: AtomicU64,
    warned: AtomicBool,
}

enum Packets {
    Own { fifo: Fifo<Packet>, highwater: usize, drops: u64, warned: bool },
    Shared(Arc<Shared>),
}

impl Shared {
    fn new(capacity: usize) -> Shared {
        Shared {
            ring: RwLock::new(Ring::new(capacity)),
            highwater: AtomicUsize::new(0),
            drops: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        }
    }
    /// Locks the ring for reading, even if the lock is poisoned. No code panics while it holds the lock, and
    /// even after a panic the ring would be consistent.
    fn ring(&self) -> RwLockReadGuard<'_, Ring<Packet>> {
        self.ring.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room for Shared {
    fn room(&self, want: usize) -> usize {
        self.ring().room(want)
    }
    fn is_full(&self) -> bool {
        let ring = self.ring();
        ring.len() >= ring.capacity()
    }
}

impl Packets {
    fn own(capacity: usize) -> Packets {
        Packets::Own { fifo: Fifo::new(capacity), highwater: 0, drops: 0, warned: false }
    }
}

/// Returns the message that a queue of this capacity could not be allocated.
fn no_memory(capacity: Capacity, e: &TryReserveError) -> String {
    format!("no memory for {} packets: {e}", capacity.get())
}

/// The engine of all queues: their packets, counters and notifiers.
#[derive(Counts)]
pub struct Store {
    pub(super) args: Args,
    packets: Packets,
    /// The class of the queue.
    class: &'static ClassSpec,
    /// The empty notifier, for tasks that pull: it is on while there may be packets.
    empty: Option<Note>,
    /// The full notifier, for sources: it is on while the store is not full.
    full: Option<Note>,
    /// The number of packets, which other elements can read.
    gauge: Gauge,
}

impl Store {
    /// Makes an empty store with capacity 0. The replicas of one element share one store.
    pub fn new(args: Args, cx: &mut BuildCx<'_>) -> Store {
        let packets =
            if cx.replica.1 > 1 { Packets::Shared(cx.share(|| Shared::new(0))) } else { Packets::own(0) };
        Store { args, packets, class: cx.spec, empty: None, full: None, gauge: Gauge::default() }
    }

    /// Allocates room for packets. This happens at initialisation and not earlier, because a configuration may be
    /// built only to be checked.
    pub fn allocate(&mut self) -> Result<(), ElementError> {
        let capacity = self.args.capacity.get() as usize;
        let failed = |e| no_memory(self.args.capacity, &e);
        match &mut self.packets {
            Packets::Own { fifo, .. } => *fifo = Fifo::try_new(capacity).map_err(failed)?,
            Packets::Shared(s) => {
                let mut ring = s.ring.write().unwrap_or_else(PoisonError::into_inner);
                // The first replica allocates for all. After live reconfiguration the ring is in use already,
                // and `take_packets` changes its capacity.
                if ring.capacity() == 0 && capacity != 0 {
                    *ring = Ring::try_new(capacity).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Gets the notifiers that the class declares, and the gauge.
    pub fn notify(&mut self, cx: &mut InitCx<'_>) {
        let note = |c: Capability| self.class.has(c).then(|| cx.note(c)).flatten();
        (self.empty, self.full) = (note(Capability::EmptyNotifier), note(Capability::FullNotifier));
        self.gauge = cx.gauge();
        if let (Some(full), Packets::Shared(s)) = (self.full, &self.packets) {
            cx.measure(full, s.clone());
        }
        if let Some(full) = self.full.filter(|_| !self.is_full()) {
            cx.set_note(full);
        }
    }

    /// The number of packets in the store.
    pub fn len(&self) -> usize {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.len(),
            Packets::Shared(s) => s.ring().len(),
        }
    }
    /// The most packets that the store may hold.
    pub fn capacity(&self) -> usize {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.capacity(),
            Packets::Shared(s) => s.ring().capacity(),
        }
    }
    fn is_full(&self) -> bool {
        match &self.packets {
            Packets::Own { fifo, .. } => fifo.is_full(),
            Packets::Shared(s) => Room::is_full(s.as_ref()),
        }
    }
    /// The most packets that have been in the store at a time.
    pub fn highwater(&self) -> usize {
        match &self.packets {
            Packets::Own { highwater, .. } => *highwater,
            Packets::Shared(s) => s.highwater.load(Ordering::Relaxed),
        }
    }
    /// The number of packets that were refused or removed because the store was full.
    pub fn drops(&self) -> u64 {
        match &self.packets {
            Packets::Own { drops, .. } => *drops,
            Packets::Shared(s) => s.drops.load(Ordering::Relaxed),
        }
    }
    /// Sets the counters to 0.
    pub fn reset_counts(&mut self) {
        match &mut self.packets {
            Packets::Own { highwater, drops, .. } => (*highwater, *drops) = (0, 0),
            Packets::Shared(s) => {
                s.highwater.store(0, Ordering::Relaxed);
                s.drops.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Stores packets until the store is full, and passes the rest to `overflow`.
    #[inline]
    pub fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let was_empty = match &mut self.packets {
            Packets::Own { fifo, highwater, .. } => {
                let was_empty = fifo.is_empty();
                // A batch of one packet is common, and faster without copying ranges.
                if batch.len() == 1
                    && let Some(p) = batch.pop()
                {
                    if let Err(p) = fifo.push(p) {
                        batch.push(p);
                    }
                } else {
                    fifo.extend_from(batch.as_mut_vec());
                }
                *highwater = fifo.len().max(*highwater);
                self.gauge.set(fifo.len());
                was_empty
            }
            Packets::Shared(s) => {
                let ring = s.ring();
                let before = batch.len();
                ring.push_many(batch.as_mut_vec());
                self.gauge.add(before - batch.len());
                // Write only if the high-water mark rises, because each write takes the cache line from the other
                // workers.
                let len = ring.len();
                if len > s.highwater.load(Ordering::Relaxed) {
                    s.highwater.fetch_max(len, Ordering::Relaxed);
                }
                // Treat the ring as having been empty, so that the notifier is always set: a
                // puller may have cleared it just before these packets were added.
                true
            }
        };
        if was_empty && let Some(note) = self.empty {
            cx.set_note(note);
        }
        if self.full.is_some() && self.is_full() {
            self.close(cx);
        }
        if !batch.is_empty() {
            self.overflow(batch, cx);
        }
    }

    /// Stores one packet at the end, or passes it to `overflow` if the store is full.
    #[inline]
    pub fn push_one(&mut self, p: Packet, cx: &mut Cx<'_>) {
        if let Packets::Own { fifo, highwater, .. } = &mut self.packets {
            let was_empty = fifo.is_empty();
            if let Err(p) = fifo.push(p) {
                return self.push_late(p, cx);
            }
            let len = fifo.len();
            if len > *highwater {
                *highwater = len;
            }
            self.gauge.set(len);
            let tell = was_empty && self.empty.is_some_and(|note| !cx.is_set(note));
            if tell || fifo.is_full() {
                self.tell_change(cx);
            }
            return;
        }
        self.push_late(p, cx);
    }
    /// Sets the notifier for pullers. If the store is full, also clears the notifier for sources.
    #[inline(never)]
    fn tell_change(&self, cx: &mut Cx<'_>) {
        if let Some(note) = self.empty {
            cx.set_note(note);
        }
        if self.full.is_some() && self.is_full() {
            self.close(cx);
        }
    }
    #[inline(never)]
    fn push_late(&mut self, p: Packet, cx: &mut Cx<'_>) {
        let mut batch = cx.spare_batch();
        batch.push(p);
        self.push(&mut batch, cx);
        cx.return_batch(batch);
    }

    /// Clears the notifier for sources. Sets it again if another worker has pulled packets in the meantime.
    #[inline(never)]
    fn close(&self, cx: &mut Cx<'_>) {
        let Some(note) = self.full else { return };
        cx.clear_note(note);
        if !self.is_full() {
            cx.set_note(note);
        }
    }

    /// Counts packets that were refused or removed because the store was full, and prints a message the first
    /// time. Sends the packets to output 1 if that is connected, and drops them otherwise.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let n = batch.len() as u64;
        let silent = match &mut self.packets {
            Packets::Own { fifo, drops, warned, .. } => {
                *drops = drops.wrapping_add(n);
                fifo.capacity() == 0 || std::mem::replace(warned, true)
            }
            Packets::Shared(s) => {
                s.drops.fetch_add(n, Ordering::Relaxed);
                let capacity = s.ring().capacity();
                capacity == 0 || s.warned.swap(true, Ordering::Relaxed)
            }
        };
        if !silent {
            cx.message(&format!("{}: overflow", cx.declaration()));
        }
        if cx.has_output(1) {
            cx.forward(1, batch);
        } else {
            cx.drop_all(batch, Reason::QueueFull);
        }
    }

    /// Moves at most `max` packets to `into`, the oldest first.
    #[inline]
    pub fn pull(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let (n, was_full) = match &mut self.packets {
            Packets::Own { fifo, .. } => {
                let was_full = fifo.is_full();
                let n = match max {
                    1 => fifo.pop().map(|p| into.push(p)).map_or(0, |()| 1),
                    _ => fifo.drain_into(max, into.as_mut_vec()),
                };
                self.gauge.set(fifo.len());
                (n, was_full)
            }
            Packets::Shared(s) => {
                let ring = s.ring();
                // Treat the ring as having been full, because other workers may have filled it.
                // Setting a notifier that is set already costs only a read.
                let n = ring.pop_many(max, into.as_mut_vec());
                self.gauge.sub(n);
                (n, true)
            }
        };
        if n > 0
            && was_full
            && let Some(note) = self.full
        {
            cx.set_note(note);
        }
        // Do as single pulls would: the last of them would have found no packet, and cleared the notifier.
        if n < max {
            self.found_empty(cx);
        }
    }

    /// Returns the oldest packet.
    #[inline]
    pub fn pull_one(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Packets::Own { fifo, .. } = &mut self.packets
            && !fifo.is_full()
            && let Some(p) = fifo.pop()
        {
            self.gauge.set(fifo.len());
            return Some(p);
        }
        self.pull_late(cx)
    }
    #[inline(never)]
    fn pull_late(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let p = match &mut self.packets {
            Packets::Own { fifo, .. } => {
                let p = fifo.pop();
                self.gauge.set(fifo.len());
                p
            }
            Packets::Shared(s) => {
                let p = s.ring().pop();
                self.gauge.sub(usize::from(p.is_some()));
                p
            }
        };
        match self.full {
            _ if p.is_none() => self.found_empty(cx),
            // The store may have been full before. Setting a notifier that is set already costs only a read.
            Some(note) => cx.set_note(note),
            None => {}
        }
        p
    }

    /// Clears the notifier for pullers. Sets it again if another worker has added packets in the meantime.
    #[cold]
    fn found_empty(&self, cx: &mut Cx<'_>) {
        let Some(note) = self.empty else { return };
        cx.clear_note(note);
        if self.len() > 0 {
            cx.set_note(note);
        }
    }

    /// Changes the capacity. The oldest packets stay. Surplus packets are dropped, but not counted as drops
    /// of the queue.
    pub fn set_capacity(&mut self, capacity: Capacity, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let room = capacity.get() as usize;
        let surplus = match &mut self.packets {
            Packets::Own { fifo, .. } => fifo.try_resize(room),
            Packets::Shared(s) => {
                s.ring.write().unwrap_or_else(PoisonError::into_inner).try_set_capacity(room)
            }
        };
        let surplus = surplus.map_err(|e| no_memory(capacity, &e))?;
        self.measure(surplus.len());
        for p in surplus {
            cx.drop(p, Reason::Cleared);
        }
        if self.is_full() {
            self.close(cx);
        } else if let Some(note) = self.full {
            cx.set_note(note);
        }
        Ok(())
    }

    /// Updates the gauge after `gone` packets were taken out.
    fn measure(&self, gone: usize) {
        match &self.packets {
            Packets::Own { fifo, .. } => self.gauge.set(fifo.len()),
            Packets::Shared(_) => self.gauge.sub(gone),
        }
    }
    /// Drops all packets for a reason.
    pub fn clear(&mut self, reason: Reason, cx: &mut Cx<'_>) {
        let mut all = Batch::empty();
        self.pull(usize::MAX, &mut all, cx);
        cx.drop_all(&mut all, reason);
    }

    /// Takes over the packets of a queue of the old router. After live reconfiguration, a queue of several
    /// workers has the packets already, and only gets its new capacity.
    ///
    /// # Errors
    /// If there is no memory for the new capacity.
    pub fn take_packets(&mut self, old: &mut Store, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        if let (Packets::Shared(a), Packets::Shared(b)) = (&self.packets, &old.packets)
            && Arc::ptr_eq(a, b)
        {
            return self.set_capacity(self.args.capacity, cx);
        }
        let mut all = Batch::empty();
        let (high, drops, warned) = old.give(&mut all);
        let (before, capacity) = (all.len(), self.capacity());
        match &mut self.packets {
            Packets::Own { fifo, highwater, drops: mine, warned: told } => {
                fifo.extend_from(all.as_mut_vec());
                self.gauge.set(fifo.len());
                *highwater = high.min(capacity).max(*highwater).max(fifo.len());
                *mine = mine.wrapping_add(drops);
                *told |= warned;
            }
            Packets::Shared(s) => {
                let ring = s.ring();
                ring.push_many(all.as_mut_vec());
                self.gauge.add(before - all.len());
                s.highwater.fetch_max(high.min(capacity).max(ring.len()), Ordering::Relaxed);
                s.drops.fetch_add(drops, Ordering::Relaxed);
                s.warned.fetch_or(warned, Ordering::Relaxed);
            }
        }
        if !all.is_empty() {
            let text = format!("some packets lost (old length {before}, new capacity {capacity})");
            handover::warn(&text, cx);
            cx.drop_all(&mut all, Reason::Cleared);
        }
        if self.len() > 0
            && let Some(note) = self.empty
        {
            cx.set_note(note);
        }
        if self.full.is_some() && self.is_full() {
            self.close(cx);
        }
        Ok(())
    }
    /// Moves all packets to `into`. Returns the highwater mark, the drops, and whether an overflow was
    /// reported.
    fn give(&mut self, into: &mut Batch) -> (usize, u64, bool) {
        match &mut self.packets {
            Packets::Own { fifo, highwater, drops, warned } => {
                fifo.drain_into(usize::MAX, into.as_mut_vec());
                self.gauge.set(0);
                (*highwater, std::mem::take(drops), *warned)
            }
            Packets::Shared(s) => {
                let n = s.ring().pop_many(usize::MAX, into.as_mut_vec());
                self.gauge.sub(n);
                let drops = s.drops.swap(0, Ordering::Relaxed);
                (s.highwater.load(Ordering::Relaxed), drops, s.warned.load(Ordering::Relaxed))
            }
        }
    }
}

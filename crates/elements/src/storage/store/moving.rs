// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes the capacity of a store, empties it, and moves its packets to the store of another router (hot swap).

use super::{Packets, Store, no_memory};
use crate::handover;
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Store {
    /// Changes the capacity. The oldest packets stay. Packets that no longer fit are dropped, but the drop counter does
    /// not count them.
    pub fn set_capacity(&mut self, capacity: Capacity, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let room = capacity.get() as usize;
        let surplus = match &mut self.packets {
            Packets::Own { fifo, .. } => fifo.try_resize(room),
            Packets::Shared(s) => s.ring.write().try_set_capacity(room),
        };
        let surplus = surplus.map_err(|e| no_memory(capacity, &e))?;
        self.measure(surplus.len());
        self.gauge.set_capacity(room);
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

    /// Updates the gauge of stored packets after `gone` packets have been taken out.
    fn measure(&self, gone: usize) {
        match &self.packets {
            Packets::Own { fifo, .. } => self.gauge.set(fifo.len()),
            Packets::Shared(_) => self.gauge.sub(gone),
        }
    }
    /// Drops all packets, with the given drop reason.
    pub fn clear(&mut self, reason: Reason, cx: &mut Cx<'_>) {
        let mut all = Batch::empty();
        self.pull(usize::MAX, &mut all, cx);
        cx.drop_all(&mut all, reason);
    }

    /// Takes over the packets of a queue of the old router. After live reconfiguration of a queue that several workers
    /// use, the old and the new element have the same ring, so only the capacity changes.
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
        let (high, warned) = old.give(&mut all);
        let (before, capacity) = (all.len(), self.capacity());
        match &mut self.packets {
            Packets::Own { fifo, highwater, warned: told } => {
                fifo.extend_from(all.as_mut_vec());
                self.gauge.set(fifo.len());
                *highwater = high.min(capacity).max(*highwater).max(fifo.len());
                *told |= warned;
            }
            Packets::Shared(s) => {
                let ring = s.ring.read();
                ring.push_many(all.as_mut_vec());
                self.gauge.add(before - all.len());
                s.highwater.fetch_max(high.min(capacity).max(ring.len()), Ordering::Relaxed);
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
    /// Moves all packets to `into`. Returns the high-water mark, and whether the message about an overflow has been
    /// printed.
    fn give(&mut self, into: &mut Batch) -> (usize, bool) {
        match &mut self.packets {
            Packets::Own { fifo, highwater, warned } => {
                fifo.drain_into(usize::MAX, into.as_mut_vec());
                self.gauge.set(0);
                (*highwater, *warned)
            }
            Packets::Shared(s) => {
                let n = s.ring.read().pop_many(usize::MAX, into.as_mut_vec());
                self.gauge.sub(n);
                (s.highwater.load(Ordering::Relaxed), s.warned.load(Ordering::Relaxed))
            }
        }
    }
}

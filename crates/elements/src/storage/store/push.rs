// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushes packets into a store. A full store refuses packets.

use super::{Packets, Store};
use castanet_element::prelude::*;
use std::sync::atomic::Ordering;

impl Store {
    /// Stores packets at the end until the store is full, and passes the remaining ones to `overflow`.
    #[inline]
    pub fn push(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let was_empty = match &mut self.packets {
            Packets::Own { fifo, highwater, .. } => {
                let was_empty = fifo.is_empty();
                // A batch of one packet is common. It is faster to move the packet than to copy a range.
                if batch.len() == 1
                    && let Some(p) = batch.pop()
                {
                    if let Err(p) = fifo.push(p) {
                        batch.push(p);
                    }
                } else {
                    fifo.extend_from(batch.as_mut_vec());
                }
                *highwater = fifo.len().min(cx.peak()).max(*highwater);
                self.gauge.set(fifo.len());
                was_empty
            }
            Packets::Shared(s) => {
                let ring = s.ring.read();
                let before = batch.len();
                ring.push_many(batch.as_mut_vec());
                self.gauge.add(before - batch.len());
                // Write only if the high-water mark rises, because each write takes the cache line away from other
                // workers.
                let len = ring.len();
                if len > s.highwater.load(Ordering::Relaxed) {
                    s.highwater.fetch_max(len, Ordering::Relaxed);
                }
                // Act as if the ring had been empty, so that the notifier is set. A task that pulls may have cleared it
                // just before these packets were added.
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
    /// Sets the notifier for tasks that pull. If the store is full, clears the notifier for sources.
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
    pub(super) fn close(&self, cx: &mut Cx<'_>) {
        let Some(note) = self.full else { return };
        cx.clear_note(note);
        if !self.is_full() {
            cx.set_note(note);
        }
    }

    /// Counts packets that were refused or removed because the store was full. Prints a message the first time. Sends
    /// the packets to output 1, or drops them if output 1 is not connected.
    #[cold]
    #[inline(never)]
    pub(super) fn overflow(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.drops.add(batch.len() as u64);
        let silent = match &mut self.packets {
            Packets::Own { fifo, warned, .. } => fifo.capacity() == 0 || std::mem::replace(warned, true),
            Packets::Shared(s) => {
                let capacity = s.ring.read().capacity();
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
}

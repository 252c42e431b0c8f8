// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pushes packets into a store, at either end. If the store is full, packets at the other end are removed to make room.

use super::{Packets, Store};
use castanet_element::prelude::*;
use castanet_tables::Ring;
use std::sync::atomic::Ordering;

impl Store {
    /// Adds packets at the end. If they do not fit, removes the oldest packets.
    pub fn push_over_oldest(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut over = cx.spare_batch();
        match &mut self.packets {
            Packets::Own { fifo, highwater, .. } => {
                let surplus = fifo.len().saturating_add(batch.len()).saturating_sub(fifo.capacity());
                let stored = fifo.drain_into(surplus, over.as_mut_vec());
                // If the batch is longer than the capacity, the first packets of the batch are removed too, because the
                // later packets would have displaced them.
                over.extend(batch.as_mut_vec().drain(..surplus - stored));
                fifo.extend_from(batch.as_mut_vec());
                *highwater = fifo.len().max(*highwater);
                self.gauge.set(fifo.len());
            }
            Packets::Shared(s) => {
                let ring = s.ring.read();
                let came = batch.len();
                for p in batch.drain() {
                    force(&ring, p, &mut over);
                }
                // If other workers push at the same time, this push may remove more packets than it adds. The gauge
                // then falls.
                self.gauge.add(came);
                self.gauge.sub(over.len());
                s.highwater.fetch_max(ring.len(), Ordering::Relaxed);
            }
        }
        self.tell(over, cx);
    }

    /// Adds packets at the front, one by one, so that the last packet of the batch is the first to leave. If the store
    /// is full, removes packets at its end.
    pub fn push_front(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        // INVARIANT: a class that pushes to the front runs on one worker only, so its packets are not shared.
        let Packets::Own { fifo, highwater, .. } = &mut self.packets else { return self.push(batch, cx) };
        let mut over = cx.spare_batch();
        for p in batch.drain() {
            if fifo.is_full() {
                over.extend(fifo.pop_back());
            }
            over.extend(fifo.push_front(p).err());
            *highwater = fifo.len().max(*highwater);
        }
        self.gauge.set(fifo.len());
        self.tell(over, cx);
    }

    /// Notifies tasks that pull, and passes the removed packets in `over` to `overflow`.
    fn tell(&mut self, mut over: Batch, cx: &mut Cx<'_>) {
        if let Some(note) = self.empty.filter(|_| self.len() > 0) {
            cx.set_note(note);
        }
        if !over.is_empty() {
            self.overflow(&mut over, cx);
        }
        cx.return_batch(over);
    }
}

/// Pushes a packet to a ring that other workers use too. As long as the ring is full, moves the ring's oldest packet to
/// `over`.
fn force(ring: &Ring<Packet>, p: Packet, over: &mut Batch) {
    let mut new = p;
    if ring.capacity() == 0 {
        return over.push(new);
    }
    while let Err(back) = ring.push(new) {
        new = back;
        over.extend(ring.pop());
    }
}

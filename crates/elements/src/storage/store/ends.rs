// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that come in where others must go: the oldest makes room, or the newest does.

use super::{Packets, Store};
use castanet_element::prelude::*;
use castanet_tables::Ring;
use std::sync::atomic::Ordering;

impl Store {
    /// Takes all packets in; where there is no room, the oldest make it.
    pub fn push_over_oldest(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut over = cx.spare_batch();
        match &mut self.packets {
            Packets::Own { fifo, highwater, .. } => {
                let surplus = fifo.len().saturating_add(batch.len()).saturating_sub(fifo.capacity());
                let stored = fifo.drain_into(surplus, over.as_mut_vec());
                // The rest are packets that would have come in and become the oldest within this batch.
                over.extend(batch.as_mut_vec().drain(..surplus - stored));
                fifo.extend_from(batch.as_mut_vec());
                *highwater = fifo.len().max(*highwater);
                self.gauge.set(fifo.len());
            }
            Packets::Shared(s) => {
                let ring = s.ring();
                let came = batch.len();
                for p in batch.drain() {
                    force(&ring, p, &mut over);
                }
                // Packets that others stored before may have made room, so fewer packets may be left.
                self.gauge.add(came);
                self.gauge.sub(over.len());
                s.highwater.fetch_max(ring.len(), Ordering::Relaxed);
            }
        }
        self.tell(over, cx);
    }

    /// Takes packets in before all others, the last of the batch foremost; where there is no room, the newest make it.
    pub fn push_front(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        // INVARIANT: a class that pushes to the front is exclusive to one worker, so its packets are its own.
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

    /// Notifies pullers, and sends on the packets that had to make room.
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

/// Puts a packet into a ring that others use too, and takes the oldest out for as long as there is no room.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulls packets from a store.

use super::{Packets, Store};
use castanet_element::prelude::*;

impl Store {
    /// Moves at most `max` packets from the store to `into`, the oldest first.
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
                let ring = s.ring.read();
                // Other workers may have filled the ring, so set the notifier for sources as if the ring had been full.
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
        // Do the same as single pulls: if fewer than `max` packets were pulled, the last single pull would have found
        // no packet, and would have cleared the notifier.
        if n < max {
            self.found_empty(cx);
        }
    }

    /// Removes and returns the oldest packet.
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
                let p = s.ring.read().pop();
                self.gauge.sub(usize::from(p.is_some()));
                p
            }
        };
        match self.full {
            _ if p.is_none() => self.found_empty(cx),
            // The store may have been full. Setting a notifier that is set already costs only a read.
            Some(note) => cx.set_note(note),
            None => {}
        }
        p
    }

    /// Clears the notifier for tasks that pull. Sets it again if another worker has added packets in the meantime.
    #[cold]
    pub(super) fn found_empty(&self, cx: &mut Cx<'_>) {
        let Some(note) = self.empty else { return };
        cx.clear_note(note);
        if self.len() > 0 {
            cx.set_note(note);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches: packets in order.

use crate::packet::Packet;

/// Packets in order. It has room for 64 from the start, so that ordinary batches never allocate.
#[derive(Debug)]
pub struct Batch(Vec<Packet>);

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// The most packets that a task should put in one batch.
    pub const MAX: usize = 256;

    /// An empty batch.
    pub fn new() -> Batch {
        Batch(Vec::with_capacity(64))
    }
    /// An empty batch without room: it costs nothing until something is put in.
    pub const fn empty() -> Batch {
        Batch(Vec::new())
    }
    /// An empty batch with room for `n`.
    pub fn with_capacity(n: usize) -> Batch {
        Batch(Vec::with_capacity(n))
    }
    /// Number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Adds a packet behind the others.
    #[inline(always)]
    pub fn push(&mut self, p: Packet) {
        self.0.push(p);
    }
    /// Takes the last packet.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        self.0.pop()
    }
    /// Moves all packets of `other` behind these; by exchange when there are none.
    #[inline(always)]
    pub fn append(&mut self, other: &mut Batch) {
        if self.0.is_empty() {
            std::mem::swap(&mut self.0, &mut other.0);
        } else {
            self.0.append(&mut other.0);
        }
    }
    /// Drops all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
    /// Takes all packets out, in order.
    #[inline(always)]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.0.drain(..)
    }
    /// The packets as a slice.
    #[inline(always)]
    pub fn as_slice(&self) -> &[Packet] {
        &self.0
    }
    /// The packets as a slice, to be changed.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        &mut self.0
    }
    /// The vector behind it.
    #[inline(always)]
    pub fn as_mut_vec(&mut self) -> &mut Vec<Packet> {
        &mut self.0
    }
    /// Goes through the packets.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.0.iter()
    }
    /// Goes through the packets, to change them.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Packet> {
        self.0.iter_mut()
    }
}

impl Extend<Packet> for Batch {
    fn extend<T: IntoIterator<Item = Packet>>(&mut self, iter: T) {
        self.0.extend(iter);
    }
}

impl FromIterator<Packet> for Batch {
    fn from_iter<T: IntoIterator<Item = Packet>>(iter: T) -> Self {
        Batch(iter.into_iter().collect())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches: packets in order.

use crate::packet::Packet;

/// An ordered list of packets. It is created with room for 64 packets, so that ordinary batches never reallocate.
#[derive(Debug)]
pub struct Batch(Vec<Packet>);

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// The maximum number of packets that a task should put in a batch.
    pub const MAX: usize = 256;

    /// An empty batch.
    pub fn new() -> Batch {
        Batch(Vec::with_capacity(64))
    }
    /// An empty batch without memory. Memory is allocated when the first packet is added.
    pub const fn empty() -> Batch {
        Batch(Vec::new())
    }
    /// An empty batch with room for `n` packets.
    pub fn with_capacity(n: usize) -> Batch {
        Batch(Vec::with_capacity(n))
    }
    /// The number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are no packets.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Appends a packet.
    #[inline(always)]
    pub fn push(&mut self, p: Packet) {
        self.0.push(p);
    }
    /// Removes the last packet and returns it.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        self.0.pop()
    }
    /// Moves all packets of `other` to the end of this batch. If this batch is empty, the two batches only exchange
    /// their vectors.
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
        Packet::drop_all(&mut self.0);
    }
    /// Drops all packets. Returns the number of packets that they count as: super-packets count as their segments.
    #[inline]
    pub fn clear_counted(&mut self) -> u64 {
        Packet::drop_all(&mut self.0)
    }
    /// Removes all packets and returns them in order.
    #[inline(always)]
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.0.drain(..)
    }
    /// The packets as a slice.
    #[inline(always)]
    pub fn as_slice(&self) -> &[Packet] {
        &self.0
    }
    /// The packets as a mutable slice.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [Packet] {
        &mut self.0
    }
    /// The underlying vector.
    #[inline(always)]
    pub fn as_mut_vec(&mut self) -> &mut Vec<Packet> {
        &mut self.0
    }
    /// Iterates over the packets.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, Packet> {
        self.0.iter()
    }
    /// Iterates over the packets mutably.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn batch(numbers: &[u8]) -> Batch {
        numbers.iter().map(|&n| Packet::copy_of(&[n]).unwrap()).collect()
    }
    fn numbers(b: &Batch) -> Vec<u8> {
        b.iter().map(|p| p.data()[0]).collect()
    }

    #[test]
    fn room_is_as_asked() {
        let room = |mut b: Batch| (b.len(), b.as_mut_vec().capacity());
        assert_eq!(room(Batch::empty()), (0, 0));
        assert_eq!(room(Batch::with_capacity(3)), (0, 3));
        assert_eq!((room(Batch::new()), room(Batch::default())), ((0, 64), (0, 64)));
    }

    #[test]
    fn packets_keep_their_order() {
        let mut b = Batch::new();
        assert!(b.is_empty() && b.pop().is_none());
        b.push(Packet::copy_of(&[1]).unwrap());
        b.extend(batch(&[2, 3]).drain());
        assert!(!b.is_empty());
        assert_eq!((b.len(), numbers(&b)), (3, vec![1, 2, 3]));
        assert_eq!(b.pop().unwrap().data(), [3]);
        b.iter_mut().for_each(|p| p.data_mut()[0] += 10);
        b.as_mut_slice().swap(0, 1);
        b.as_mut_vec().push(Packet::copy_of(&[4]).unwrap());
        assert_eq!((b.as_slice().len(), numbers(&b)), (3, vec![12, 11, 4]));
        assert_eq!(b.drain().map(|p| p.data()[0]).collect::<Vec<_>>(), [12, 11, 4]);
        assert!(b.is_empty());
        b.extend(batch(&[5]).drain());
        b.clear();
        assert!(b.is_empty());
    }

    #[test]
    fn appending_moves_all_packets() {
        for (first, second) in [(&[][..], &[][..]), (&[], &[1, 2]), (&[1], &[]), (&[1, 2], &[3, 4, 5])] {
            let (mut a, mut b) = (batch(first), batch(second));
            a.append(&mut b);
            assert_eq!((numbers(&a), b.len()), ([first, second].concat(), 0));
        }
        // An empty batch takes the other's vector instead of copying.
        let (mut a, mut b) = (Batch::new(), batch(&[1]));
        let at = b.as_slice().as_ptr();
        a.append(&mut b);
        assert_eq!((a.as_slice().as_ptr(), b.as_mut_vec().capacity()), (at, 64));
    }
}

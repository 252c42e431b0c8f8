// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue of bytes.

use super::Memory;

/// The least capacity of a queue, and the largest one that an empty queue keeps: many connections are idle.
const LEAST: usize = 256;
const KEPT: usize = 4096;

/// A queue of bytes in a ring. INVARIANT: the capacity is 0 or a power of two, `first` is less than it, or 0, and `len` is not
/// more than it.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: Box<[u8]>,
    first: usize,
    len: usize,
}

impl Ring {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The bytes, in two parts.
    #[inline]
    pub(super) fn as_slices(&self) -> (&[u8], &[u8]) {
        let (before, from) = self.bytes.split_at_checked(self.first).unwrap_or_default();
        match (from.get(..self.len), before.get(..self.len.saturating_sub(from.len()))) {
            (Some(all), _) => (all, &[]),
            (None, rest) => (from, rest.unwrap_or_default()),
        }
    }
    /// Appends bytes.
    pub(super) fn write(&mut self, data: &[u8], memory: &Memory) {
        let (first, second) = self.extend(data.len(), memory);
        let (now, later) = data.split_at(data.len().min(first.len()));
        first.copy_from_slice(now);
        if !later.is_empty() {
            second.copy_from_slice(later);
        }
    }
    /// Appends `n` bytes, which are a function of their positions.
    pub(super) fn generate(&mut self, n: usize, byte: impl Fn(usize) -> u8, memory: &Memory) {
        let (first, second) = self.extend(n, memory);
        first.iter_mut().chain(second).enumerate().for_each(|(i, b)| *b = byte(i));
    }
    /// Makes the queue longer by `n` bytes, and returns their place, in two parts.
    #[inline]
    fn extend(&mut self, n: usize, memory: &Memory) -> (&mut [u8], &mut [u8]) {
        if self.len + n > self.bytes.len() {
            self.grow(self.len + n, memory);
        }
        let at = (self.first + self.len) & self.bytes.len().wrapping_sub(1);
        self.len += n;
        let (before, from) = self.bytes.split_at_mut_checked(at).unwrap_or_default();
        let here = n.min(from.len());
        let (from, before) = (from.get_mut(..here), before.get_mut(..n - here));
        (from.unwrap_or_default(), before.unwrap_or_default())
    }
    #[cold]
    fn grow(&mut self, capacity: usize, memory: &Memory) {
        let mut bytes = memory.buffer(capacity.next_power_of_two().max(LEAST));
        let (first, second) = self.as_slices();
        let mut rest = &mut bytes[..];
        for part in [first, second] {
            // The new buffer has room for what is in the old one.
            let Some((to, after)) = rest.split_at_mut_checked(part.len()) else { return };
            to.copy_from_slice(part);
            rest = after;
        }
        (self.bytes, self.first) = (bytes, 0);
    }
    /// Removes bytes from the start, at most as many as there are. Returns their number.
    pub(super) fn consume(&mut self, n: usize, memory: &Memory) -> usize {
        let n = n.min(self.len);
        self.len -= n;
        self.first = (self.first + n) & self.bytes.len().wrapping_sub(1);
        if self.len == 0 {
            self.first = 0;
            if self.bytes.len() > KEPT {
                memory.keep(std::mem::take(&mut self.bytes));
            }
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::Random;
    use std::collections::VecDeque;

    #[test]
    fn rings_are_queues() {
        let (memory, mut random) = (Memory::new(1 << 30), Random::new(1, "ring"));
        for most in [1, 5, 300, 3000, 20_000] {
            let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
            for _ in 0..2000 {
                let n = random.below(most) as usize;
                if random.below(2) == 0 {
                    let data: Vec<u8> = (0..n).map(|_| random.next_u64() as u8).collect();
                    ring.write(&data, &memory);
                    queue.extend(&data);
                } else if random.below(5) == 0 {
                    ring.generate(n, |i| i as u8, &memory);
                    queue.extend((0..n).map(|i| i as u8));
                } else {
                    let n = n * 2;
                    assert_eq!(ring.consume(n, &memory), n.min(queue.len()));
                    queue.drain(..n.min(queue.len()));
                }
                let (first, second) = ring.as_slices();
                assert!(queue.iter().eq(first.iter().chain(second)), "{most}");
                assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
                assert!(!ring.is_empty() || ring.bytes.len() <= KEPT);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leaves of a table, in short lists inside one vector, recycled by size.

use super::cells::Leaf;
use crate::memory::grow;

/// The capacities of lists. From two leaves on, a list grows by at most half, so less than a third of it is unused.
const SIZES: [u8; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// For each length of a list, the index in [`SIZES`] of the smallest capacity that suffices.
const CLASSES: [u8; 65] = {
    let (mut classes, mut class, mut len) = ([0; 65], 0, 1);
    while len <= 64 {
        if SIZES[class] < len {
            class += 1;
        }
        classes[len as usize] = class as u8;
        len += 1;
    }
    classes
};

/// A vector divided into lists of 1 to 64 leaves. A list is identified by the index of its first leaf. List 0 is always
/// there: its only leaf is [`Leaf::DEFAULT`], and any number of cells may refer to it.
#[derive(Clone, Debug)]
pub struct Arena {
    leaves: Vec<Leaf>,
    free: [Vec<u32>; SIZES.len()],
}

impl Default for Arena {
    fn default() -> Self {
        Self { leaves: vec![Leaf::DEFAULT], free: Default::default() }
    }
}

impl Arena {
    /// The leaf at an index.
    #[inline(always)]
    pub fn leaf(&self, at: u32) -> Leaf {
        self.leaves.get(at as usize).copied().unwrap_or(Leaf::DEFAULT)
    }

    /// A list with `len` leaves.
    pub fn list(&self, list: u32, len: usize) -> &[Leaf] {
        self.leaves.get(list as usize..list as usize + len).unwrap_or(&[Leaf::DEFAULT])
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.leaves.len() * size_of::<Leaf>() + self.free.iter().map(|f| f.capacity() * 4).sum::<usize>()
    }

    /// Replaces the contents of a list with `len` leaves. Returns the list, which may have moved.
    pub fn replace(&mut self, list: u32, len: usize, new: &[Leaf]) -> u32 {
        let (old_class, class) = (CLASSES[len], CLASSES[new.len()]);
        let to = if list != 0 && old_class == class && new != [Leaf::DEFAULT] {
            list
        } else {
            if list != 0 {
                self.free[usize::from(old_class)].push(list);
            }
            if new == [Leaf::DEFAULT] {
                return 0;
            }
            self.allocate(usize::from(class))
        };
        self.leaves[to as usize..to as usize + new.len()].copy_from_slice(new);
        to
    }

    fn allocate(&mut self, class: usize) -> u32 {
        if let Some(list) = self.free[class].pop() {
            return list;
        }
        // The limit on the number of prefixes keeps all indexes below 2^32.
        let list = self.leaves.len() as u32;
        let end = self.leaves.len() + usize::from(SIZES[class]);
        grow(&mut self.leaves, usize::from(SIZES[class]));
        self.leaves.resize(end, Leaf::DEFAULT);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_suffice_and_are_the_smallest() {
        for (len, &class) in CLASSES.iter().enumerate().skip(1) {
            let class = usize::from(class);
            assert!(usize::from(SIZES[class]) >= len);
            assert!(class == 0 || usize::from(SIZES[class - 1]) < len);
        }
    }

    #[test]
    fn lists_keep_their_leaves_and_freed_lists_are_reused() {
        let mut arena = Arena::default();
        let leaf = |list: usize, i: usize| Leaf::route(24, (list * 100 + i + 1) as u32);
        let mut lists = [(0, 1); 200];
        let mut bytes = 0;
        for round in 0..50 {
            for (n, (list, len)) in lists.iter_mut().enumerate() {
                let new: Vec<Leaf> = (0..1 + (n * 7 + round * 13) % 64).map(|i| leaf(n, i)).collect();
                *list = arena.replace(*list, *len, &new);
                *len = new.len();
            }
            for (n, &(list, len)) in lists.iter().enumerate() {
                assert!(arena.list(list, len).iter().enumerate().all(|(i, &l)| l == leaf(n, i)));
                assert_eq!(arena.leaf(list), leaf(n, 0));
            }
            if round == 20 {
                bytes = arena.bytes();
            }
        }
        assert!(arena.bytes() < bytes * 3 / 2, "{} after {bytes}", arena.bytes());
        for (list, len) in lists {
            assert_eq!(arena.replace(list, len, &[Leaf::DEFAULT]), 0);
        }
        assert_eq!((arena.leaf(0), arena.list(0, 1)), (Leaf::DEFAULT, &[Leaf::DEFAULT][..]));
        let free: usize = arena.free.iter().zip(SIZES).map(|(f, size)| f.len() * usize::from(size)).sum();
        assert_eq!(free + 1, arena.leaves.len());
    }
}

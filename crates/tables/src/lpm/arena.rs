// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short arrays inside one vector, recycled by size. The nodes of the radix table store their children and routes in
//! such arrays.

use crate::memory::prefer_huge_pages;

/// Block capacities. From two items on, a block grows by at most half, so less than a third of a block is unused.
const SIZES: [u8; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// The size class of the smallest block for `len` items. `len` is 1 to 64.
fn class(len: usize) -> usize {
    SIZES.partition_point(|&size| usize::from(size) < len).min(SIZES.len() - 1)
}

/// A vector divided into blocks. A block is identified by the index of its first item.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena<T> {
    items: Vec<T>,
    free: [Vec<u32>; SIZES.len()],
}

impl<T: Copy + Default> Arena<T> {
    #[inline]
    pub fn get(&self, at: u32) -> Option<&T> {
        self.items.get(at as usize)
    }

    /// All items, inside and outside of blocks.
    #[inline(always)]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.items.get_mut(at as usize)
    }

    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.free.iter().map(|f| f.capacity() * 4).sum::<usize>()
    }

    /// Creates an arena whose first `len` items are outside all blocks and never move.
    pub fn with_fixed(len: usize) -> Self {
        Self { items: vec![T::default(); len], free: Default::default() }
    }

    fn allocate(&mut self, class: usize) -> Option<u32> {
        if let Some(block) = self.free[class].pop() {
            return Some(block);
        }
        let block = u32::try_from(self.items.len()).ok()?;
        let end = self.items.len() + usize::from(SIZES[class]);
        u32::try_from(end).ok()?;
        if end > self.items.capacity() {
            // The vector grows by a quarter instead of doubling, because it holds most of the memory of a large
            // table.
            self.items.reserve_exact((self.items.len() / 4).max(64));
            prefer_huge_pages(&mut self.items);
        }
        self.items.resize(end, T::default());
        Some(block)
    }

    /// Inserts `item` at index `at` of a block with `len` items (0 to 63). If `len` is 0, there is no block yet, and
    /// one is allocated. Returns the block, which may have moved. Returns `None` without any change if 2^32 items
    /// are in use.
    pub fn insert(&mut self, block: u32, len: usize, at: usize, item: T) -> Option<u32> {
        let (old_class, new_class) = (class(len), class(len + 1));
        let (from, at) = (block as usize, at.min(len));
        let to = if len > 0 && old_class == new_class {
            self.items.copy_within(from + at..from + len, from + at + 1);
            block
        } else {
            let to = self.allocate(new_class)?;
            self.items.copy_within(from..from + at, to as usize);
            self.items.copy_within(from + at..from + len, to as usize + at + 1);
            if len > 0 {
                self.free[old_class].push(block);
            }
            to
        };
        self.items[to as usize + at] = item;
        Some(to)
    }

    /// Removes item `at` of a block with `len` items. Returns the block, which may have moved, or 0 if it is now
    /// empty.
    pub fn remove(&mut self, block: u32, len: usize, at: usize) -> u32 {
        let from = block as usize;
        self.items.copy_within(from + at + 1..from + len, from + at);
        let (old_class, len) = (class(len), len - 1);
        if len == 0 {
            self.free[old_class].push(block);
            return 0;
        }
        if class(len) == old_class {
            return block;
        }
        // If no smaller block can be allocated, the items stay where they are. From then on, this block counts as a
        // block of the smaller size.
        let Some(to) = self.allocate(class(len)) else { return block };
        self.items.copy_within(from..from + len, to as usize);
        self.free[old_class].push(block);
        to
    }
}

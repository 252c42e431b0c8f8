// SPDX-License-Identifier: MIT OR Apache-2.0
//! Long arrays of leaves of which only the first of equal neighbours is stored.

use std::ops::Range;

use super::arena::Arena;
use crate::memory::{grow, move_to_huge_pages};

/// The number of entries in a cell.
pub const CELL: usize = 64;

/// The contents of an entry. If bit 31 is clear, it holds the length of the owner, the prefix that the route comes from (bits
/// 24 to 29), and the number of the route (bits 0 to 23). If bit 31 is set, it holds the number of a second-level block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf(u32);

impl Leaf {
    /// The leaf of entries without owner: the default route or its absence.
    pub const DEFAULT: Self = Self(0);

    /// The leaf of a route.
    pub const fn route(len: u8, hop: u32) -> Self {
        Self((len as u32) << 24 | hop)
    }

    /// The leaf that refers to a block.
    pub const fn block(number: u32) -> Self {
        Self(1 << 31 | number)
    }

    /// Whether the leaf refers to a block.
    #[inline(always)]
    pub const fn is_block(self) -> bool {
        self.0 >> 31 == 1
    }

    /// The number of the block, if the leaf refers to one.
    #[inline(always)]
    pub const fn as_block(self) -> Option<usize> {
        if self.is_block() { Some((self.0 & 0x7fff_ffff) as usize) } else { None }
    }

    /// The length of the owner.
    pub const fn owner_len(self) -> u8 {
        (self.0 >> 24 & 63) as u8
    }

    /// The number of the route.
    #[inline(always)]
    pub const fn hop(self) -> usize {
        (self.0 & 0x00ff_ffff) as usize
    }
}

/// Sixty-four neighbouring entries. Equal neighbours are a run, which is stored once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Bit `i` is set if entry `i` differs from entry `i - 1`, so a run starts there. Bit 0 is clear.
    bits: u64,
    /// The list in the arena that has the leaf of each run.
    list: u32,
}

impl Cell {
    /// The index in the arena of the leaf of entry `at % 64`.
    #[inline(always)]
    pub const fn place(self, at: u32) -> u32 {
        // Only the bits up to that of the entry remain.
        self.list.wrapping_add((self.bits << (!at & 63)).count_ones())
    }

    /// The leaf of all entries, if they are equal.
    fn single(self, arena: &Arena) -> Option<Leaf> {
        (self.bits == 0).then(|| arena.leaf(self.list))
    }

    /// Replaces the leaf of each entry in `range` by what `change` returns for it. `change` is called once for each
    /// run in the range.
    fn paint(self, arena: &mut Arena, range: &Range<usize>, change: &mut impl FnMut(Leaf) -> Leaf) -> Self {
        let old_len = self.bits.count_ones() as usize + 1;
        let old = arena.list(self.list, old_len);
        let (mut leaves, mut bits, mut len) = ([Leaf::DEFAULT; CELL], 0, 0);
        // Runs may start where they did before, and at both ends of the range.
        let ends = [range.start, range.end].map(|end| 1_u64.checked_shl(end as u32).unwrap_or(0));
        let mut starts = self.bits | ends[0] | ends[1] | 1;
        while starts != 0 {
            let start = starts.trailing_zeros();
            starts &= starts - 1;
            let leaf = old[(self.place(start) - self.list) as usize];
            let leaf = if range.contains(&(start as usize)) { change(leaf) } else { leaf };
            if len == 0 || leaves[len - 1] != leaf {
                bits |= 1 << start;
                leaves[len] = leaf;
                len += 1;
            }
        }
        Self { bits: bits & !1, list: arena.replace(self.list, old_len, &leaves[..len]) }
    }
}

/// An array of entries, in cells.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The fields of each cell. As these are arrays of numbers, the kernel provides zeroed memory lazily.
    cells: Vec<[u64; 2]>,
    has_huge_pages: bool,
}

impl Cells {
    /// Creates an array of default leaves.
    pub fn new(entries: usize) -> Self {
        Self { cells: vec![[0; 2]; entries / CELL], has_huge_pages: false }
    }

    /// Moves the cells to huge pages, once. Until then, only those pages take memory that have a cell with other leaves.
    pub fn move_to_huge_pages(&mut self) {
        if std::mem::replace(&mut self.has_huge_pages, true) {
            return;
        }
        let len = self.cells.len();
        move_to_huge_pages(&mut self.cells, len);
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.cells.len() * CELL
    }

    /// Appends default leaves.
    pub fn extend(&mut self, entries: usize) {
        let len = self.cells.len() + entries / CELL;
        grow(&mut self.cells, entries / CELL);
        self.cells.resize(len, [0; 2]);
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.cells.len() * size_of::<[u64; 2]>()
    }

    /// A cell. Cells beyond the end have default leaves.
    #[inline(always)]
    pub fn cell(&self, number: usize) -> Cell {
        self.cells.get(number).map_or(Cell::default(), |&[bits, list]| Cell { bits, list: list as u32 })
    }

    /// The leaf of an entry.
    #[inline(always)]
    pub fn leaf(&self, arena: &Arena, at: usize) -> Leaf {
        arena.leaf(self.cell(at / CELL).place(at as u32))
    }

    /// Replaces the leaf of each entry in `range` by what `change` returns for it. `change` is called once for each run
    /// in a cell.
    pub fn paint(&mut self, arena: &mut Arena, range: Range<usize>, mut change: impl FnMut(Leaf) -> Leaf) {
        let mut at = range.start;
        while at < range.end {
            let (number, start) = (at / CELL, at % CELL);
            let end = CELL.min(start + range.end - at);
            let cell = self.cell(number).paint(arena, &(start..end), &mut change);
            if let Some(fields) = self.cells.get_mut(number) {
                *fields = [cell.bits, u64::from(cell.list)];
            }
            at += end - start;
        }
    }

    /// The leaf of all entries in `range`, which has whole cells, if they are equal.
    pub fn single(&self, arena: &Arena, range: Range<usize>) -> Option<Leaf> {
        let mut cells = (range.start / CELL..range.end / CELL).map(|number| self.cell(number).single(arena));
        let first = cells.next()??;
        cells.all(|leaf| leaf == Some(first)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_what_is_painted() {
        let (mut cells, mut arena) = (Cells::new(4 * CELL), Arena::default());
        let mut model = vec![Leaf::DEFAULT; 4 * CELL];
        let mut seed = 7_u64;
        let mut below = |n: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) as usize % n
        };
        for step in 0..20_000 {
            let start = below(4 * CELL);
            let end = (start + 1 + below([2, 20, 4 * CELL][step % 3])).min(4 * CELL);
            let new = Leaf::route(0, below(3) as u32);
            let kept = Leaf::route(0, below(3) as u32);
            cells.paint(&mut arena, start..end, |leaf| if leaf == kept { leaf } else { new });
            model[start..end].iter_mut().filter(|leaf| **leaf != kept).for_each(|leaf| *leaf = new);
            assert!((0..model.len()).all(|at| cells.leaf(&arena, at) == model[at]), "{step}");
            let same = model.iter().all(|&leaf| leaf == model[0]);
            assert_eq!(cells.single(&arena, 0..4 * CELL), same.then_some(model[0]));
            // Equal neighbours are stored once.
            for (number, entries) in model.chunks(CELL).enumerate() {
                let runs = entries.windows(2).filter(|pair| pair[0] != pair[1]).count();
                assert_eq!(cells.cell(number).bits.count_ones() as usize, runs);
            }
        }
        assert!(arena.bytes() < 8192, "{}", arena.bytes());
        cells.paint(&mut arena, 0..4 * CELL, |_| Leaf::DEFAULT);
        assert!((0..4).all(|number| cells.cell(number) == Cell::default()));
    }

    #[test]
    fn leaves_keep_their_parts() {
        let (leaf, block) = (Leaf::route(32, 0x00ff_ffff), Leaf::block(0x7fff_ffff));
        assert_eq!((leaf.owner_len(), leaf.hop(), leaf.as_block()), (32, 0x00ff_ffff, None));
        assert_eq!(block.as_block(), Some(0x7fff_ffff));
        assert!(block.is_block() && !leaf.is_block());
        assert_eq!(Leaf::route(0, 0), Leaf::DEFAULT);
    }

    #[test]
    fn cells_move_once() {
        let mut cells = Cells::new(1 << 20);
        let mut arena = Arena::default();
        cells.paint(&mut arena, 70..80, |_| Leaf::route(1, 1));
        cells.move_to_huge_pages();
        let at = cells.cells.as_ptr();
        cells.move_to_huge_pages();
        assert_eq!((cells.cells.as_ptr(), cells.len()), (at, 1 << 20));
        assert_eq!([69, 70, 79, 80].map(|i| cells.leaf(&arena, i).hop()), [0, 1, 1, 0]);
    }

    #[test]
    fn cells_beyond_the_end_are_default() {
        let (mut cells, mut arena) = (Cells::default(), Arena::default());
        assert_eq!((cells.len(), cells.leaf(&arena, 1000)), (0, Leaf::DEFAULT));
        cells.extend(256);
        cells.paint(&mut arena, 255..256, |_| Leaf::route(1, 1));
        assert_eq!([254, 255, 256].map(|at| cells.leaf(&arena, at).hop()), [0, 1, 0]);
        assert_eq!(cells.len(), 256);
    }
}

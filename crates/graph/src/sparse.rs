// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values by number, for searches that may visit a small part of a large graph.

use rustc_hash::FxHashMap;

/// Once a search has visited more than one number in this many, values are stored in an array.
const PART: usize = 16;

/// Values by number. The cost is proportional to the number of values, and not to the largest number: values are in a table
/// until they are many enough to pay for an array of all numbers.
pub(crate) struct Sparse<T> {
    few: FxHashMap<usize, T>,
    all: Vec<Option<T>>,
    size: usize,
}

impl<T: Copy> Sparse<T> {
    /// No values, for numbers below `size`.
    pub(crate) fn new(size: usize) -> Sparse<T> {
        Sparse { few: FxHashMap::default(), all: Vec::new(), size }
    }
    pub(crate) fn get(&self, number: usize) -> Option<T> {
        match self.all.is_empty() {
            true => self.few.get(&number).copied(),
            false => self.all.get(number).copied().flatten(),
        }
    }
    /// Sets the value of a number. Returns the value that it had before.
    pub(crate) fn set(&mut self, number: usize, value: T) -> Option<T> {
        if self.all.is_empty() {
            let before = self.few.insert(number, value);
            if self.few.len() > self.size / PART {
                self.all = vec![None; self.size];
                for (number, value) in self.few.drain() {
                    if let Some(slot) = self.all.get_mut(number) {
                        *slot = Some(value);
                    }
                }
            }
            return before;
        }
        self.all.get_mut(number).and_then(|slot| slot.replace(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_when_they_move_to_the_array() {
        let mut s = Sparse::new(100);
        for i in 0..100 {
            let number = i * 37 % 100;
            assert_eq!((s.get(number), s.set(number, i), s.set(number, i)), (None, None, Some(i)));
            assert_eq!(s.all.is_empty(), i < 6, "after {i}");
            assert!((0..=i).all(|j| s.get(j * 37 % 100) == Some(j)));
        }
        assert_eq!(s.get(100), None);
    }
}

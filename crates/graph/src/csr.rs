// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed sparse rows: lists of items by index, stored in two arrays.

#[cfg(test)]
thread_local! {
    /// The number of rows and items that tests on this thread have visited. All traversals of the graph go
    /// through rows, so this number measures their work.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The items of each row, in insertion order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Csr<T> {
    /// The index of the first item of each row, and the number of all items. INVARIANT: the limits on connections and ports
    /// keep this number far below 2^32.
    start: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Csr<T> {
    /// Groups (row, item) pairs by row. Pairs whose row is not below `rows` are dropped.
    pub(crate) fn new(rows: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Csr<T> {
        let pairs = pairs.filter(|p| p.0 < rows);
        let mut start = vec![0u32; rows + 1];
        // `for_each` takes fewer steps than a loop where the iterator is a chain of others.
        pairs.clone().for_each(|(row, _)| start[row + 1] += 1);
        for row in 0..rows {
            start[row + 1] += start[row];
        }
        let mut next = start.clone();
        // All items are overwritten.
        let mut items = pairs.clone().next().map_or(Vec::new(), |p| vec![p.1; start[rows] as usize]);
        pairs.for_each(|(row, item)| {
            items[next[row] as usize] = item;
            next[row] += 1;
        });
        Csr { start, items }
    }

    /// The items of a row; empty for a row that does not exist.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let items = self.slice(row);
        count(1 + items.len());
        items
    }

    /// One item of a row, for searches that visit other rows before they take the next item of this row.
    #[inline]
    pub(crate) fn item(&self, row: usize, index: usize) -> Option<&T> {
        count(1);
        self.slice(row).get(index)
    }

    /// Whether an item of a row satisfies `is`. Stops at the first match.
    pub(crate) fn any(&self, row: usize, mut is: impl FnMut(T) -> bool) -> bool {
        self.slice(row).iter().any(|&item| {
            count(1);
            is(item)
        })
    }

    #[inline]
    fn slice(&self, row: usize) -> &[T] {
        match (self.start.get(row), self.start.get(row.saturating_add(1))) {
            (Some(&a), Some(&b)) => self.items.get(a as usize..b as usize).unwrap_or(&[]),
            _ => &[],
        }
    }
}

impl Csr<u32> {
    /// The items of a row, as indices.
    #[inline]
    pub(crate) fn indices(&self, row: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        self.row(row).iter().map(|&i| i as usize)
    }
}

/// Counts a step in tests. Does nothing outside tests.
#[inline(always)]
fn count(_steps: usize) {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + _steps));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_order_of_their_items() {
        let c = Csr::new(3, [(2, 'a'), (0, 'b'), (2, 'c'), (7, 'x')].into_iter());
        assert_eq!(c.row(0), ['b']);
        assert_eq!(c.row(1), []);
        assert_eq!(c.row(2), ['a', 'c']);
        assert_eq!(c.row(3), []);
        assert_eq!(c.row(usize::MAX), []);
        assert_eq!(Csr::<u8>::new(0, std::iter::empty()).row(0), []);
    }
}

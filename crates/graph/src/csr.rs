// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed rows: lists of items by index, in two arrays.

#[cfg(test)]
thread_local! {
    /// How many rows and items tests of this thread have looked at. Everything that walks the graph does it by rows, so this
    /// counts its work.
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// For each row its items, in the order in which they were given.
#[derive(Clone, Debug)]
pub(crate) struct Csr<T> {
    start: Vec<usize>,
    items: Vec<T>,
}

impl<T: Copy> Csr<T> {
    /// Sorts pairs of row and item into rows; pairs of rows beyond `rows` are left out.
    pub(crate) fn new(rows: usize, pairs: &[(usize, T)]) -> Csr<T> {
        let mut start = vec![0usize; rows + 1];
        for &(row, _) in pairs.iter().filter(|p| p.0 < rows) {
            start[row + 1] += 1;
        }
        for row in 0..rows {
            start[row + 1] += start[row];
        }
        let mut next = start.clone();
        let mut order = vec![0usize; start[rows]];
        for (i, &(row, _)) in pairs.iter().enumerate().filter(|(_, p)| p.0 < rows) {
            order[next[row]] = i;
            next[row] += 1;
        }
        Csr { start, items: order.into_iter().map(|i| pairs[i].1).collect() }
    }

    /// The items of a row; none for a row that does not exist.
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let items = self.slice(row);
        count(1 + items.len());
        items
    }

    /// One item of a row, for walks that go on with another row in between.
    pub(crate) fn item(&self, row: usize, index: usize) -> Option<&T> {
        count(1);
        self.slice(row).get(index)
    }

    /// Whether a row has an item that `is`; it is read up to the first of them.
    pub(crate) fn any(&self, row: usize, mut is: impl FnMut(T) -> bool) -> bool {
        self.slice(row).iter().any(|&item| {
            count(1);
            is(item)
        })
    }

    fn slice(&self, row: usize) -> &[T] {
        match (self.start.get(row), self.start.get(row.saturating_add(1))) {
            (Some(&a), Some(&b)) => self.items.get(a..b).unwrap_or(&[]),
            _ => &[],
        }
    }
}

/// Counts steps in tests, and does nothing else.
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
        let c = Csr::new(3, &[(2, 'a'), (0, 'b'), (2, 'c'), (7, 'x')]);
        assert_eq!(c.row(0), ['b']);
        assert_eq!(c.row(1), []);
        assert_eq!(c.row(2), ['a', 'c']);
        assert_eq!(c.row(3), []);
        assert_eq!(c.row(usize::MAX), []);
        assert_eq!(Csr::<u8>::new(0, &[]).row(0), []);
    }
}

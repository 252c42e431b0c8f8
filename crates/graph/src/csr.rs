// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed rows: lists of items by index, in two arrays.

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
        match (self.start.get(row), self.start.get(row.saturating_add(1))) {
            (Some(&a), Some(&b)) => self.items.get(a..b).unwrap_or(&[]),
            _ => &[],
        }
    }
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

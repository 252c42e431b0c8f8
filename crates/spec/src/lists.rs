// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins lists of declarations at compile time.

/// Concatenates lists. `N` must be the number of entries in all lists, see [`count`]. `filler` only initialises the
/// result, and no copy of it remains.
pub const fn concat<T: Copy, const N: usize>(lists: &[&[T]], filler: T) -> [T; N] {
    let mut out = [filler; N];
    let (mut n, mut list) = (0, 0);
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            out[n] = lists[list][i];
            (n, i) = (n + 1, i + 1);
        }
        list += 1;
    }
    out
}

/// The number of entries in all lists.
pub const fn count<T>(lists: &[&[T]]) -> usize {
    let (mut n, mut list) = (0, 0);
    while list < lists.len() {
        n += lists[list].len();
        list += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_in_order() {
        const LISTS: &[&[u8]] = &[&[1], &[], &[2, 1]];
        const ALL: [u8; count(LISTS)] = concat(LISTS, 0);
        assert_eq!(ALL, [1, 2, 1]);
    }
}

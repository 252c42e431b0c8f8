// SPDX-License-Identifier: MIT OR Apache-2.0
//! How addresses are aligned.

/// The largest modulus. Larger ones are rounded down to it.
const LARGEST: u32 = 64;

/// A set of addresses: those that leave the remainder `offset` when divided by `modulus`.
///
/// INVARIANT: the modulus is a power of two of at most `LARGEST`, and the offset is less than the modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    modulus: u32,
    offset: u32,
}

impl Alignment {
    /// All addresses.
    pub const ANY: Alignment = Alignment { modulus: 1, offset: 0 };

    /// Returns the addresses that leave the remainder `offset` when divided by `modulus`. `None` unless the modulus is a
    /// power of two and larger than the offset.
    pub fn new(modulus: u32, offset: u32) -> Option<Alignment> {
        let valid = modulus.is_power_of_two() && offset < modulus;
        valid.then(|| Alignment { modulus, offset }.limited(LARGEST))
    }
    /// The modulus.
    pub fn modulus(self) -> u32 {
        self.modulus
    }
    /// The remainder.
    pub fn offset(self) -> u32 {
        self.offset
    }
    fn limited(self, modulus: u32) -> Alignment {
        let modulus = self.modulus.min(modulus);
        Alignment { modulus, offset: self.offset % modulus }
    }
    /// Returns these addresses, moved by a number of bytes.
    pub fn moved(self, by: i64) -> Alignment {
        let by = u32::try_from(by.rem_euclid(i64::from(self.modulus))).unwrap_or(0);
        Alignment { offset: (self.offset + by) % self.modulus, ..self }
    }
    /// Returns the smallest alignment that has the addresses of both.
    pub fn join(self, other: Alignment) -> Alignment {
        let difference = self.offset.abs_diff(other.offset);
        let common = 1 << difference.trailing_zeros().min(LARGEST.trailing_zeros());
        self.limited(other.modulus).limited(common)
    }
    /// Whether all these addresses are among those of `wanted`.
    pub fn satisfies(self, wanted: Alignment) -> bool {
        self.modulus >= wanted.modulus && self.limited(wanted.modulus) == wanted
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Compares all operations with sets of addresses.
    #[test]
    fn alignments_are_sets_of_addresses() {
        let all: Vec<Alignment> = [1, 2, 4, 8, 64]
            .iter()
            .flat_map(|&m| (0..m.min(9)).map(move |o| Alignment::new(m, o).unwrap()))
            .collect();
        let has = |a: Alignment, address: u32| address % a.modulus() == a.offset();
        let set = |a: Alignment| (0..128).filter(move |&n| has(a, n));
        for &a in &all {
            for by in [-129i64, -14, -1, 0, 1, 14, 20, 63] {
                let moved: Vec<u32> = set(a).map(|n| (i64::from(n) + by).rem_euclid(128) as u32).collect();
                assert!(
                    moved.iter().all(|&n| has(a.moved(by), n)) && moved.len() == set(a.moved(by)).count()
                );
            }
            for &b in &all {
                let joined = a.join(b);
                assert!(set(a).chain(set(b)).all(|n| has(joined, n)), "{a:?} {b:?} {joined:?}");
                // No alignment that has both sets is smaller.
                for &c in all.iter().filter(|&&c| a.satisfies(c) && b.satisfies(c)) {
                    assert!(joined.satisfies(c), "{a:?} {b:?} {joined:?} {c:?}");
                }
                assert_eq!(a.satisfies(b), set(a).all(|n| has(b, n)), "{a:?} {b:?}");
            }
        }
        assert_eq!(Alignment::new(4096, 65), Alignment::new(64, 1));
        for (m, o) in [(0, 0), (3, 1), (4, 4)] {
            assert_eq!(Alignment::new(m, o), None);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hashes of keys of one or two words, for hash maps that the packet path uses.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashes that nobody can predict without the seed: one wide multiplication for each word, folded (Yi 2019,
/// wyhash). Several times faster than the hashes of standard hash maps.
#[derive(Clone, Debug)]
pub struct SmallKeys {
    seed: [u64; 2],
}

impl Default for SmallKeys {
    fn default() -> Self {
        let keys = RandomState::new();
        // An odd factor loses no bits of the other one.
        SmallKeys { seed: [keys.hash_one(0), keys.hash_one(1) | 1] }
    }
}

impl BuildHasher for SmallKeys {
    type Hasher = Folded;
    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded { state: self.seed[0], factor: self.seed[1] }
    }
}

/// The hash of a key.
#[derive(Clone, Debug)]
pub struct Folded {
    state: u64,
    factor: u64,
}

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.state ^ word).wrapping_mul(u128::from(self.factor));
        self.state = (wide as u64) ^ ((wide >> 64) as u64);
    }
    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(w, b)| *w = *b);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_spread_and_depend_on_the_seed() {
        let (a, b) = (SmallKeys::default(), SmallKeys::default());
        let keys = || (0..4096_u32).flat_map(|i| [i, i << 20, i.wrapping_mul(0x0101_0101)]);
        let distinct: HashSet<u32> = keys().collect();
        for shift in [0, 57] {
            // Hash maps use the lowest bits for the place, and the highest seven for a tag.
            let mut counts = [0; 128];
            distinct.iter().for_each(|k| counts[(a.hash_one(k) >> shift) as usize & 127] += 1);
            let mean = distinct.len() / 128;
            assert!(counts.iter().all(|n| (mean / 3..mean * 3).contains(n)), "{shift}: {counts:?}");
        }
        let all: HashSet<u64> = distinct.iter().map(|k| a.hash_one(k)).collect();
        assert_eq!(all.len(), distinct.len(), "no two hashes are equal");
        let equal = distinct.iter().filter(|k| a.hash_one(k) == b.hash_one(k)).count();
        assert_eq!(equal, 0, "another seed gives other hashes");
    }

    #[test]
    fn every_word_counts() {
        let s = SmallKeys::default();
        let of = |words: &[u64]| {
            let mut h = s.build_hasher();
            words.iter().for_each(|w| h.write_u64(*w));
            h.finish()
        };
        let all = [of(&[1, 2]), of(&[2, 1]), of(&[1]), of(&[1, 3]), of(&[3, 2])];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        let mut bytes = s.build_hasher();
        bytes.write(&[1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes.finish(), of(&[1, 2]));
        let mut word = s.build_hasher();
        word.write_u32(1);
        assert_eq!(word.finish(), of(&[1]));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow index: maps the hash of a key to the numbers of candidate entries.

/// The number of entries in a bucket.
const WAYS: usize = 7;
/// The index in [`Bucket::tags`] of the overflow count: the number of entries that went to a later bucket because this
/// bucket was full.
const PASSED: usize = 7;
/// Marks a free slot.
const NONE: u32 = u32::MAX;

/// One cache line: seven tags, the overflow count, and seven values.
#[derive(Clone)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u32; 8],
    values: [u32; 8],
}

const EMPTY: Bucket = Bucket { tags: [0; 8], values: [NONE; 8] };

impl Bucket {
    /// The entries with this tag, as a bit mask. The compiler turns the eight comparisons into one vector
    /// comparison.
    #[inline(always)]
    fn matches(&self, tag: u32) -> u32 {
        let mut bits = 0;
        for (i, t) in self.tags.iter().enumerate() {
            bits |= u32::from(*t == tag) << i;
        }
        bits & ((1 << WAYS) - 1)
    }
    fn free(&self) -> Option<usize> {
        self.values.iter().take(WAYS).position(|v| *v == NONE)
    }
}

/// A hash index for keys that are stored elsewhere. The index holds a 32-bit tag and a value for each entry.
///
/// A lookup reads one cache line and almost always yields the correct value. The caller then reads the entry that the
/// value stands for, which it needs anyway, and compares the key. An entry whose bucket is full goes to the next
/// bucket. Each bucket counts the entries that overflowed past it. This count bounds a search, so removing an entry
/// needs no tombstone. The table doubles when three quarters of its capacity are used. Tags alone determine the new
/// positions, so no key is hashed again.
///
/// The caller must compute the hash with a secret seed. With a known seed, an attacker could choose keys that all fall
/// into one bucket.
#[derive(Clone)]
pub struct FlowIndex {
    /// The number of buckets is a power of two.
    buckets: Vec<Bucket>,
    len: usize,
}

/// The seeded hash of a 128-bit key: one wide multiplication, folded (Yi 2019, wyhash).
#[inline(always)]
pub fn hash(key: [u64; 2], seed: [u64; 2]) -> u32 {
    let wide = u128::from(key[0] ^ seed[0]).wrapping_mul(u128::from(key[1] ^ seed[1]));
    let folded = (wide as u64) ^ ((wide >> 64) as u64);
    (folded ^ folded >> 32) as u32
}

impl FlowIndex {
    /// Creates an empty index with room for `n` entries before it grows. For very large `n` it starts smaller
    /// and grows as needed.
    pub fn with_capacity(n: usize) -> FlowIndex {
        let buckets = (n.min(1 << 20) / 5 + 1).next_power_of_two();
        FlowIndex { buckets: vec![EMPTY; buckets], len: 0 }
    }
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        tag as usize & (self.buckets.len() - 1)
    }
    /// The first value with this tag in the bucket where a search for the tag starts; `None` if that bucket has no such
    /// value. If a key with this tag is in the index, the guess is almost always the value of that key. For tag 0 the
    /// guess may be `u32::MAX`, the mark of a free slot. A caller can make many guesses before it uses the first
    /// result, so that the cache misses overlap.
    #[inline(always)]
    pub fn guess(&self, tag: u32) -> Option<u32> {
        let b = self.buckets.get(self.home(tag))?;
        let i = b.matches(tag).trailing_zeros() as usize;
        b.values.get(i).copied().filter(|_| i < WAYS)
    }
    /// The value with this tag for which `is` returns true; none if there is no such value.
    #[inline(always)]
    pub fn find(&self, tag: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        for _ in 0..self.buckets.len() {
            let b = self.buckets.get(at)?;
            let mut bits = b.matches(tag);
            while bits != 0 {
                // A free slot has tag 0, so a search for tag 0 also finds free slots. The search skips them because
                // their value is `NONE`.
                if let Some(&v) = b.values.get(bits.trailing_zeros() as usize)
                    && v != NONE
                    && is(v)
                {
                    return Some(v);
                }
                bits &= bits - 1;
            }
            if b.tags[PASSED] == 0 {
                return None;
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
        None
    }
    /// Returns how many buckets a search for `tag` reads if it finds nothing.
    pub fn reach(&self, tag: u32) -> usize {
        let home = self.home(tag);
        let chain =
            (0..self.buckets.len()).filter_map(|n| self.buckets.get((home + n) & (self.buckets.len() - 1)));
        chain.take_while(|b| b.tags[PASSED] != 0).count().saturating_add(1).min(self.buckets.len())
    }
    /// Adds an entry. The caller must ensure that no entry has the same key. An entry with the value
    /// `u32::MAX` is ignored.
    pub fn insert(&mut self, tag: u32, value: u32) {
        if value == NONE {
            return;
        }
        if (self.len + 1) * 4 > self.buckets.len() * WAYS * 3 {
            self.grow();
        }
        self.put(tag, value);
    }
    fn put(&mut self, tag: u32, value: u32) {
        let (mut at, mask) = (self.home(tag), self.buckets.len() - 1);
        // The load limit guarantees a free slot, so the loop ends.
        while let Some(b) = self.buckets.get_mut(at) {
            if let Some(i) = b.free() {
                b.tags[i] = tag;
                b.values[i] = value;
                self.len += 1;
                return;
            }
            b.tags[PASSED] = b.tags[PASSED].saturating_add(1);
            at = (at + 1) & mask;
        }
    }
    /// Removes an entry. Returns false if there is no such entry.
    pub fn remove(&mut self, tag: u32, value: u32) -> bool {
        let (home, mask) = (self.home(tag), self.buckets.len() - 1);
        for step in 0..self.buckets.len() {
            let Some(b) = self.buckets.get_mut((home + step) & mask) else { return false };
            let found = (0..WAYS).find(|&i| b.tags[i] == tag && b.values[i] == value && value != NONE);
            if let Some(i) = found {
                b.tags[i] = 0;
                b.values[i] = NONE;
                self.len -= 1;
                for back in 0..step {
                    if let Some(b) = self.buckets.get_mut((home + back) & mask) {
                        b.tags[PASSED] = b.tags[PASSED].saturating_sub(1);
                    }
                }
                return true;
            }
            if b.tags[PASSED] == 0 {
                return false;
            }
        }
        false
    }
    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        self.buckets = vec![EMPTY; old.len().max(1) * 2];
        self.len = 0;
        for b in &old {
            for (&tag, &value) in b.tags.iter().zip(&b.values).take(WAYS) {
                if value != NONE {
                    self.put(tag, value);
                }
            }
        }
    }
    /// Removes all entries but keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.fill(EMPTY);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashMap;

    struct Draw(u64);
    impl Draw {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// Compares the index with a standard map. With few bits in a tag, tags collide and buckets overflow.
    fn against_a_map(bits: u32, keys: u64, turns: u32) {
        let mut index = FlowIndex::with_capacity(1);
        let (mut model, mut owner) = (HashMap::<u64, u32>::new(), HashMap::<u32, u64>::new());
        let mut draw = Draw(u64::from(bits));
        let tag = |k: u64| hash([k, 7], [11, 13]) & (u32::MAX >> (32 - bits));
        for turn in 0..turns {
            let k = draw.below(keys);
            let found = index.find(tag(k), |v| owner[&v] == k);
            assert_eq!(found, model.get(&k).copied(), "turn {turn}");
            match found {
                Some(v) => {
                    if draw.below(2) == 0 {
                        assert!(index.remove(tag(k), v));
                        assert!(!index.remove(tag(k), v));
                        model.remove(&k);
                    }
                }
                None => {
                    index.insert(tag(k), turn);
                    model.insert(k, turn);
                    owner.insert(turn, k);
                }
            }
            assert_eq!(index.len(), model.len());
        }
        for (k, v) in &model {
            assert!(index.remove(tag(*k), *v));
        }
        assert!(index.is_empty());
        assert!(index.buckets.iter().all(|b| b.tags[PASSED] == 0), "overflow counts return to zero");
    }

    #[test]
    fn is_a_map() {
        against_a_map(32, 2_000, 20_000);
        against_a_map(32, 40, 5_000);
    }

    #[test]
    fn is_a_map_when_tags_are_poor() {
        against_a_map(1, 60, 5_000);
        against_a_map(4, 500, 10_000);
        against_a_map(9, 3_000, 20_000);
    }

    #[test]
    fn guesses_are_right_when_buckets_do_not_overflow() {
        let mut index = FlowIndex::with_capacity(10_000);
        let tag = |k: u32| hash([u64::from(k), 1], [3, 5 << 40]);
        (0..10_000).for_each(|k| index.insert(tag(k), k));
        let right = (0..10_000).filter(|&k| index.guess(tag(k)) == Some(k)).count();
        assert!(right > 9_500, "{right}");
        assert!((0..10_000).all(|k| index.find(tag(k), |v| v == k) == Some(k)));
    }

    #[test]
    fn a_search_reads_the_buckets_that_were_full() {
        let mut index = FlowIndex::with_capacity(100);
        assert_eq!(index.buckets.len(), 32);
        (0..WAYS as u32).for_each(|i| index.insert(31, i));
        assert_eq!((index.reach(31), index.reach(63), index.reach(30)), (1, 1, 1));
        index.insert(31, 7);
        assert_eq!(
            (index.reach(31), index.reach(0), index.reach(30)),
            (2, 1, 1),
            "the next bucket, round the end"
        );
        (8..22).for_each(|i| index.insert(63, i));
        assert_eq!((index.reach(31), index.reach(0), index.reach(2)), (4, 3, 1));
    }

    #[test]
    fn edges() {
        let mut index = FlowIndex::with_capacity(0);
        assert_eq!((index.find(0, |_| true), index.remove(0, 0)), (None, false));
        index.insert(0, NONE);
        assert!(index.is_empty());
        index.insert(0, 0);
        assert_eq!(index.find(0, |_| true), Some(0));
        index.clear();
        assert_eq!(index.find(0, |_| true), None);
        assert!(FlowIndex::with_capacity(usize::MAX).is_empty());
    }

    #[test]
    fn hashes_spread() {
        // Consecutive ports and consecutive addresses must spread over all 256 buckets.
        let mut counts = [0u32; 256];
        for a in 0..256u64 {
            for p in 0..256u64 {
                counts[hash([a << 24 | 10, p << 8 | 6 << 32], [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9])
                    as usize
                    % 256] += 1;
            }
        }
        assert!(counts.iter().all(|&n| (150..380).contains(&n)), "{counts:?}");
    }
}

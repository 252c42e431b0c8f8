// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random numbers. Each element has a generator of its own, whose seed depends on the router's seed and the name of the
//! element. So an element's numbers do not change if other elements draw more or fewer numbers.

use std::hash::{BuildHasher, RandomState};

/// The seed of all random numbers in one run of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// Each generator is seeded with new random bytes from the kernel, so that nobody can predict hashes, ports and
    /// identifiers.
    System,
    /// Each generator is seeded with this number and the element's name, so every run draws the same numbers.
    Fixed(u64),
}

/// Returns random words from the kernel (getrandom, which waits until the kernel has collected entropy).
fn system_words<const N: usize>() -> [u64; N] {
    std::array::from_fn(|i| {
        // getrandom fails only where the kernel forbids it, as in a sandbox. The random keys of standard hash maps are
        // the best source in that case.
        getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(i))
    })
}

/// Returns a uniform random number below `n`. `draw` returns 64 random bits. If `n` is 0, returns 0 without calling
/// `draw`.
#[inline]
fn below(n: u64, mut draw: impl FnMut() -> u64) -> u64 {
    if n == 0 {
        return 0;
    }
    let wide = u128::from(draw()) * u128::from(n);
    // The method of Lemire (2019). Results are uniform only if a few draws are rejected and repeated. A draw can be
    // rejected only if the low half of `wide` is below `n`. This is rare, so the division in the slow path is rare too.
    if (wide as u64) < n {
        return redrawn(wide, n, draw);
    }
    (wide >> 64) as u64
}

/// The slow path of [`below`]: repeats the draw as long as the low half of `wide` is below 2^64 mod `n`. Without the
/// repetition, some results would be more frequent than others.
#[cold]
fn redrawn(mut wide: u128, n: u64, mut draw: impl FnMut() -> u64) -> u64 {
    let threshold = n.wrapping_neg().checked_rem(n).unwrap_or(0);
    while (wide as u64) < threshold {
        wide = u128::from(draw()) * u128::from(n);
    }
    (wide >> 64) as u64
}

/// A small generator (xoshiro256++ by Blackman and Vigna 2018, seeded by splitmix64 as they advise). Its state can be
/// computed from its output, so its numbers are predictable. Use [`Secret`] for numbers that an attacker sees but must
/// not predict.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// Makes a generator from the seed of the run and the name of the element.
    pub fn of(seed: Seed, name: &str) -> Random {
        match seed {
            Seed::Fixed(seed) => Random::new(seed, name),
            // xoshiro must not start with a state of all zeros, because it would never leave it.
            Seed::System => match system_words() {
                [0, 0, 0, 0] => Random::new(0, name),
                words => Random(words),
            },
        }
    }
    /// Makes a generator from a fixed seed and the name of the element.
    pub fn new(seed: u64, name: &str) -> Random {
        // FNV-1a over the name, so that elements with different names start in different states.
        let mut h = 0xcbf2_9ce4_8422_2325_u64;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        }
        let mut x = seed ^ h;
        Random(std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }
    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        out
    }
    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
    /// Returns a uniform random number below `n`. If `n` is 0, returns 0 and draws nothing.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        below(n, || self.next_u64())
    }
    /// A real number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A generator of numbers that an attacker sees but must not predict: ports, identifiers, hash keys. Each number
/// is SipHash-2-4 (Aumasson and Bernstein 2012) of a counter under a secret key, so no number reveals anything about
/// another one.
#[derive(Clone)]
pub struct Secret {
    key: [u64; 2],
    drawn: u64,
}

/// Leaves out the key, because debug output may end up in logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

impl Secret {
    /// Makes a generator from the seed of the run and the name of the element.
    pub fn of(seed: Seed, name: &str) -> Secret {
        let key = match seed {
            Seed::System => system_words(),
            Seed::Fixed(seed) => {
                let mut random = Random::new(seed, name);
                [random.next_u64(), random.next_u64()]
            }
        };
        Secret { key, drawn: 0 }
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        siphash(self.key, &[self.drawn])
    }
    /// Returns the keyed hash of at least two words: always the same for the same words, and unpredictable without the
    /// key. It is independent of the random numbers, which are hashes of one word.
    pub fn hash_of(&self, first: u64, second: u64, rest: &[u64]) -> u64 {
        let words: Vec<u64> = [first, second].iter().chain(rest).copied().collect();
        siphash(self.key, &words)
    }
    /// Returns a uniform random number below `n`. If `n` is 0, returns 0 and draws nothing.
    pub fn below(&mut self, n: u64) -> u64 {
        below(n, || self.next_u64())
    }
}

/// SipHash-2-4 of words.
fn siphash([k0, k1]: [u64; 2], words: &[u64]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    // The message: the words, and the final block with the message length in bytes in its top byte.
    for m in words.iter().copied().chain([(words.len() as u64 * 8) << 56]) {
        v[3] ^= m;
        v = sip_round(sip_round(v));
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    v = sip_round(sip_round(sip_round(sip_round(v))));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let (a, c) = (a.wrapping_add(b), c.wrapping_add(d));
    let (b, d) = (b.rotate_left(13) ^ a, d.rotate_left(16) ^ c);
    let a = a.rotate_left(32);
    let (c, a) = (c.wrapping_add(b), a.wrapping_add(d));
    let (b, d) = (b.rotate_left(17) ^ c, d.rotate_left(21) ^ a);
    [a, b, c.rotate_left(32), d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_seeds_tell_streams_apart() {
        let first = |s, n| Random::new(s, n).next_u64();
        assert_eq!(first(1, "a"), first(1, "a"));
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
    }

    #[test]
    fn below_is_even() {
        let mut r = Random::new(7, "x");
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[r.below(6) as usize] += 1;
        }
        // The tolerance: five standard deviations around 10,000.
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
        assert_eq!((r.below(0), r.below(1)), (0, 0));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&r.unit())));
    }

    /// Counts how often each result occurs in 4,000 consecutive draws with a large bound. The expected counts are
    /// exact, so the test needs no statistics.
    #[test]
    fn no_result_below_a_large_bound_is_preferred() {
        // The bound is 3/4 of 2^64. Multiplication alone would give every third result twice as often as the others.
        let n = 3_u64 << 62;
        let threshold = n.wrapping_neg() % n;
        assert_eq!(threshold, 1 << 62, "that many draws of 2^64 must be repeated");
        // Draws that are multiples of 4 must be repeated. The second draw has a different value, so that the
        // result shows a repetition.
        for (draw, repeated) in
            [(0, true), (1, false), (2, false), (3, false), (4, true), (5, false), (8, true)]
        {
            let mut asked = 0;
            let got = below(n, || {
                asked += 1;
                if asked == 1 { draw } else { 4 * 7 + 1 }
            });
            // The fractional part of draw * 3/4 decides: 0/4 lies below the threshold of 1/4, the other fractions do
            // not.
            assert_eq!(asked, if repeated { 2 } else { 1 }, "{draw}");
            assert_eq!(got, if repeated { (4 * 7 + 1) * 3 / 4 } else { draw * 3 / 4 }, "{draw}");
        }
        // Of every four draws in a row, one is repeated, and the others give three different results.
        let mut seen = std::collections::HashMap::new();
        for draw in 0..4_000_u64 {
            let mut draws = [draw].into_iter();
            let mut again = false;
            let got = below(n, || {
                draws.next().unwrap_or_else(|| {
                    again = true;
                    1 << 60 | 1
                })
            });
            if !again {
                *seen.entry(got).or_insert(0) += 1;
            }
        }
        assert_eq!(seen.len(), 3_000);
        assert!(seen.values().all(|&n| n == 1));
    }

    #[test]
    fn repeated_draws_are_judged_like_the_first() {
        let n = 3_u64 << 62;
        let mut draws = [0, 4, 8, 6].into_iter();
        assert_eq!(below(n, || draws.next().unwrap_or(u64::MAX)), 6 * 3 / 4);
        assert_eq!(draws.next(), None, "all four were drawn");
    }

    #[test]
    fn secrets_are_siphash_under_a_key_of_their_own() {
        // The vector of the paper's reference: key 00 to 0f, message 00 to 07.
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(key, &[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
        assert_eq!(siphash(key, &[0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]), 0x3f2a_cc7f_57c2_9bdb);
        let first = |seed, name| Secret::of(seed, name).next_u64();
        assert_eq!(first(Seed::Fixed(1), "a"), first(Seed::Fixed(1), "a"));
        assert_ne!(first(Seed::Fixed(1), "a"), first(Seed::Fixed(1), "b"));
        assert_ne!(first(Seed::Fixed(1), "a"), first(Seed::Fixed(2), "a"));
        let mut secret = Secret::of(Seed::Fixed(1), "a");
        assert_ne!(secret.next_u64(), secret.next_u64());
        assert!((0..1000).all(|_| secret.below(7) < 7) && secret.below(0) == 0);
        assert_eq!(format!("{secret:?}"), "Secret { .. }");
    }

    #[test]
    fn the_system_gives_every_generator_its_own_numbers() {
        let numbers = (0..64).flat_map(|_| {
            [Random::of(Seed::System, "a").next_u64(), Secret::of(Seed::System, "a").next_u64()]
        });
        assert_eq!(numbers.collect::<std::collections::HashSet<_>>().len(), 128);
        assert_eq!(Random::of(Seed::Fixed(3), "a").next_u64(), Random::new(3, "a").next_u64());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each element's own random numbers: from a seed and its name, so that they do not depend on what others draw.

/// A small generator (xoshiro256++, Blackman and Vigna 2018, seeded by splitmix64 as they advise). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// From the seed of the run and the name of the element.
    pub fn new(seed: u64, name: &str) -> Random {
        // FNV-1a over the name tells elements apart.
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
    /// A number below `n`, without bias; 0 when `n` is 0, for which nothing is drawn.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let wide = u128::from(self.next_u64()) * u128::from(n);
        // Lemire 2019: the rare values that would make it uneven are drawn again. They lie below `n`, so that the division
        // that tells them is rare too.
        if (wide as u64) < n {
            return self.even(wide, n);
        }
        (wide >> 64) as u64
    }
    /// The end of [`Random::below`]: draws until the number is none of those that would make it uneven.
    #[cold]
    fn even(&mut self, mut wide: u128, n: u64) -> u64 {
        let threshold = n.wrapping_neg().checked_rem(n).unwrap_or(0);
        while (wide as u64) < threshold {
            wide = u128::from(self.next_u64()) * u128::from(n);
        }
        (wide >> 64) as u64
    }
    /// A real number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
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
        // Five standard deviations around 10,000.
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
        assert_eq!((r.below(0), r.below(1)), (0, 0));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&r.unit())));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares an address with eight prefixes at once.

/// The number of prefixes compared at once.
pub(super) const LANES: usize = 8;

#[cfg(not(target_feature = "sse2"))]
pub(super) use portable::Lanes;
#[cfg(target_feature = "sse2")]
pub(super) use sse2::Lanes;

/// Uses SSE2 intrinsics, because the compiler vectorises only half of the lanes of the portable code.
#[cfg(target_feature = "sse2")]
#[allow(unsafe_code)]
mod sse2 {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::*;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::*;

    use super::LANES;

    /// Masks and prefixes, four per vector.
    #[derive(Clone, Copy, Debug)]
    pub struct Lanes {
        mask: [__m128i; 2],
        addr: [__m128i; 2],
    }

    #[target_feature(enable = "sse2")]
    fn vectors([a, b, c, d, e, f, g, h]: [u32; LANES]) -> [__m128i; 2] {
        [
            _mm_set_epi32(d as i32, c as i32, b as i32, a as i32),
            _mm_set_epi32(h as i32, g as i32, f as i32, e as i32),
        ]
    }

    impl Lanes {
        pub fn new(mask: [u32; LANES], addr: [u32; LANES]) -> Self {
            // SAFETY: this module is compiled only for targets on which every processor has SSE2.
            unsafe { Self { mask: vectors(mask), addr: vectors(addr) } }
        }

        /// Returns a bit for each lane whose prefix matches `addr`.
        #[inline]
        pub fn hits(&self, addr: u32) -> u32 {
            // SAFETY: as in `new`.
            unsafe { self.hits_sse2(addr) }
        }

        #[inline]
        #[target_feature(enable = "sse2")]
        fn hits_sse2(&self, addr: u32) -> u32 {
            let addr = _mm_set1_epi32(addr as i32);
            let low = _mm_cmpeq_epi32(_mm_and_si128(addr, self.mask[0]), self.addr[0]);
            let high = _mm_cmpeq_epi32(_mm_and_si128(addr, self.mask[1]), self.addr[1]);
            // Narrows the lanes to 16 bits, then to bytes. The low eight bits of the mask are the result.
            let words = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128())) as u32
        }
    }
}

#[cfg(any(test, not(target_feature = "sse2")))]
mod portable {
    use super::LANES;

    /// Masks and prefixes.
    #[derive(Clone, Copy, Debug)]
    pub struct Lanes {
        mask: [u32; LANES],
        addr: [u32; LANES],
    }

    impl Lanes {
        pub fn new(mask: [u32; LANES], addr: [u32; LANES]) -> Self {
            Self { mask, addr }
        }

        /// Returns a bit for each lane whose prefix matches `addr`.
        #[inline]
        pub fn hits(&self, addr: u32) -> u32 {
            // The loop has no branches and always visits all lanes, so the compiler can vectorise it.
            let lanes = self.mask.iter().zip(&self.addr).enumerate();
            lanes.fold(0, |hits, (lane, (&mask, &prefix))| hits | u32::from(addr & mask == prefix) << lane)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lanes, portable};

    #[test]
    fn both_ways_agree_and_each_lane_has_its_bit() {
        let addr: [u32; 8] = std::array::from_fn(|lane| 0xe0a0_0000 + (lane as u32) * 0x0001_0001);
        for len in 0..=32 {
            let mask = [u32::MAX.checked_shl(32 - len).unwrap_or(0); 8];
            let prefixes = std::array::from_fn(|lane| addr[lane] & mask[lane]);
            let (fast, slow) = (Lanes::new(mask, prefixes), portable::Lanes::new(mask, prefixes));
            for (lane, &addr) in addr.iter().enumerate() {
                for addr in [addr, !addr, addr ^ 1, addr ^ 0x8000_0000] {
                    assert_eq!(fast.hits(addr), slow.hits(addr));
                }
                assert_eq!(fast.hits(addr) >> lane & 1, 1);
            }
        }
        assert_eq!(Lanes::new([0; 8], [u32::MAX; 8]).hits(u32::MAX), 0);
    }
}

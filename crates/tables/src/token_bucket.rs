// SPDX-License-Identifier: MIT OR Apache-2.0
//! A token bucket in exact integer arithmetic.

/// Parts per token. Time is in nanoseconds, so exactly `rate` parts arrive each nanosecond and nothing is
/// rounded.
const TOKEN: i128 = 1_000_000_000;

/// A bucket that tokens enter at a fixed rate until it is full. Users remove tokens. A new bucket is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate: u64,
    /// The capacity, in parts of a token.
    capacity: i128,
    /// The content, in parts of a token. Negative if more was removed than was available.
    level: i128,
    /// The time up to which `level` includes the tokens that have arrived, in nanoseconds.
    updated: i64,
}

impl TokenBucket {
    /// Creates a full bucket with `rate` tokens per second and room for `capacity`.
    pub const fn new(rate: u64, capacity: u64) -> Self {
        Self::with_parts(rate, capacity as i128 * TOKEN)
    }

    const fn with_parts(rate: u64, capacity: i128) -> Self {
        Self { rate, capacity, level: capacity, updated: 0 }
    }

    /// Creates a full bucket. Its capacity is the tokens that arrive in `nanoseconds`, at least one token.
    pub const fn with_duration(rate: u64, nanoseconds: u64) -> Self {
        // Both factors are below 2^64. The multiplication saturates if the product exceeds the range of i128.
        let capacity = (rate as i128).saturating_mul(nanoseconds as i128);
        Self::with_parts(rate, if capacity < TOKEN { TOKEN } else { capacity })
    }

    /// The bucket of RatedSource. Its capacity is two tokens for rates below 200, and a hundredth of the rate for
    /// others.
    pub const fn for_rated_source(rate: u64) -> Self {
        Self::new(rate, if rate < 200 { 2 } else { rate / 100 })
    }

    /// The rate in tokens per second.
    #[inline]
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// The capacity in whole tokens.
    #[inline]
    pub const fn capacity(&self) -> u64 {
        whole(self.capacity)
    }

    /// Changes the rate from `now` on.
    pub fn set_rate(&mut self, rate: u64, now: i64) {
        self.refill(now);
        self.rate = rate;
    }

    /// Fills the bucket.
    pub const fn fill(&mut self) {
        self.level = self.capacity;
    }

    /// Adds the tokens that arrived up to `now`. If the clock steps back, none are added.
    #[inline]
    fn refill(&mut self, now: i64) {
        if now > self.updated {
            // The product saturates only at values that fill the bucket anyway.
            let elapsed = i128::from(now) - i128::from(self.updated);
            let arrived = elapsed.saturating_mul(i128::from(self.rate));
            self.level = self.level.saturating_add(arrived).min(self.capacity);
            self.updated = now;
        }
    }

    /// The number of whole tokens at `now`; 0 while the level is negative.
    #[inline]
    pub fn available(&mut self, now: i64) -> u64 {
        self.refill(now);
        whole(self.level)
    }

    /// Removes `tokens`. If fewer are available, the level becomes negative.
    #[inline]
    pub fn remove(&mut self, tokens: u64, now: i64) {
        self.refill(now);
        self.level = self.level.saturating_sub(i128::from(tokens) * TOKEN);
    }

    /// Removes `tokens` if there are enough. Returns whether they were removed.
    #[inline]
    pub fn remove_if(&mut self, tokens: u64, now: i64) -> bool {
        self.refill(now);
        let parts = i128::from(tokens) * TOKEN;
        let enough = self.level >= parts;
        if enough {
            self.level -= parts;
        }
        enough
    }

    /// The time in nanoseconds from `now` until `tokens` are available; 0 if they are available already, `None` if
    /// they never will be.
    #[inline]
    pub fn time_until(&mut self, tokens: u64, now: i64) -> Option<u64> {
        self.refill(now);
        let parts = i128::from(tokens) * TOKEN;
        if self.level >= parts {
            return Some(0);
        }
        if parts > self.capacity || self.rate == 0 {
            return None;
        }
        // The wait ends at the first nanosecond at which enough tokens have arrived. If the clock has stepped back to
        // before `updated`, the wait also includes the time until `updated`.
        let missing = parts.saturating_sub(self.level).unsigned_abs().div_ceil(u128::from(self.rate));
        let behind = self.updated.abs_diff(now);
        Some(u64::try_from(missing).unwrap_or(u64::MAX).saturating_add(behind))
    }
}

/// The number of whole tokens in `parts`.
const fn whole(parts: i128) -> u64 {
    let tokens = parts / TOKEN;
    if tokens <= 0 {
        0
    } else if tokens > u64::MAX as i128 {
        u64::MAX
    } else {
        tokens as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// The departure times of single tokens, each removed as soon as it is available.
    fn departures(bucket: &mut TokenBucket, start: i64, count: usize) -> Vec<i64> {
        let mut now = start;
        std::iter::from_fn(|| {
            now += bucket.time_until(1, now)? as i64;
            assert!(bucket.remove_if(1, now));
            Some(now - start)
        })
        .take(count)
        .collect()
    }

    #[test]
    fn rated_source_bursts_two_then_keeps_the_rate() {
        let start = 1_000_000_000 * SECOND;
        let mut bucket = TokenBucket::for_rated_source(10);
        assert_eq!(departures(&mut bucket, start, 5), [0, 0, SECOND / 10, SECOND / 5, 3 * SECOND / 10]);
        for (rate, capacity) in [(1, 2), (199, 2), (200, 2), (299, 2), (300, 3), (100_000, 1000)] {
            assert_eq!(TokenBucket::for_rated_source(rate).capacity(), capacity, "{rate}");
        }
    }

    #[test]
    fn a_bucket_holds_the_tokens_of_its_duration() {
        for (rate, capacity) in [(0, 1), (1, 1), (49, 1), (50, 1), (100, 2), (1_000_000, 20_000)] {
            assert_eq!(TokenBucket::with_duration(rate, 20_000_000).capacity(), capacity, "{rate}");
        }
        let mut bucket = TokenBucket::new(10, 3);
        assert_eq!(departures(&mut bucket, 5, 5), [0, 0, 0, SECOND / 10, SECOND / 5]);
    }

    #[test]
    fn no_token_is_lost_over_any_division_of_time() {
        // Rates that do not divide a second evenly, and one with a third of a nanosecond per token.
        for rate in [7, 3_000_000_000, 999_999_937] {
            let mut bucket = TokenBucket::new(rate, rate);
            bucket.remove(rate, 0);
            let (mut now, mut taken, mut seed) = (0, 0, 1_u64);
            while now < SECOND / 2 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now = (now + (seed >> 44) as i64).min(SECOND / 2);
                let available = bucket.available(now);
                assert!(bucket.remove_if(available, now) && !bucket.remove_if(1, now));
                taken += available;
            }
            assert_eq!(taken, rate / 2);
        }
    }

    #[test]
    fn debts_are_paid_first() {
        // Tokens are bytes: 500 arrive a second, and each packet removes 100. A packet may be sent when
        // 131,072 tokens are available. The bucket holds 10 more, which allow a burst of 10 bytes.
        let mut bucket = TokenBucket::new(500, 131_072 + 10);
        let mut now = 0;
        let mut times = Vec::new();
        for _ in 0..4 {
            now += bucket.time_until(131_072, now).unwrap_or_default() as i64;
            bucket.remove(100, now);
            times.push(now / 1_000_000);
        }
        assert_eq!(times, [0, 180, 380, 580]);
        let mut bucket = TokenBucket::new(1, 2);
        bucket.remove(5, 0);
        assert_eq!((bucket.available(0), bucket.time_until(1, 0)), (0, Some(4 * SECOND as u64)));
        bucket.fill();
        assert_eq!(bucket.available(0), 2);
    }

    #[test]
    fn tokens_that_never_arrive() {
        let mut bucket = TokenBucket::new(0, 1);
        assert!(bucket.remove_if(1, 0));
        assert_eq!((bucket.time_until(0, 1), bucket.time_until(1, i64::MAX - SECOND)), (Some(0), None));
        assert_eq!(TokenBucket::new(5, 2).time_until(3, 0), None);
        bucket.set_rate(10, i64::MAX - SECOND);
        assert_eq!(bucket.time_until(1, i64::MAX - SECOND), Some(SECOND as u64 / 10));
    }

    #[test]
    fn clocks_that_step_back() {
        let mut bucket = TokenBucket::new(10, 1);
        assert!(bucket.remove_if(1, 2 * SECOND));
        assert!(!bucket.remove_if(1, SECOND));
        assert_eq!(bucket.time_until(1, SECOND), Some(SECOND as u64 + SECOND as u64 / 10));
        assert!(bucket.remove_if(1, 2 * SECOND + SECOND / 10));
    }

    #[test]
    fn extremes_do_not_overflow() {
        for mut bucket in
            [TokenBucket::new(u64::MAX, u64::MAX), TokenBucket::with_duration(u64::MAX, u64::MAX)]
        {
            bucket.remove(u64::MAX, i64::MIN);
            bucket.remove(u64::MAX, i64::MIN);
            assert!(bucket.time_until(u64::MAX, i64::MIN).is_some());
            assert!(bucket.available(i64::MAX) > 0);
            bucket.set_rate(1, i64::MIN);
            assert!(bucket.time_until(u64::MAX, i64::MIN).is_some());
        }
    }
}

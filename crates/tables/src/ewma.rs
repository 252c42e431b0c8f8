// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates as exponentially weighted moving averages in fixed point.

/// Epochs per second.
const HZ: i64 = 1000;
/// The length of an epoch in nanoseconds.
pub const EPOCH: i64 = 1_000_000_000 / HZ;
/// The weight of the newest epoch in the average is 2^-STABILITY.
const STABILITY: u32 = 4;
/// Added before the shift by STABILITY, so that the result is rounded to nearest. Because of this rounding, a decaying
/// average stops at `HALF` instead of 0.
const HALF: i128 = 1 << (STABILITY - 1);
/// A number of epochs after which earlier ones have no weight: (15/16)^1000 is below 2^-64.
const MANY: u64 = 1000;

/// The rate of counted events, averaged over epochs of one millisecond.
///
/// The average has a few fractional bits ([`Self::packets`] has ten, [`Self::bytes`] four). After an isolated packet
/// the average does not return to 0, but settles at 8 units of the last bit. [`Self::rate`] then returns 7.8125 packets
/// or 500 bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ewma {
    average: u64,
    /// The count in the current epoch.
    count: u64,
    epoch: i64,
    places: u32,
}

impl Ewma {
    /// Creates an average for counts of packets.
    pub const fn packets() -> Self {
        Self { average: 0, count: 0, epoch: 0, places: 10 }
    }

    /// Creates an average for counts of bytes.
    pub const fn bytes() -> Self {
        Self { average: 0, count: 0, epoch: 0, places: 4 }
    }

    /// The average in units of the last place, the count in the current epoch, and this epoch's number: what an average that is
    /// kept elsewhere consists of.
    pub const fn parts(&self) -> (u64, u64, i64) {
        (self.average, self.count, self.epoch)
    }

    /// The average with other [parts](Self::parts) and as many fractional bits as this one.
    pub const fn with_parts(self, (average, count, epoch): (u64, u64, i64)) -> Self {
        Self { average, count, epoch, places: self.places }
    }

    /// The number of fractional bits.
    pub const fn places(&self) -> u32 {
        self.places
    }

    /// The smallest average, in units of the last place, of which the rate is at least `rate`.
    pub fn units(&self, rate: f64) -> u64 {
        let guess = (rate * f64::from(1_u32 << self.places) / HZ as f64).ceil();
        let is_less = |units: u64| self.of_units(units) < rate;
        // The conversions may round.
        let mut units = (guess as u64).saturating_sub(2);
        while is_less(units) && units < u64::MAX {
            units += 1;
        }
        units
    }

    fn of_units(&self, units: u64) -> f64 {
        units as f64 * HZ as f64 / f64::from(1_u32 << self.places)
    }

    /// Adds `count` at time `now` in nanoseconds. If the clock steps back, `count` is added to the current
    /// epoch.
    #[inline]
    pub fn update(&mut self, count: u64, now: i64) {
        let epoch = now.div_euclid(EPOCH);
        if epoch > self.epoch {
            self.advance(epoch);
        }
        self.count = self.count.saturating_add(count);
    }

    /// Adds `count` at time `now` in nanoseconds, as if the events had come evenly since the last update.
    pub fn spread(&mut self, count: u64, now: i64) {
        let count = count.saturating_add(std::mem::take(&mut self.count));
        let epoch = now.div_euclid(EPOCH);
        match u64::try_from(epoch.saturating_sub(self.epoch)) {
            Ok(epochs) if epochs > 0 => {
                let each = (u128::from(count) << self.places) / u128::from(epochs);
                let each = u64::try_from(each).unwrap_or(u64::MAX);
                for _ in 0..epochs.min(MANY) {
                    self.average = Self::step(self.average, each);
                }
                self.epoch = epoch;
            }
            _ => self.count = count,
        }
    }

    #[inline]
    fn step(average: u64, value: u64) -> u64 {
        let (average, value) = (i128::from(average), i128::from(value));
        // The average of two 64-bit numbers fits into 64 bits.
        u64::try_from(average + ((value - average + HALF) >> STABILITY)).unwrap_or(u64::MAX)
    }

    /// Closes the current epoch and the empty epochs up to `epoch`.
    fn advance(&mut self, epoch: i64) {
        let scaled = u64::try_from(u128::from(self.count) << self.places).unwrap_or(u64::MAX);
        self.average = Self::step(self.average, scaled);
        let mut empty = epoch.saturating_sub(self.epoch).saturating_sub(1);
        // The average reaches its final value after a few hundred steps, so the loop is short even after a long time
        // without events.
        while empty > 0 {
            let next = Self::step(self.average, 0);
            if next == self.average {
                break;
            }
            self.average = next;
            empty -= 1;
        }
        self.count = 0;
        self.epoch = epoch;
    }

    /// The rate per second at time `now`. Events in the current epoch are not included yet.
    pub fn rate(&self, now: i64) -> f64 {
        let mut at = *self;
        at.update(0, now);
        at.of_units(at.average)
    }

    /// Returns the end of the current epoch, in nanoseconds: until then, the rate stays the same.
    pub const fn epoch_end(&self) -> i64 {
        self.epoch.saturating_add(1).saturating_mul(EPOCH)
    }

    /// Resets the average and the count to zero.
    pub const fn reset(&mut self) {
        self.average = 0;
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn ten_packets_a_second_as_the_reference_shows_them() {
        for start in [0, 1_700_000_000 * SECOND] {
            let (mut packets, mut bytes) = (Ewma::packets(), Ewma::bytes());
            assert_eq!(packets.rate(start), 0.0);
            for i in 0..40 {
                packets.update(1, start + i * SECOND / 10);
                bytes.update(64, start + i * SECOND / 10);
            }
            let now = start + 4 * SECOND;
            assert_eq!(packets.rate(now), 7.8125);
            assert_eq!(bytes.rate(now), 500.0);
            assert_eq!(8.0 * bytes.rate(now), 4000.0);
            assert_eq!(packets.rate(now).to_string(), "7.8125");
            assert_eq!(bytes.rate(now).to_string(), "500");
        }
    }

    #[test]
    fn equals_one_step_an_epoch() {
        let mut seed = 5_u64;
        let (mut ewma, mut average, mut count) = (Ewma::packets(), 0_i64, 0_i64);
        for epoch in 1..20_000_i64 {
            average += ((count << 10) - average + 8) >> 4;
            count = 0;
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 61 == 0 || (epoch / 1000) % 3 == 0 {
                count = (seed >> 50) as i64 % 100;
                ewma.update(count as u64, epoch * EPOCH + (seed >> 45) as i64);
            }
            if epoch % 7 == 0 {
                assert_eq!(ewma.rate(epoch * EPOCH), average as f64 * 1000.0 / 1024.0);
            }
        }
    }

    #[test]
    fn units_are_the_least_that_reach_a_rate() {
        for ewma in [Ewma::packets(), Ewma::bytes()] {
            for rate in [0.0, 0.1, 9.765_625, 20.0, 19.53125, 1e3, 62.5, 999.9, 1e6 + 0.5, 125e6, 1e12] {
                let units = ewma.units(rate);
                assert!(ewma.of_units(units) >= rate, "{rate}");
                assert!(units == 0 || ewma.of_units(units - 1) < rate, "{rate}");
            }
        }
    }

    #[test]
    fn steady_rates_converge() {
        let mut ewma = Ewma::packets();
        for ms in 0..1000 {
            ewma.update(1000, ms * EPOCH);
        }
        assert!((ewma.rate(SECOND) / 1e6 - 1.0).abs() < 1e-3);
        ewma.reset();
        assert_eq!(ewma.rate(2 * SECOND), 0.0);
    }

    #[test]
    fn spread_counts_are_like_counts_in_each_epoch() {
        let (mut each, mut spread) = (Ewma::packets(), Ewma::packets());
        let mut now = SECOND;
        spread.spread(0, now);
        each.update(0, now);
        let mut early = 0;
        for epochs in [1, 2, 40, 3, 700, 1200] {
            for _ in 0..epochs {
                each.update(50, now);
                now += EPOCH;
            }
            spread.spread(50 * epochs as u64 - early, now);
            assert_eq!(spread.rate(now), each.rate(now), "{epochs}");
            // The second count in an epoch is included in the next.
            early = 20;
            spread.spread(early, now + 5);
            assert_eq!(spread.rate(now + 5), each.rate(now), "{epochs}");
        }
        spread.spread(7, now - SECOND);
        assert_eq!(spread.rate(now), each.rate(now), "a clock that steps back");
    }

    #[test]
    fn the_rate_changes_at_the_end_of_an_epoch() {
        let mut ewma = Ewma::packets();
        for now in [0, 1, EPOCH - 1, EPOCH, 7 * EPOCH + 5] {
            ewma.update(1000, now);
            let (end, rate) = (ewma.epoch_end(), ewma.rate(now));
            assert_eq!(ewma.rate(end - 1), rate);
            assert_ne!(ewma.rate(end), rate);
        }
        ewma.update(0, i64::MAX);
        assert_eq!(ewma.epoch_end(), i64::MAX);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut ewma = Ewma::packets();
        ewma.update(u64::MAX, i64::MIN);
        ewma.update(u64::MAX, i64::MIN + 1);
        ewma.update(u64::MAX, i64::MAX);
        ewma.update(u64::MAX, 0);
        assert!(ewma.rate(i64::MAX).is_finite());
        for i in 0..2000 {
            let mut ewma = Ewma { average: u64::MAX, count: u64::MAX, epoch: 0, places: 10 };
            ewma.update(0, i * EPOCH);
            assert!(ewma.rate(i64::MAX) < 8.0);
        }
    }
}

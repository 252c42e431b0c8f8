// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spreads packets or bytes evenly over each second.

/// One second, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Allows `rate` units a second. After n units in a second, the next unit may pass n / `rate` seconds after the start
/// of that second.
///
/// Unused units are lost at the end of the second. The excess of long packets is subtracted from the units of the next
/// seconds. All calculations use whole numbers, so rounding errors cannot add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    rate: u64,
    /// The start of the current second; none before the first call of `allowed`.
    second: Option<i64>,
    /// Units that passed in this second, plus the excess of earlier seconds.
    count: u64,
}

impl Gap {
    /// Makes a gap for `rate` units a second.
    pub(super) fn new(rate: u64) -> Gap {
        Gap { rate, second: None, count: 0 }
    }

    /// Starts anew, as if no unit had passed. The next unit may pass immediately.
    pub(super) fn reset(&mut self) {
        *self = Gap::new(self.rate);
    }

    /// Changes the rate. The next unit may pass immediately.
    pub(super) fn set_rate(&mut self, rate: u64) {
        *self = Gap::new(rate);
    }

    /// Continues from the state of another gap, if the rates are equal (hot swap).
    pub(super) fn go_on_from(&mut self, old: &Gap) {
        if self.rate == old.rate {
            *self = *old;
        }
    }

    /// Returns the number of units that are due in the first `ns` nanoseconds of a second.
    fn due_after(&self, ns: i64) -> u64 {
        let due =
            u128::from(ns.max(0).unsigned_abs()) * u128::from(self.rate) / u128::from(SECOND.unsigned_abs());
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// Returns how many units may pass now.
    #[inline]
    pub(super) fn allowed(&mut self, now: i64) -> u64 {
        if self.rate == 0 {
            return 0;
        }
        let begun = match self.second {
            Some(s) if now.saturating_sub(s) < SECOND => s,
            before => self.enter(now, before),
        };
        self.due_after(now.saturating_sub(begun)).saturating_add(1).saturating_sub(self.count)
    }

    /// Begins the second that contains `now`. Returns the start of this second.
    #[cold]
    fn enter(&mut self, now: i64, before: Option<i64>) -> i64 {
        let begun = now.saturating_sub(now.rem_euclid(SECOND));
        self.count = match before {
            Some(s) => {
                let seconds = begun.saturating_sub(s) / SECOND;
                self.count.saturating_sub(self.rate.saturating_mul(seconds.unsigned_abs()))
            }
            // On the first call, the units that were due earlier in this second count as used. Otherwise, these units
            // could pass all at once.
            None => self.due_after(now.saturating_sub(begun)),
        };
        self.second = Some(begun);
        begun
    }

    /// Counts units that passed.
    #[inline]
    pub(super) fn went(&mut self, units: u64) {
        self.count = self.count.saturating_add(units);
    }

    /// Returns the time at which the next unit may pass; none at a rate of 0.
    pub(super) fn next(&self) -> Option<i64> {
        if self.rate == 0 {
            return None;
        }
        let ns = (u128::from(self.count) * u128::from(SECOND.unsigned_abs())).div_ceil(u128::from(self.rate));
        let begun = self.second.unwrap_or(i64::MIN);
        Some(begun.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time at which each packet passes. The first may pass from `start` on, and none waits longer than it
    /// must. `units[i]` is the number of units of packet `i`.
    fn times(gap: &mut Gap, start: i64, units: &[u64]) -> Vec<i64> {
        let mut now = start;
        units
            .iter()
            .map(|&n| {
                if gap.allowed(now) == 0 {
                    now = gap.next().unwrap_or(i64::MAX);
                    assert_eq!(gap.allowed(now - 1), 0);
                    assert!(gap.allowed(now) > 0);
                }
                gap.went(n);
                now - start
            })
            .collect()
    }

    #[test]
    fn even_gaps_from_any_moment() {
        let ms = |v: Vec<i64>| v.into_iter().map(|t| t / 1_000_000).collect::<Vec<_>>();
        assert_eq!(ms(times(&mut Gap::new(4), 7 * SECOND, &[1; 7])), [0, 250, 500, 750, 1000, 1250, 1500]);
        assert_eq!(ms(times(&mut Gap::new(4), 7 * SECOND + SECOND / 2, &[1; 4])), [0, 250, 500, 750]);
        // Even if the distance between units does not divide a second, a unit passes at the start of each second.
        assert_eq!(ms(times(&mut Gap::new(3), 0, &[1; 5])), [0, 333, 666, 1000, 1333]);
        // The excess of long packets is subtracted from the units of several seconds.
        assert_eq!(ms(times(&mut Gap::new(100), 0, &[350, 50, 1])), [0, 3500, 4000]);
    }

    #[test]
    fn exact_over_a_minute() {
        for rate in [1, 7, 333, 9_999, 123_457] {
            let mut gap = Gap::new(rate);
            let (mut now, mut went) = (SECOND, 0);
            while now < 61 * SECOND {
                let n = gap.allowed(now);
                gap.went(n);
                went += n;
                now = gap.next().unwrap_or(i64::MAX);
            }
            assert_eq!(went, 60 * rate);
        }
    }

    #[test]
    fn pauses_resets_and_extremes() {
        let mut gap = Gap::new(10);
        assert_eq!((gap.allowed(0), gap.allowed(0)), (1, 1));
        gap.went(1);
        assert_eq!((gap.allowed(99_999_999), gap.allowed(100_000_000)), (0, 1));
        assert_eq!(gap.allowed(SECOND - 1), 9, "what was due in this second");
        assert_eq!(gap.allowed(9 * SECOND), 1, "and not in those before");
        gap.went(1);
        gap.reset();
        assert_eq!(gap.allowed(9 * SECOND), 1);
        gap.set_rate(0);
        assert_eq!((gap.allowed(10 * SECOND), gap.next()), (0, None));
        for rate in [1, u64::MAX] {
            let mut gap = Gap::new(rate);
            for now in [i64::MIN, 0, 5, i64::MAX, i64::MIN, i64::MAX - 1] {
                gap.allowed(now);
                gap.went(u64::MAX);
                assert!(gap.next().is_some());
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets or bytes spread evenly over each second.

/// Nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Lets `rate` units a second go: within a second, the unit after the n-th may go when n / rate of the second is over.
///
/// Unused units are lost at the end of the second; units that were used too many, by long packets, are made up for in the next
/// ones. Whole numbers, so nothing is ever rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    rate: u64,
    /// When the present second began; none before the first look.
    second: Option<i64>,
    /// Units that went in this second, and those that were too many in the ones before.
    count: u64,
}

impl Gap {
    /// For so many units a second.
    pub(super) fn new(rate: u64) -> Gap {
        Gap { rate, second: None, count: 0 }
    }

    /// Forgets what went; the next unit may go at once.
    pub(super) fn reset(&mut self) {
        *self = Gap::new(self.rate);
    }

    /// Changes the rate; the next unit may go at once.
    pub(super) fn set_rate(&mut self, rate: u64) {
        *self = Gap::new(rate);
    }

    /// Goes on where another one is, unless its rate was another (hot swap).
    pub(super) fn go_on_from(&mut self, old: &Gap) {
        if self.rate == old.rate {
            *self = *old;
        }
    }

    /// Units of the second that are due after so many nanoseconds of it.
    fn due_after(&self, ns: i64) -> u64 {
        let due =
            u128::from(ns.max(0).unsigned_abs()) * u128::from(self.rate) / u128::from(SECOND.unsigned_abs());
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// How many units may go now.
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

    /// Begins another second.
    #[cold]
    fn enter(&mut self, now: i64, before: Option<i64>) -> i64 {
        let begun = now.saturating_sub(now.rem_euclid(SECOND));
        self.count = match before {
            Some(s) => {
                let seconds = begun.saturating_sub(s) / SECOND;
                self.count.saturating_sub(self.rate.saturating_mul(seconds.unsigned_abs()))
            }
            // As if all had gone that was due, so that nothing is made up for that never was asked for.
            None => self.due_after(now.saturating_sub(begun)),
        };
        self.second = Some(begun);
        begun
    }

    /// Counts units that went.
    #[inline]
    pub(super) fn went(&mut self, units: u64) {
        self.count = self.count.saturating_add(units);
    }

    /// When the next unit may go, once some have gone; never at a rate of 0.
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

    /// When single units go that are taken as soon as they may, from `start` on.
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
        // A second that is not a whole number of gaps begins anew.
        assert_eq!(ms(times(&mut Gap::new(3), 0, &[1; 5])), [0, 333, 666, 1000, 1333]);
        // Long packets are paid for over several seconds.
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

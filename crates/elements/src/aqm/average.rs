// SPDX-License-Identifier: MIT OR Apache-2.0
//! The average length of a queue, as Floyd and Jacobson 1993 compute it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// While a queue is empty, the average falls as if packets arrived at this interval, in nanoseconds.
const IDLE: i64 = 20_000_000;

/// A real number that several workers read and change. If two workers change it at the same moment, one
/// change is lost.
pub(super) struct Real(AtomicU64);

impl Real {
    pub(super) fn new(value: f64) -> Real {
        Real(AtomicU64::new(value.to_bits()))
    }
    #[inline]
    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
    #[inline]
    pub(super) fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

/// An exponentially weighted moving average of queue lengths, updated for each packet, that workers share.
pub(super) struct Average {
    value: Real,
    /// The start of the idle time, in nanoseconds. It is used only if the next packet finds the queue empty. `i64::MAX`
    /// before the first packet and, on a pull path, while the queue is not empty.
    since: AtomicI64,
    weight: Real,
}

impl Average {
    /// Makes an average of 0, in which a new length has the weight 2 to the power of -`stability`.
    pub(super) fn new(stability: u32) -> Average {
        let average =
            Average { value: Real::new(0.0), since: AtomicI64::new(i64::MAX), weight: Real::new(0.0) };
        average.set_stability(stability);
        average
    }
    /// Sets the weight of a new length to 2 to the power of -`stability`.
    pub(super) fn set_stability(&self, stability: u32) {
        self.weight.set(0.5_f64.powi(i32::try_from(stability).unwrap_or(i32::MAX)));
    }
    /// Returns the current average.
    pub(super) fn get(&self) -> f64 {
        self.value.get()
    }
    /// Takes over the value of another average (hot swap).
    pub(super) fn take_over(&self, old: &Average) {
        self.value.set(old.get());
        self.since.store(old.since.load(Relaxed), Relaxed);
    }
    /// Returns a copy to update for several packets, which [`Average::store`] brings back.
    #[inline]
    pub(super) fn load(&self) -> Moving {
        Moving { value: self.value.get(), since: self.since.load(Relaxed), weight: self.weight.get() }
    }
    /// Stores the value of a copy.
    #[inline]
    pub(super) fn store(&self, moving: &Moving) {
        self.value.set(moving.value);
        self.since.store(moving.since, Relaxed);
    }
    /// Updates the average for one packet ([`Moving::update`]).
    #[inline]
    pub(super) fn update(&self, length: usize, pulled: bool, now: i64) -> f64 {
        let mut moving = self.load();
        let new = moving.update(length, pulled, now);
        self.store(&moving);
        new
    }
    /// Returns the average for handlers, rounded to three decimal places.
    pub(super) fn rounded(&self) -> f64 {
        (self.get() * 1000.0).round() / 1000.0
    }
}

/// A copy of an [`Average`].
pub(super) struct Moving {
    value: f64,
    since: i64,
    weight: f64,
}

impl Moving {
    /// Updates the average for a packet that arrives at `now`, when `length` packets are in the queue. Returns the new
    /// average.
    ///
    /// On a pull path, only pulls empty the queue, and each pull calls `update`. So the time at which the queue became
    /// empty is known. On a push path, that time is not known, and the time of the previous packet is used in its
    /// place.
    #[inline]
    pub(super) fn update(&mut self, length: usize, pulled: bool, now: i64) -> f64 {
        self.value = if length > 0 {
            self.value + (length as f64 - self.value) * self.weight
        } else {
            self.after_idle_time(now)
        };
        self.since = if pulled && length > 0 { i64::MAX } else { now };
        self.value
    }
    /// Returns the value, reduced for the time in which the queue was empty (Floyd and Jacobson 1993, section 4).
    #[inline(never)]
    fn after_idle_time(&self, now: i64) -> f64 {
        let steps = now.saturating_sub(self.since) / IDLE;
        self.value * (1.0 - self.weight).powi(i32::try_from(steps.max(1)).unwrap_or(i32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::prelude::Show;

    #[test]
    fn follows_the_definition() {
        for stability in [0, 1, 4, 9] {
            let (average, w) = (Average::new(stability), 1.0 / f64::from(1 << stability));
            let mut want = 0.0;
            for i in 0..500_i32 {
                let length = (i * 7919 % 31) as usize;
                // Packets arrive a millisecond apart, which is less than `IDLE`, so an empty queue counts as one length
                // of 0.
                want = (1.0 - w) * want + w * length as f64;
                assert!((average.update(length, false, i64::from(i) * 1_000_000) - want).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn an_empty_queue_forgets_with_time() {
        let after = |pulled, lengths: &[(usize, i64)]| {
            let average = Average::new(4);
            average.value.set(100.0);
            lengths.iter().for_each(|&(n, ms)| {
                average.update(n, pulled, ms * 1_000_000);
            });
            average.get()
        };
        let keep = |steps| 100.0 * 0.9375_f64.powi(steps);
        for (lengths, steps) in [
            (&[(0, 500)][..], 1),
            (&[(0, 0), (0, 19)], 2),
            (&[(0, 0), (0, 39)], 2),
            (&[(0, 0), (0, 40)], 3),
            (&[(0, 0), (0, 2000)], 101),
            (&[(0, 1000), (0, 500)], 2),
            (&[(0, 0), (0, i64::MAX / 1_000_000)], i32::MAX),
        ] {
            for pulled in [false, true] {
                assert!((after(pulled, lengths) - keep(steps)).abs() < 1e-9, "{lengths:?}");
            }
        }
        // A hundred intervals pass between two packets. The first packet found others in the queue.
        let before = 100.0 + (200.0 - 100.0) / 16.0;
        let pushed = after(false, &[(200, 0), (0, 2000)]);
        assert!((pushed - before * 0.9375_f64.powi(100)).abs() < 1e-9);
        assert!((after(true, &[(200, 0), (0, 2000)]) - before * 0.9375).abs() < 1e-9, "empty only now");
        assert_eq!(after(false, &[(0, 0)]), 93.75);
    }

    #[test]
    fn shows_three_places() {
        let average = Average::new(4);
        for (value, text) in [(0.0, "0"), (1.0, "1"), (2.000_49, "2"), (0.0625, "0.063"), (93.75, "93.75")] {
            average.value.set(value);
            assert_eq!(average.rounded().show(), text);
        }
    }
}

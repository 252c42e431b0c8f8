// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that several workers measure together.

use castanet_tables::Ewma;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rate that several workers measure together. Each worker counts on a [`Meter`] of its own.
pub struct SharedRate(Mutex<State>);

struct State {
    average: Ewma,
    counters: Vec<Counter>,
    /// The sum of all counters when their counts were last moved to `average`.
    included: u64,
}

/// The count of one worker since the router was built. Only that worker adds to it, so the worker needs no atomic
/// addition, and the cache line moves to another processor only when the average is updated. Overflow wraps.
type Counter = Arc<CachePadded<AtomicU64>>;

impl State {
    /// Moves the counts of all workers to the average's current epoch.
    fn include(&mut self) {
        let sum = self.counters.iter().fold(0_u64, |sum, c| sum.wrapping_add(c.load(Ordering::Relaxed)));
        let new = sum.wrapping_sub(self.included);
        self.included = sum;
        self.average.update(new, i64::MIN);
    }
}

impl SharedRate {
    /// Creates a rate that is measured by `average`.
    pub fn new(average: Ewma) -> SharedRate {
        SharedRate(Mutex::new(State { average, counters: Vec::new(), included: 0 }))
    }
    /// Returns the rate at time `now`, in nanoseconds.
    pub fn rate(&self, now: i64) -> f64 {
        let mut state = self.0.lock();
        state.include();
        state.average.rate(now)
    }
    /// Continues from the average of another rate, on which no worker counts any more.
    pub fn continue_from(&self, old: &SharedRate) {
        if std::ptr::eq(self, old) {
            return;
        }
        let mut old = old.0.lock();
        old.include();
        self.0.lock().average = old.average;
    }
    /// Returns the average with the counts of all workers.
    #[cfg(test)]
    fn average(&self) -> Ewma {
        let mut state = self.0.lock();
        state.include();
        state.average
    }
}

/// The part of a [`SharedRate`] that one worker uses.
pub struct Meter {
    shared: Arc<SharedRate>,
    mine: Counter,
    /// The time from which the rate must be computed again, in nanoseconds.
    end: i64,
}

impl Meter {
    /// Adds a worker to a rate.
    pub fn new(shared: Arc<SharedRate>) -> Meter {
        let mine = Counter::default();
        shared.0.lock().counters.push(mine.clone());
        Meter { shared, mine, end: i64::MIN }
    }
    /// Returns the rate that this worker counts on.
    pub fn shared(&self) -> &SharedRate {
        &self.shared
    }
    /// Adds `count` at time `now`, in nanoseconds. Returns the rate if it may differ from what the last call returned.
    /// This happens at most once per millisecond. If `now` is earlier than in a previous call of this or another
    /// worker, `count` is added to the current epoch.
    #[inline]
    pub fn update(&mut self, count: u64, now: i64) -> Option<f64> {
        let rate = if now >= self.end { Some(self.next_epoch(now)) } else { None };
        self.mine.store(self.mine.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
        rate
    }
    #[cold]
    fn next_epoch(&mut self, now: i64) -> f64 {
        let mut state = self.shared.0.lock();
        state.include();
        state.average.update(0, now);
        self.end = state.average.epoch_end();
        state.average.rate(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::Random;

    #[test]
    fn workers_measure_as_one_average_does() {
        let mut random = Random::new(4, "shared rate");
        for workers in [1, 2, 5] {
            let shared = Arc::new(SharedRate::new(Ewma::bytes()));
            let mut meters: Vec<Meter> = (0..workers).map(|_| Meter::new(shared.clone())).collect();
            let (mut model, mut now) = (Ewma::bytes(), 1_700_000_000_000_000_000);
            let mut seen = vec![0.0; workers];
            for _ in 0..20_000 {
                now += random.below(300_000) as i64;
                let (worker, count) = (random.below(workers as u64) as usize, random.below(1500));
                model.update(count, now);
                if let Some(rate) = meters[worker].update(count, now) {
                    seen[worker] = rate;
                }
                assert_eq!(seen[worker], model.rate(now));
                if random.below(50) == 0 {
                    assert_eq!(shared.rate(now + 5_000_000), model.rate(now + 5_000_000));
                }
            }
            let new = SharedRate::new(Ewma::bytes());
            new.continue_from(&shared);
            assert_eq!(new.average(), model);
        }
    }

    #[test]
    fn no_count_is_lost_between_threads() {
        let shared = Arc::new(SharedRate::new(Ewma::packets()));
        let end = std::thread::scope(|s| {
            for _ in 0..4 {
                let mut meter = Meter::new(shared.clone());
                s.spawn(move || {
                    for _ in 0..10_000 {
                        meter.update(1, 5);
                    }
                });
            }
            for _ in 0..100 {
                assert_eq!(shared.rate(6), 0.0);
            }
            1_000_000
        });
        let mut model = Ewma::packets();
        model.update(40_000, 5);
        assert_eq!(shared.rate(end), model.rate(end));
        assert_ne!(model.rate(end), 0.0);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that several workers measure together.

use castanet_element::kernel::{Arithmetic, Code, Operand, Size, Table, TableSpec, Test, Value};
use castanet_tables::{Ewma, ewma};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rate that several workers measure together. Each worker counts on a [`Meter`] of its own.
pub struct SharedRate(Mutex<State>);

struct State {
    average: Ewma,
    /// The words in which the average is kept instead, if it also includes packets in the kernel.
    words: Option<Arc<dyn Table>>,
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
        match &self.words {
            None => self.average.update(new, i64::MIN),
            Some(words) => {
                words.add_to_word(word::COUNT, new);
            }
        }
    }
    /// Begins the epoch of the time `now` if it has not begun. Returns the average.
    fn at(&mut self, now: i64) -> Ewma {
        let Some(words) = &self.words else {
            self.average.update(0, now);
            return self.average;
        };
        let now = words.exact_time(now) as i64;
        if epoch_of(now) > read(self.average, &**words).parts().2 {
            if words.add_to_word(word::LOCK, 1) == Some(0) {
                let mut average = read(self.average, &**words);
                let counted = average.parts().1;
                average.update(0, now);
                let (average, left, epoch) = average.parts();
                words.add_to_word(word::COUNT, left.wrapping_sub(counted));
                words.set_word(word::AVERAGE, average);
                words.set_word(word::EPOCH, epoch as u64);
            }
            words.add_to_word(word::LOCK, 1_u64.wrapping_neg());
        }
        read(self.average, &**words)
    }
    /// The average, with epochs of the router's clock.
    fn own(&self, now: i64) -> Ewma {
        let Some(words) = &self.words else { return self.average };
        let (average, count, epoch) = read(self.average, &**words).parts();
        let ago = epoch_of(words.exact_time(now) as i64).saturating_sub(epoch);
        self.average.with_parts((average, count, epoch_of(now).saturating_sub(ago)))
    }
}

/// The average in words that the kernel shares. Epochs are those of the clock of programs.
mod word {
    pub const AVERAGE: usize = 0;
    pub const COUNT: usize = 1;
    pub const EPOCH: usize = 2;
    /// The number of those that want to begin an epoch. The first one does.
    pub const LOCK: usize = 3;
}

const WORDS: TableSpec = TableSpec::shared(4);

fn epoch_of(now: i64) -> i64 {
    now.div_euclid(ewma::EPOCH)
}

/// Reads the average from words. `like` has its number of fractional bits.
fn read(like: Ewma, words: &dyn Table) -> Ewma {
    let [average, count, epoch] =
        [word::AVERAGE, word::COUNT, word::EPOCH].map(|w| words.word(w).unwrap_or_default());
    like.with_parts((average, count, epoch as i64))
}

/// Counts a packet of some cost in the kernel, in the average of table 0 of the element. Returns the average before the packet, in units
/// of the last place.
///
/// At the end of an epoch, one processor (or the router at user level) computes the next average. Others that do not find it yet
/// use the former one, and what they count meanwhile belongs to one epoch or the other. No count is lost or included twice.
pub fn count_in_kernel(code: &mut Code<'_>, like: Ewma, cost: impl Into<Operand>) -> Value {
    let offset = |w: usize| (8 * w) as i32;
    let (begun, busy) = (code.label(), code.label());
    let now = code.exact_time();
    let words = code.shared(0, WORDS);
    let epoch = code.compute(Arithmetic::Divide, now, ewma::EPOCH);
    let before = code.load_entry(words, offset(word::EPOCH), Size::Double);
    code.branch_wide(epoch, Test::AtMost, before, begun);
    let others = code.add_to_entry(words, offset(word::LOCK), 1i64);
    code.branch_wide(others, Test::Differ, 0i64, busy);
    let before = code.load_entry(words, offset(word::EPOCH), Size::Double);
    code.branch_wide(epoch, Test::AtMost, before, busy);
    let count = code.load_entry(words, offset(word::COUNT), Size::Double);
    let minus = code.constant(0);
    code.compute_into(minus, Arithmetic::Subtract, minus, count);
    code.add_to_entry(words, offset(word::COUNT), minus);
    // As `Ewma` does: average + (count - average + 8) / 16, rounded down.
    let average = code.load_entry(words, offset(word::AVERAGE), Size::Double);
    code.compute_into(average, Arithmetic::Multiply, average, 15u32);
    code.compute_into(count, Arithmetic::ShiftLeft, count, like.places());
    code.compute_into(average, Arithmetic::Add, average, count);
    code.compute_into(average, Arithmetic::Add, average, 8u32);
    code.compute_into(average, Arithmetic::ShiftRight, average, 4u32);
    let empty = code.compute(Arithmetic::Subtract, epoch, before);
    code.compute_into(empty, Arithmetic::Subtract, empty, 1u32);
    code.decay(average, empty);
    code.store_entry(words, offset(word::AVERAGE), Size::Double, average);
    code.store_entry(words, offset(word::EPOCH), Size::Double, epoch);
    code.bind(busy);
    code.add_to_entry(words, offset(word::LOCK), -1i64);
    code.bind(begun);
    code.add_to_entry(words, offset(word::COUNT), cost);
    code.load_entry(words, offset(word::AVERAGE), Size::Double)
}

impl SharedRate {
    /// Creates a rate that is measured by `average`.
    pub fn new(average: Ewma) -> SharedRate {
        SharedRate(Mutex::new(State { average, words: None, counters: Vec::new(), included: 0 }))
    }
    /// Returns the rate at time `now`, in nanoseconds.
    pub fn rate(&self, now: i64) -> f64 {
        let mut state = self.0.lock();
        state.include();
        state.own(now).rate(now)
    }
    /// Continues from the average of another rate, on which no worker counts any more. `now` is the time in nanoseconds.
    pub fn continue_from(&self, old: &SharedRate, now: i64) {
        if std::ptr::eq(self, old) {
            return;
        }
        let mut old = old.0.lock();
        old.include();
        self.0.lock().average = old.own(now);
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
    /// Whether the kernel shares the average.
    is_shared: bool,
    /// The time from which the rate must be computed again, in nanoseconds.
    end: i64,
}

impl Meter {
    /// Adds a worker to a rate.
    pub fn new(shared: Arc<SharedRate>) -> Meter {
        let mine = Counter::default();
        shared.0.lock().counters.push(mine.clone());
        Meter { shared, mine, is_shared: false, end: i64::MIN }
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
        if self.is_shared {
            self.shared.0.lock().include();
        }
        rate
    }
    /// Keeps the average in a table that the kernel shares, from the time `now` on.
    pub fn share(&mut self, words: Arc<dyn Table>, now: i64) {
        let mut state = self.shared.0.lock();
        state.include();
        let (average, count, epoch) = state.own(now).parts();
        let ago = epoch_of(now).saturating_sub(epoch);
        let epoch = epoch_of(words.exact_time(now) as i64).saturating_sub(ago).max(0);
        words.set_word(word::AVERAGE, average);
        words.set_word(word::COUNT, count);
        words.set_word(word::EPOCH, epoch as u64);
        state.words = Some(words);
        drop(state);
        (self.is_shared, self.end) = (true, i64::MIN);
    }
    #[cold]
    fn next_epoch(&mut self, now: i64) -> f64 {
        let mut state = self.shared.0.lock();
        state.include();
        let average = state.at(now);
        if self.is_shared {
            // The kernel may begin the next epoch at any time.
            let (units, ..) = average.parts();
            return average.with_parts((units, 0, epoch_of(now))).rate(now);
        }
        self.end = average.epoch_end();
        average.rate(now)
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
            new.continue_from(&shared, now);
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how much time each element takes.
//!
//! A worker measures a sample of the rounds of its run loop. In such a round, wrappers around all elements note when each
//! call begins and ends. In all other rounds the elements have no wrappers, so the cost is that of the measured rounds only.
//! An element's time does not include that of the elements from which it pulls. The time between calls is that of the run
//! loop.

#[cfg(test)]
mod tests;

use castanet_element::package::Wrap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// At most one of so many rounds of a run loop is measured. A measured round takes several times as long as others if
/// packets move one by one.
const ROUNDS: u64 = 256;
/// The number of readings of the clock that show what a reading costs.
const READINGS: usize = 200;

/// The cost of one element in the measured rounds.
#[derive(Default)]
struct Cost {
    /// Nanoseconds.
    time: AtomicI64,
    packets: AtomicU64,
}

/// The costs of a worker's elements. Only the worker writes them; other threads read them.
pub(crate) struct Meter {
    /// The costs by element, and last those of the run loop.
    costs: Box<[Cost]>,
    /// The clock, in nanoseconds.
    now: fn() -> u64,
    /// The cost of a reading of the clock, in nanoseconds.
    reading: i64,
    /// The element that is running, as an index of `costs`, and the time since which it runs.
    running: AtomicU64,
    since: AtomicU64,
    /// Whether the costs belong to an earlier profile. The worker clears them before its next measured round.
    pub(crate) stale: AtomicBool,
}

/// The time since the program first asked for it, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Meter {
    /// A meter for a router with so many elements.
    pub(crate) fn new(elements: usize, now: fn() -> u64) -> Meter {
        let between = (0..READINGS).map(|_| {
            let before = now();
            now().saturating_sub(before)
        });
        Meter {
            reading: between.min().unwrap_or(0) as i64,
            costs: (0..=elements).map(|_| Cost::default()).collect(),
            now,
            running: AtomicU64::new(elements as u64),
            since: AtomicU64::new(0),
            stale: AtomicBool::new(false),
        }
    }

    /// Ends the time of what is running, and begins that of `next`. Returns what was running.
    pub(crate) fn turn_to(&self, next: u64) -> u64 {
        let now = (self.now)();
        let before = self.running.load(Ordering::Relaxed);
        if let Some(cost) = self.costs.get(before as usize) {
            let time = now.wrapping_sub(self.since.load(Ordering::Relaxed)) as i64 - self.reading;
            cost.time.store(cost.time.load(Ordering::Relaxed).wrapping_add(time), Ordering::Relaxed);
        }
        self.running.store(next, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        before
    }

    /// Ends the time of what is running, and begins that of the run loop.
    pub(crate) fn turn_to_run_loop(&self) {
        self.turn_to(self.costs.len() as u64 - 1);
    }

    /// Calls `f`, which runs an element, and measures the call.
    #[inline]
    pub(crate) fn measure<R>(&self, element: u32, f: impl FnOnce() -> R) -> R {
        let before = self.turn_to(u64::from(element));
        let out = f();
        self.turn_to(before);
        out
    }

    /// Counts packets of an element.
    #[inline]
    pub(crate) fn count(&self, element: u32, packets: usize) {
        if let Some(cost) = self.costs.get(element as usize) {
            cost.packets
                .store(cost.packets.load(Ordering::Relaxed).wrapping_add(packets as u64), Ordering::Relaxed);
        }
    }

    /// Begins a measured round.
    pub(crate) fn begin(&self) {
        if self.stale.swap(false, Ordering::Relaxed) {
            for cost in &self.costs {
                cost.time.store(0, Ordering::Relaxed);
                cost.packets.store(0, Ordering::Relaxed);
            }
        }
        self.running.store(self.costs.len() as u64 - 1, Ordering::Relaxed);
        self.since.store((self.now)(), Ordering::Relaxed);
    }

    /// The elements (none for the run loop) with their time in nanoseconds and their packets. Leaves out those that were not
    /// measured.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Option<usize>, u64, u64)> {
        let loop_at = self.costs.len() - 1;
        let costs = self.costs.iter().enumerate().filter(|_| !self.stale.load(Ordering::Relaxed));
        costs.filter_map(move |(e, cost)| {
            let time = cost.time.load(Ordering::Relaxed);
            let packets = cost.packets.load(Ordering::Relaxed);
            // The cost of the clock is taken off each time, so that a very short time may come out below zero.
            (time != 0 || packets != 0).then(|| ((e != loop_at).then_some(e), time.max(0) as u64, packets))
        })
    }
}

/// Measures the calls of an element.
pub(crate) struct Timed {
    pub(crate) meter: Arc<Meter>,
    pub(crate) element: u32,
}

impl Wrap for Timed {
    #[inline]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        self.meter.measure(self.element, f)
    }
    #[inline]
    fn packets(&self, n: usize) {
        self.meter.count(self.element, n);
    }
}

/// The meters of all workers of a configuration. A meter is made when its worker measures for the first time.
pub(crate) struct Meters(pub(crate) Box<[OnceLock<Arc<Meter>>]>);

impl Meters {
    pub(crate) fn new(workers: usize) -> Meters {
        Meters((0..workers).map(|_| OnceLock::new()).collect())
    }
}

/// When a worker measures its next round.
#[derive(Default)]
pub(crate) struct Sampler {
    /// The number of measured rounds.
    measured: u64,
    /// The number of rounds before the next measured one.
    left: u64,
    /// Present in a measured round.
    pub(crate) meter: Option<Arc<Meter>>,
}

impl Sampler {
    /// Whether the next round is measured. The first rounds are measured more often, so that short runs have samples too. The
    /// distance between two measured rounds varies, so that no periodic work is missed.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.measured = self.measured.wrapping_add(1);
        let distance = (self.measured / 4).clamp(2, ROUNDS);
        let mixed = self.measured.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.left = distance / 2 + mixed % distance;
        true
    }
}

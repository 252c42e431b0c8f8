// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random early detection: what RED and AdaptiveRED do; they differ in who sets the probability.

use super::average::{Average, Real};
use super::lengths::{Lengths, Queues};
use super::policy::{Policy, probability};
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

/// How often the probability is adapted, in nanoseconds (Floyd, Gummadi and Shenker 2001, figure 1).
const INTERVAL: i64 = 500_000_000;
/// As many intervals as bring any probability down to the least.
const MOST_INTERVALS: i64 = 100;

/// What all workers share.
pub(super) struct State {
    min: AtomicU32,
    max: AtomicU32,
    max_p: Real,
    average: Average,
    /// Packets since the last one that was dropped; -1 when none may be dropped.
    count: AtomicI64,
    /// The random number that says which packet is dropped next.
    draw: Real,
    /// When the probability is adapted next; never, if it is not.
    adapt: AtomicI64,
    drops: AtomicU64,
}

/// What an element of either class is configured with.
pub(super) struct Settings {
    pub min: u32,
    pub max: u32,
    pub max_p: f64,
    pub queues: Option<Queues>,
    pub stability: u32,
    pub gentle: bool,
    pub adapts: bool,
}

/// The policy.
pub(super) struct Early {
    state: Arc<State>,
    lengths: Lengths,
    settings: Settings,
    pulled: bool,
    random: Random,
}

/// A length has to weigh something.
pub(super) const MOST_STABILITY: u32 = 32;

impl Early {
    pub(super) fn new(settings: Settings, cx: &mut BuildCx<'_>) -> Result<Early, ConfigError> {
        if settings.stability > MOST_STABILITY {
            return Err(format!("STABILITY: must be at most {MOST_STABILITY}").into());
        }
        let max_p = probability(settings.max_p).map_err(|e| format!("MAX_P: {e}"))?;
        let state = cx.share(|| State {
            min: AtomicU32::new(settings.min),
            max: AtomicU32::new(settings.max),
            max_p: Real::new(max_p),
            average: Average::new(settings.stability),
            count: AtomicI64::new(-1),
            draw: Real::new(0.0),
            adapt: AtomicI64::new(i64::MIN),
            drops: AtomicU64::new(0),
        });
        // Workers that draw the same numbers would drop at the same moments.
        let random = cx.random_of_replica();
        Ok(Early { state, lengths: Lengths::default(), settings, pulled: !cx.is_push_input(0), random })
    }

    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
        self.lengths = Lengths::find(self.settings.queues.as_ref(), self.pulled, cx)?;
        Ok(())
    }

    /// Single pulls find queues as they are; what is pushed must come one by one for that.
    pub(super) fn effects(&self, declared: Effects) -> Effects {
        if self.pulled { Effects::NONE } else { declared }
    }

    pub(super) fn take_over(&mut self, old: &Early) {
        let (new, old) = (&self.state, &old.state);
        new.average.take_over(&old.average);
        new.count.store(old.count.load(Relaxed), Relaxed);
        new.draw.set(old.draw.get());
        new.drops.store(old.drops.load(Relaxed), Relaxed);
        if self.settings.adapts {
            new.max_p.set(old.max_p.get());
            new.adapt.store(old.adapt.load(Relaxed), Relaxed);
        }
    }

    /// The initial probability that a packet is dropped at an average length: 0 up to the first threshold, MAX_P at the second,
    /// and when the policy is gentle 1 at twice that. None where all packets are dropped.
    fn probability(&self, average: f64) -> Option<f64> {
        let (min, max) = (self.state.min.load(Relaxed), self.state.max.load(Relaxed));
        let (min, max, max_p) = (f64::from(min), f64::from(max), self.state.max_p.get());
        if average <= min {
            Some(0.0)
        } else if average <= max {
            Some(max_p * (average - min) / (max - min))
        } else if self.settings.gentle && average <= 2.0 * max {
            Some(max_p + (1.0 - max_p) * (average - max) / max)
        } else {
            None
        }
    }

    /// Adds to the probability while the average is above its aim, and takes from it while it is below.
    fn adapt(&self, average: f64, now: i64) {
        let due = self.state.adapt.load(Relaxed);
        let behind = now.saturating_sub(due);
        if behind < 0 {
            return;
        }
        let first = due == i64::MIN;
        let next = now.saturating_add(if first { INTERVAL } else { INTERVAL - behind % INTERVAL });
        // The worker that comes first does it.
        let mine = self.state.adapt.compare_exchange(due, next, Relaxed, Relaxed).is_ok();
        if first || !mine {
            return;
        }
        let (min, max) = (self.state.min.load(Relaxed), self.state.max.load(Relaxed));
        let (min, range) = (f64::from(min), f64::from(max) - f64::from(min));
        let mut p = self.state.max_p.get();
        for _ in 0..(behind / INTERVAL + 1).min(MOST_INTERVALS) {
            if average > min + 0.6 * range && p <= 0.5 {
                p += (p / 4.0).min(0.01);
            } else if average < min + 0.4 * range && p >= 0.01 {
                p *= 0.9;
            }
        }
        self.state.max_p.set(p);
    }

    /// Answers a read handler.
    pub(super) fn read(&self, handler: &str, cx: &mut Cx<'_>) -> String {
        let s = &self.state;
        let (min, max) = (s.min.load(Relaxed), s.max.load(Relaxed));
        let drops = s.drops.load(Relaxed);
        match handler {
            "min_thresh" => min.to_string(),
            "max_thresh" => max.to_string(),
            "max_p" => s.max_p.get().to_string(),
            "avg_queue_size" => s.average.show(),
            "stats" => format!(
                "{} current queue\n{} avg queue\n{drops} drops\n",
                self.lengths.total(),
                s.average.show()
            ),
            "queues" => self.lengths.names("\n", cx) + "\n",
            "config" => {
                let limits = if self.settings.adapts {
                    // The thresholds lie half of it below and above.
                    (u64::from(min) + u64::from(max)).div_ceil(2).to_string()
                } else {
                    format!("{min}, {max}")
                };
                let gentle = if self.settings.gentle { "" } else { ", GENTLE false" };
                let (p, queues) = (s.max_p.get(), self.lengths.names(" ", cx));
                format!("{limits}, {p}, QUEUES {queues}, STABILITY {}{gentle}", self.settings.stability)
            }
            _ => drops.to_string(),
        }
    }

    /// Answers a write handler. One threshold may be above the other for a while, until the second is written too.
    pub(super) fn write(&mut self, handler: &str, value: &str, cx: &Cx<'_>) -> Result<(), String> {
        let value = value.trim();
        match handler {
            "min_thresh" => self.state.min.store(cx.with_args(|a| u32::parse(value, a))?, Relaxed),
            "max_thresh" => self.state.max.store(cx.with_args(|a| u32::parse(value, a))?, Relaxed),
            _ => self.state.max_p.set(probability(cx.with_args(|a| f64::parse(value, a))?)?),
        }
        Ok(())
    }
}

impl Policy for Early {
    /// Floyd and Jacobson 1993, section 7 and figure 17: the packets between two that are dropped are spread evenly, and one random
    /// number is drawn for each packet that is dropped.
    #[inline]
    fn refuses(&mut self, cx: &mut Cx<'_>) -> bool {
        // The average falls in steps of milliseconds, so no exact time is needed.
        let now = cx.recent();
        let average = self.state.average.update(self.lengths.total(), self.pulled, now);
        if self.settings.adapts {
            self.adapt(average, now);
        }
        let s = &self.state;
        let p = match self.probability(average) {
            Some(0.0) => {
                s.count.store(-1, Relaxed);
                return false;
            }
            Some(p) => p,
            None => {
                s.count.store(-1, Relaxed);
                s.drops.fetch_add(1, Relaxed);
                return true;
            }
        };
        let mut count = s.count.load(Relaxed).saturating_add(1);
        let refused = count as f64 * p > s.draw.get();
        if refused {
            count = 0;
            s.drops.fetch_add(1, Relaxed);
        }
        if count == 0 {
            s.draw.set(self.random.unit());
        }
        s.count.store(count, Relaxed);
        refused
    }
}

/// Implements `Element` and `Lifecycle` for a class by its field `early`.
macro_rules! early_element {
    ($class:ty) => {
        impl Element for $class {
            #[inline]
            fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
                policy::push(&mut self.early, batch, cx);
            }
            #[inline]
            fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
                policy::push_one(&mut self.early, p, cx);
            }
            #[inline]
            fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
                policy::pull(&mut self.early, max, into, cx);
            }
            #[inline]
            fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
                policy::pull_one(&mut self.early, cx)
            }
        }

        impl Lifecycle for $class {
            fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
                self.early.initialise(cx)
            }
            fn read(&mut self, handler: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, String> {
                Ok(self.early.read(handler, cx))
            }
            fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
                self.early.write(handler, value, cx)
            }
            fn effects(&self, declared: Effects) -> Effects {
                self.early.effects(declared)
            }
            fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), String> {
                self.early.take_over(&old.early);
                Ok(())
            }
        }
    };
}
pub(super) use early_element;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of RED and AdaptiveRED: random early detection. AdaptiveRED also adapts its probability.

use super::average::{Average, Moving, Real};
use super::lengths::{Growing, Lengths, Queues};
use super::policy::{self, Policy, check_probability};
use castanet_element::prelude::*;
use castanet_element::spec::Args;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

/// How often the probability is adapted, in nanoseconds (Floyd, Gummadi and Shenker 2001, figure 1).
const INTERVAL: i64 = 500_000_000;
/// The maximum number of intervals for which one call adapts the probability, if calls were missed. After this many
/// reductions, any probability has reached its minimum.
const MOST_INTERVALS: i64 = 100;

/// The state that all workers share.
pub(super) struct State {
    min: AtomicU32,
    max: AtomicU32,
    max_p: Real,
    average: Average,
    /// Packets since the last random drop; -1 while the policy drops either no packets or all packets.
    count: AtomicI64,
    /// The random number that decides which packet is dropped next.
    draw: Real,
    /// When the probability is adapted next; `i64::MIN` before the first packet. RED does not use it.
    adapt: AtomicI64,
    drops: SharedCount,
}

/// The arguments that select the queues to measure, and set how the length of these queues is averaged.
#[derive(Args, Clone)]
pub struct Averaging {
    /// The names of the queues whose lengths are added up; the nearest queues if not given.
    #[arg(keyword)]
    queues: Option<Queues>,
    /// How slowly the average changes, 0 to 32: a new length has the weight 2 to the power of -STABILITY; 0 for no
    /// averaging.
    #[arg(keyword, default = 4, max = MOST_STABILITY)]
    stability: u32,
}

/// The configuration of a RED or AdaptiveRED.
pub struct Settings {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) max_p: f64,
    pub(super) averaging: Averaging,
    pub(super) gentle: bool,
}

/// The arguments of RED or AdaptiveRED.
pub trait EarlyArgs: Args {
    /// Whether the probability is adapted.
    const ADAPTS: bool;
    /// Returns the settings that the arguments give, or an error.
    fn settings(&self) -> Result<Settings, ConfigError>;
}

/// The dropping policy of RED and AdaptiveRED, with its handlers.
#[derive(Counts)]
pub struct Early<A> {
    args: A,
    /// Packets dropped.
    #[count(unit = "packets")]
    drops: SharedCount,
    state: Arc<State>,
    lengths: Lengths,
    settings: Settings,
    pulled: bool,
    is_shared: bool,
    /// Whether the lengths that packets of a batch find are known.
    knows_queue: bool,
    random: Random,
}

/// How the probability of a drop depends on the average length.
struct Curve {
    min: f64,
    max: f64,
    max_p: f64,
    gentle: bool,
}

impl Curve {
    /// Returns the probability of a drop at an average length, before the correction that spaces drops evenly: 0 up to
    /// the first threshold and MAX_P at the second. If the policy is gentle, the probability rises further, to 1 at
    /// twice the second threshold. Returns `None` if all packets are dropped. This is so if the average is above the
    /// second threshold, or, for a gentle policy, above twice the second threshold.
    #[inline]
    fn probability(&self, average: f64) -> Option<f64> {
        let &Curve { min, max, max_p, gentle } = self;
        if average <= min {
            Some(0.0)
        } else if average <= max {
            Some(max_p * (average - min) / (max - min))
        } else if gentle && average <= 2.0 * max {
            Some(max_p + (1.0 - max_p) * (average - max) / max)
        } else {
            None
        }
    }
}

/// The state of decisions about packets that arrive together.
pub struct Run {
    now: i64,
    length: Growing,
    average: Moving,
    curve: Curve,
    /// Whether the next packet may adapt the probability.
    adapts: bool,
    count: i64,
    draw: f64,
    /// Whether `draw` is new.
    has_drawn: bool,
    drops: u64,
}

/// The greatest STABILITY. With a greater one, a new length would have almost no weight.
pub(super) const MOST_STABILITY: u32 = 32;

impl<A: EarlyArgs> Early<A> {
    /// The current curve of the probability.
    #[inline]
    fn curve(&self) -> Curve {
        let s = &self.state;
        Curve {
            min: s.min.load(Relaxed).into(),
            max: s.max.load(Relaxed).into(),
            max_p: s.max_p.get(),
            gentle: self.settings.gentle,
        }
    }

    /// Raises the probability if the average is above its target range, and lowers it if the average is
    /// below.
    fn adapt(&self, average: f64, now: i64) {
        let due = self.state.adapt.load(Relaxed);
        let behind = now.saturating_sub(due);
        if behind < 0 {
            return;
        }
        let first = due == i64::MIN;
        let next = now.saturating_add(if first { INTERVAL } else { INTERVAL - behind % INTERVAL });
        // If several workers call this function at once, only the one whose exchange succeeds adapts the probability.
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
}

#[handlers]
impl<A: EarlyArgs> Early<A> {
    /// The average length up to which no packet is dropped.
    #[read(unit = "packets")]
    fn min_thresh(&self) -> u32 {
        self.state.min.load(Relaxed)
    }
    // The handlers do not compare MIN_THRESH and MAX_THRESH. A user who changes both writes one after the other, so
    // MIN_THRESH may be above MAX_THRESH between the writes.
    #[write]
    fn set_min_thresh(&mut self, min: u32) {
        self.state.min.store(min, Relaxed);
    }
    /// The average length at which the probability is MAX_P.
    #[read(unit = "packets")]
    fn max_thresh(&self) -> u32 {
        self.state.max.load(Relaxed)
    }
    #[write]
    fn set_max_thresh(&mut self, max: u32) {
        self.state.max.store(max, Relaxed);
    }
    /// The probability at max_thresh.
    #[read]
    fn max_p(&self) -> f64 {
        self.state.max_p.get()
    }
    #[write]
    fn set_max_p(&mut self, max_p: f64) -> Result<(), HandlerError> {
        self.state.max_p.set(check_probability(max_p)?);
        Ok(())
    }
    /// The average length of the queues.
    #[read(unit = "packets")]
    fn avg_queue_size(&self) -> f64 {
        self.state.average.rounded()
    }
    /// The number of packets in the queues, the average of this number, and the number of drops, one on each line.
    #[read]
    fn stats(&self) -> Table {
        let (length, average) = (self.lengths.total(), self.avg_queue_size());
        Table(format!("{length} current queue\n{average} avg queue\n{} drops\n", self.drops.get()))
    }
    /// The queues whose lengths are added up, one on each line.
    #[read]
    fn queues(&self, cx: &mut Cx<'_>) -> Table {
        Table(self.lengths.names("\n", cx) + "\n")
    }
    /// The configuration string with the current settings.
    #[read]
    fn config(&self, cx: &mut Cx<'_>) -> String {
        let (min, max) = (self.min_thresh(), self.max_thresh());
        let limits = if A::ADAPTS {
            // TARGET is the mean of the thresholds, which are 0.5 and 1.5 times TARGET.
            (u64::from(min) + u64::from(max)).div_ceil(2).to_string()
        } else {
            format!("{min}, {max}")
        };
        let gentle = if self.settings.gentle { "" } else { ", GENTLE false" };
        let (p, queues) = (self.max_p(), self.lengths.argument(cx));
        format!("{limits}, {p}{queues}, STABILITY {}{gentle}", self.settings.averaging.stability)
    }
}

impl<A: EarlyArgs> Element for Early<A> {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        policy::push(self, batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        policy::push_one(self, p, cx);
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        policy::pull(self, max, into, cx);
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        policy::pull_one(self, cx)
    }
}

impl<A: EarlyArgs> Lifecycle for Early<A> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.lengths = Lengths::find(self.settings.averaging.queues.as_ref(), self.pulled, cx)?;
        // After live reconfiguration, the state is that of the old element, so overwrite the settings in it.
        let (s, settings) = (&self.state, &self.settings);
        s.min.store(settings.min, Relaxed);
        s.max.store(settings.max, Relaxed);
        s.max_p.set(settings.max_p);
        s.average.set_stability(settings.averaging.stability);
        Ok(())
    }
    fn effects(&self, declared: Effects) -> Effects {
        policy::effects(declared, self.pulled, self.knows_queue)
    }
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        let (new, old) = (&self.state, &old.state);
        new.average.take_over(&old.average);
        new.count.store(old.count.load(Relaxed), Relaxed);
        new.draw.set(old.draw.get());
        if A::ADAPTS {
            new.max_p.set(old.max_p.get());
            new.adapt.store(old.adapt.load(Relaxed), Relaxed);
        }
        Ok(())
    }
}

impl<A: EarlyArgs> Engine for Early<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let settings = args.settings()?;
        let max_p = check_probability(settings.max_p).map_err(|e| format!("MAX_P: {e}"))?;
        let state = cx.share(|| State {
            min: AtomicU32::new(settings.min),
            max: AtomicU32::new(settings.max),
            max_p: Real::new(max_p),
            average: Average::new(settings.averaging.stability),
            count: AtomicI64::new(-1),
            draw: Real::new(0.0),
            adapt: AtomicI64::new(i64::MIN),
            drops: SharedCount::default(),
        });
        // Each worker has its own random numbers. If all workers had the same numbers, they would drop packets at the
        // same moments.
        let random = cx.random_of_replica();
        let (lengths, pulled) = (Lengths::default(), !cx.is_push_input(0));
        let drops = state.drops.clone();
        let knows_queue = cx.knows_queue && settings.averaging.queues.is_none();
        let is_shared = cx.replica.1 > 1;
        Ok(Early { args, drops, state, lengths, settings, pulled, is_shared, knows_queue, random })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

impl<A: EarlyArgs> Policy for Early<A> {
    type Run = Run;
    #[inline]
    fn is_shared(&self) -> bool {
        self.is_shared
    }
    #[inline]
    fn begin(&self, cx: &mut Cx<'_>) -> Run {
        let s = &self.state;
        Run {
            // Time affects the average only in steps of 20 ms, so no exact time is needed.
            now: cx.recent(),
            length: self.lengths.growing(),
            average: s.average.load(),
            curve: self.curve(),
            adapts: A::ADAPTS,
            count: s.count.load(Relaxed),
            draw: s.draw.get(),
            has_drawn: false,
            drops: 0,
        }
    }
    /// Draws one random number for each drop, so that the gaps between drops are uniformly distributed (Floyd and
    /// Jacobson 1993, section 7 and figure 17).
    #[inline]
    fn refuses(&mut self, run: &mut Run, ahead: usize) -> bool {
        let average = run.average.update(run.length.after(ahead), self.pulled, run.now);
        if run.adapts {
            // The packets of a run arrive at one time, so only the first one can find that the interval has passed.
            run.adapts = false;
            self.adapt(average, run.now);
            run.curve = self.curve();
        }
        let p = match run.curve.probability(average) {
            Some(0.0) => {
                run.count = -1;
                return false;
            }
            Some(p) => p,
            None => {
                run.count = -1;
                run.drops += 1;
                return true;
            }
        };
        run.count = run.count.saturating_add(1);
        let refused = run.count as f64 * p > run.draw;
        if refused {
            run.count = 0;
            run.drops += 1;
        }
        if run.count == 0 {
            (run.draw, run.has_drawn) = (self.random.unit(), true);
        }
        refused
    }
    #[inline]
    fn end(&self, run: Run) {
        let s = &self.state;
        s.average.store(&run.average);
        s.count.store(run.count, Relaxed);
        if run.has_drawn {
            s.draw.set(run.draw);
        }
        if run.drops > 0 {
            self.drops.add(run.drops);
        }
    }
}

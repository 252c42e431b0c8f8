// SPDX-License-Identifier: MIT OR Apache-2.0
//! PI: a controller that keeps a queue near a given length.

use super::average::{Average, Moving, Real};
use super::early::MOST_STABILITY;
use super::lengths::{Growing, Lengths, Queues};
use super::policy::{self, Policy};
use castanet_element::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Drops packets with a probability set by a proportional-integral controller (Hollot et al. 2001).
///
/// The controller is that of Hollot, Misra, Towsley and Gong. The excess is the average length of queues minus TARGET,
/// or minus QREF if that is given. The controller runs W times a second. Each time it multiplies the excess by A and
/// adds the product to the probability. Then it multiplies the previous excess by B and subtracts that product from the
/// probability. So the probability is steady only while there is no excess. Packets are dropped independently of each
/// other. The paper gives 160 for W, 1.822e-5 for A and 1.816e-5 for B, for 60 flows over a link of 3750 packets a
/// second, and 200 for TARGET.
///
/// The length and its average are computed as in `RED`. With STABILITY 0 the length itself is used, as in the
/// paper. While the queues are empty and the probability is 0, the controller does not run.
///
/// # Ports
/// Input 0: packets. Output 0: packets that are not dropped. Output 1 (push, optional): dropped packets.
///
/// # Example
/// ```click
/// RatedSource(RATE 1000, LIMIT 900, STOP true) -> PI(160, 0.001, 0.0009, 20) -> Queue -> RatedUnqueue(500) -> Discard;
/// ```
#[derive(Class)]
#[class(name = "PI", ports = "1/1-2", processing = "a/ah", packets = "any/same", workers = share, effects(looks))]
#[class(
    reconfigure = keeps,
    build,
    lifecycle,
    handlers,
    drops(EarlyDrop),
    takes_state = "the average length, the probability, the drops"
)]
pub struct Pi {
    args: Args,
    /// Packets dropped.
    #[count(unit = "packets")]
    drops: SharedCount,
    controller: Controller,
}

/// Arguments of PI.
#[derive(Args)]
pub struct Args {
    /// How many times a second the controller runs, at most 10,000.
    w: f64,
    /// The increase of the drop probability for each packet of excess. The excess is the average length minus the
    /// target.
    a: f64,
    /// The coefficient b: how much each packet above TARGET at the previous run of the controller lowers the probability.
    b: f64,
    /// The average length to aim for, in packets, unless QREF is given.
    target: u32,
    /// The names of the queues whose lengths are added up; the nearest queues if not given.
    queues: Option<Queues>,
    /// The reference length of the controller, in packets: the average length to aim for, instead of TARGET.
    #[arg(keyword, show = "TARGET")]
    qref: Option<u32>,
    /// How slowly the average changes, 0 to 32: a new length has the weight 2 to the power of -STABILITY; 0 for no
    /// averaging.
    #[arg(keyword, default = 4, max = MOST_STABILITY)]
    stability: u32,
}

/// The state that all workers share.
struct State {
    w: Real,
    a: Real,
    b: Real,
    average: Average,
    /// The excess (average length minus target) when the controller last ran.
    before: Real,
    probability: Real,
    /// True while the timer is off.
    resting: AtomicBool,
    drops: SharedCount,
}

/// The dropping policy of a PI.
struct Controller {
    state: Arc<State>,
    lengths: Lengths,
    target: f64,
    pulled: bool,
    is_shared: bool,
    /// Whether the lengths that packets of a batch find are known.
    knows_queue: bool,
    random: Random,
}

/// The state of decisions about packets that arrive together.
struct Run {
    now: i64,
    length: Growing,
    average: Moving,
    probability: f64,
    drops: u64,
}

fn check_frequency(w: f64) -> Result<f64, ValueError> {
    if w > 0.0 && w <= 10_000.0 { Ok(w) } else { Err("must be above 0 and at most 10000".into()) }
}

impl Build for Pi {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let w = check_frequency(args.w).map_err(|e| format!("W: {e}"))?;
        let aim = args.qref.unwrap_or(args.target);
        if aim != args.target {
            let text = format!("QREF: {aim} is used instead of TARGET, {}", args.target);
            cx.warn(
                ArgError::warning(text, 0..usize::MAX).help("give the same length twice, or TARGET only"),
            );
        }
        let target = f64::from(aim);
        let state = cx.share(|| State {
            w: Real::new(w),
            a: Real::new(args.a),
            b: Real::new(args.b),
            average: Average::new(args.stability),
            before: Real::new(-target),
            probability: Real::new(0.0),
            resting: AtomicBool::new(true),
            drops: SharedCount::default(),
        });
        // Each worker has its own random numbers. If all workers had the same numbers, they would drop packets at the
        // same moments.
        let random = cx.random_of_replica();
        let pulled = !cx.is_push_input(0);
        let knows_queue = cx.knows_queue && args.queues.is_none();
        let drops = state.drops.clone();
        Ok(Pi {
            args,
            drops,
            controller: Controller {
                state,
                lengths: Lengths::default(),
                target,
                pulled,
                is_shared: cx.replica.1 > 1,
                knows_queue,
                random,
            },
        })
    }
}

impl Controller {
    /// Sets the timer to the next time at which the controller is to run.
    fn rearm(&self, now: i64, cx: &mut Cx<'_>) {
        let period = (1e9 / self.state.w.get()).round() as i64;
        cx.set_timer(0, now.saturating_add(period));
    }

    fn look(&self, now: i64, cx: &mut Cx<'_>) {
        let (s, length) = (&self.state, self.lengths.total());
        let excess = s.average.update(length, self.pulled, now) - self.target;
        let p = s.probability.get() + s.a.get() * excess - s.b.get() * s.before.get();
        // Keep the value between 0 and 1, because it is a probability. Without the limit, it could go far beyond this
        // range, and would take long to return.
        let p = if p > 0.0 { p.min(1.0) } else { 0.0 };
        s.probability.set(p);
        s.before.set(excess);
        if length == 0 && p == 0.0 {
            s.resting.store(true, Relaxed);
        } else {
            self.rearm(now, cx);
        }
    }
}

impl Policy for Controller {
    type Run = Run;
    #[inline]
    fn is_shared(&self) -> bool {
        self.is_shared
    }
    #[inline]
    fn begin(&self, cx: &mut Cx<'_>) -> Run {
        let (s, now) = (&self.state, cx.recent());
        if s.resting.load(Relaxed) && s.resting.swap(false, Relaxed) {
            self.rearm(now, cx);
        }
        let (length, average) = (self.lengths.growing(), s.average.load());
        Run { now, length, average, probability: s.probability.get(), drops: 0 }
    }
    #[inline]
    fn refuses(&mut self, run: &mut Run, ahead: usize) -> bool {
        run.average.update(run.length.after(ahead), self.pulled, run.now);
        let refused = run.probability > 0.0 && self.random.unit() < run.probability;
        run.drops += u64::from(refused);
        refused
    }
    #[inline]
    fn end(&self, run: Run) {
        self.state.average.store(&run.average);
        if run.drops > 0 {
            self.state.drops.add(run.drops);
        }
    }
}

impl Element for Pi {
    #[inline]
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        policy::push(&mut self.controller, batch, cx);
    }
    #[inline]
    fn push_one(&mut self, _: usize, p: Packet, cx: &mut Cx<'_>) {
        policy::push_one(&mut self.controller, p, cx);
    }
    #[inline]
    fn pull(&mut self, _: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        policy::pull(&mut self.controller, max, into, cx);
    }
    #[inline]
    fn pull_one(&mut self, _: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        policy::pull_one(&mut self.controller, cx)
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        let now = cx.peek();
        self.controller.look(now, cx);
    }
}

#[handlers]
impl Pi {
    /// How many times a second the controller runs.
    #[read]
    fn w(&self) -> f64 {
        self.controller.state.w.get()
    }
    #[write]
    fn set_w(&mut self, w: f64) -> Result<(), HandlerError> {
        self.controller.state.w.set(check_frequency(w)?);
        Ok(())
    }
    /// The increase of the drop probability for each packet of excess. The excess is the average length minus the
    /// target.
    #[read]
    fn a(&self) -> f64 {
        self.controller.state.a.get()
    }
    #[write]
    fn set_a(&mut self, a: f64) {
        self.controller.state.a.set(a);
    }
    /// The coefficient b: how much each packet above TARGET at the previous run of the controller lowers the probability.
    #[read]
    fn b(&self) -> f64 {
        self.controller.state.b.get()
    }
    #[write]
    fn set_b(&mut self, b: f64) {
        self.controller.state.b.set(b);
    }
    /// The average length of the queues.
    #[read(unit = "packets")]
    fn avg_queue_size(&self) -> f64 {
        self.controller.state.average.rounded()
    }
    /// The number of packets in the queues, the average of this number, and the number of drops, one on each line.
    #[read]
    fn stats(&self) -> Table {
        let (length, average) = (self.controller.lengths.total(), self.avg_queue_size());
        Table(format!("{length} current queue\n{average} avg queue\n{} drops\n", self.drops.get()))
    }
    /// The queues whose lengths are added up, one on each line.
    #[read]
    fn queues(&self, cx: &mut Cx<'_>) -> Table {
        Table(self.controller.lengths.names("\n", cx) + "\n")
    }
    /// The configuration string with the current settings.
    #[read]
    fn config(&self, cx: &mut Cx<'_>) -> String {
        let queues = self.controller.lengths.argument(cx);
        let Args { target, qref, stability, .. } = &self.args;
        let qref = qref.map_or(String::new(), |n| format!(", QREF {n}"));
        let [w, a, b] = [self.w(), self.a(), self.b()];
        format!("{w}, {a}, {b}, {target}{queues}{qref}, STABILITY {stability}")
    }
}

impl Lifecycle for Pi {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        let c = &mut self.controller;
        c.lengths = Lengths::find(self.args.queues.as_ref(), c.pulled, cx)?;
        // After live reconfiguration, the state is that of the old element, so overwrite the settings in it.
        let Args { w, a, b, stability, .. } = &self.args;
        c.state.w.set(*w);
        c.state.a.set(*a);
        c.state.b.set(*b);
        c.state.average.set_stability(*stability);
        Ok(())
    }
    fn effects(&self, declared: Effects) -> Effects {
        policy::effects(declared, self.controller.pulled, self.controller.knows_queue)
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        let (new, old) = (&self.controller.state, &old.controller.state);
        new.average.take_over(&old.average);
        new.before.set(old.before.get());
        new.probability.set(old.probability.get());
        if !old.resting.load(Relaxed) && new.resting.swap(false, Relaxed) {
            let now = cx.now();
            self.controller.rearm(now, cx);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use castanet_element::kit::{Kit, packet};

    const MS: i64 = 1_000_000;

    fn probability(kit: &Kit<Pi>) -> f64 {
        kit.element.controller.state.probability.get()
    }

    #[test]
    fn the_controller_is_that_of_the_paper() {
        // Hollot et al. 2001, section III-C: p(kT) = a (q(kT) - ref) - b (q((k-1)T) - ref) + p((k-1)T).
        let (a, b, reference) = (1.822e-3, 1.816e-3, 200.0);
        let mut kit = Kit::<Pi>::new("100, 1.822e-3, 1.816e-3, 200, STABILITY 0").unwrap();
        let (mut random, mut p, mut before, mut most) = (Random::new(6, "pi"), 0.0_f64, -reference, 0.0_f64);
        kit.gauge(1).set(1);
        kit.push(0, [packet(b"x")]);
        for k in 1..2000 {
            let length = 1 + random.below(if k % 500 < 250 { 600 } else { 200 }) as usize;
            kit.gauge(1).set(length);
            assert_eq!(kit.next_timer(), Some(k * 10 * MS));
            kit.expire().unwrap();
            let excess = length as f64 - reference;
            p = (a * excess - b * before + p).clamp(0.0, 1.0);
            before = excess;
            assert!((probability(&kit) - p).abs() < 1e-12);
            most = most.max(p);
        }
        assert!(most > 0.5, "{most}");
    }

    #[test]
    fn drops_with_the_probability() {
        for n in [1, 2, 3, 32] {
            let mut kit = Kit::<Pi>::with_ports("160, 0.001, 0.001, 0", 1, 2).unwrap();
            for p in [0.0, 0.1, 0.75, 1.0] {
                kit.element.controller.state.probability.set(p);
                let all: usize = 32_000 / n * n;
                let mut dropped = 0;
                for _ in 0..all / n {
                    dropped += kit.push(0, (0..n).map(|_| packet(b"x"))).iter().filter(|o| o.0 == 1).count();
                }
                let (want, deviation) = (p * all as f64, (all as f64 * p * (1.0 - p)).sqrt());
                assert!((dropped as f64 - want).abs() <= 4.0 * deviation, "{dropped} at {p}");
            }
        }
    }

    #[test]
    fn rests_while_there_is_nothing_to_do() {
        let mut kit = Kit::<Pi>::new("100, 0.01, 0.009, 10").unwrap();
        assert_eq!(kit.next_timer(), None);
        kit.gauge(1).set(50);
        kit.push(0, [packet(b"x")]);
        kit.expire().unwrap();
        kit.gauge(1).set(0);
        let mut looks = 0;
        while kit.expire().is_some() {
            looks += 1;
        }
        assert!((1..1000).contains(&looks) && probability(&kit) == 0.0, "{looks}");
        kit.push(0, [packet(b"x"), packet(b"y")]);
        assert!(kit.next_timer().is_some());
    }

    #[test]
    fn the_reference_length_replaces_the_target() {
        for (config, target, warnings) in [
            ("1, 2, 3, 20, QREF 30", 30.0, &["QREF: 30 is used instead of TARGET, 20"][..]),
            ("1, 2, 3, 20, QREF 20", 20.0, &[]),
            ("1, 2, 3, 20", 20.0, &[]),
        ] {
            let mut kit = Kit::<Pi>::new(config).unwrap();
            assert_eq!(kit.element.controller.target, target, "{config}");
            assert_eq!(kit.warnings(), warnings, "{config}");
            assert_eq!(kit.read("config").unwrap().contains("QREF"), config.contains("QREF"));
        }
        assert_eq!(Kit::<Pi>::new("1, 2, 3, QREF 20").err().unwrap(), ["TARGET: required argument missing"]);
    }

    #[test]
    fn handlers_and_errors() {
        let mut names = Names::new();
        names.define_element("e", 0, "PI");
        names.define_element("q", 1, "Queue");
        let mut kit = Kit::<Pi>::with_names("160, 0.25, 0.5, 20, QUEUES q", 1, 1, names).unwrap();
        kit.write("w", "10").unwrap();
        kit.write("a", "1e-3").unwrap();
        kit.write("b", "0.125").unwrap();
        let values = ["w", "a", "b", "drops", "avg_queue_size"].map(|h| kit.read(h).unwrap());
        assert_eq!(values, ["10", "0.001", "0.125", "0", "0"]);
        // The kit defines no element names, so QUEUES is left out.
        assert_eq!(kit.read("config").unwrap(), "10, 0.001, 0.125, 20, STABILITY 4");
        kit.gauge(1).set(8);
        assert_eq!(kit.read("stats").unwrap(), "8 current queue\n0 avg queue\n0 drops\n");
        assert!(kit.write("w", "0").is_err() && kit.write("a", "x").is_err());
        for (config, error) in [
            ("1, 2, 3", "TARGET: required argument missing"),
            ("0, 2, 3, 4", "W: must be above 0 and at most 10000"),
            ("1, 2, 3, 4, STABILITY 40", "STABILITY: must be at most 32"),
        ] {
            assert_eq!(Kit::<Pi>::new(config).err().unwrap(), [error]);
        }
        let mut new = Kit::<Pi>::new("1, 1, 1, 1").unwrap();
        kit.element.controller.state.probability.set(0.5);
        new.take_state_of(&mut kit).unwrap();
        assert_eq!(probability(&new), 0.5);
    }
}

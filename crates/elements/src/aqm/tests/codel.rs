// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares CoDel with the pseudo-code of RFC 8289.
#![allow(clippy::unwrap_used)]
use super::*;
use castanet_element::kit::{Kit, packet};
use castanet_element::run_loop::{Core, Internals as _, Router};
use std::collections::VecDeque;

const START: i64 = 1_000_000_000_000;
const MS: i64 = 1_000_000;
const INTERVAL: i64 = 100 * MS;

/// The pseudo-code of RFC 8289 section 5. The queue holds the name and the timestamp of each packet. Lengths are in
/// packets, not bytes.
#[derive(Default)]
struct Rfc {
    queue: VecDeque<(u32, i64)>,
    target: i64,
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<u32>,
}

impl Rfc {
    fn control_law(t: i64, count: u32) -> i64 {
        t + (INTERVAL as f64 / f64::from(count).sqrt()) as i64
    }
    fn dodequeue(&mut self, now: i64) -> (Option<(u32, i64)>, bool) {
        let mut ok_to_drop = false;
        let p = self.queue.pop_front();
        match p {
            None => self.first_above_time = 0,
            Some((_, stamp)) => {
                let sojourn_time = now - stamp;
                if sojourn_time < self.target || self.queue.len() <= 1 {
                    self.first_above_time = 0;
                } else if self.first_above_time == 0 {
                    self.first_above_time = now + INTERVAL;
                } else if now >= self.first_above_time {
                    ok_to_drop = true;
                }
            }
        }
        (p, ok_to_drop)
    }
    fn dequeue(&mut self, now: i64) -> Option<u32> {
        let mut r = self.dodequeue(now);
        let delta = self.count.wrapping_sub(self.lastcount);
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(r.0.map(|p| p.0));
                self.count += 1;
                r = self.dodequeue(now);
                if !r.1 {
                    self.dropping = false;
                } else {
                    self.drop_next = Rfc::control_law(self.drop_next, self.count);
                }
            }
        } else if r.1 {
            self.dropped.extend(r.0.map(|p| p.0));
            r = self.dodequeue(now);
            self.dropping = true;
            self.count = if delta > 1 && now - self.drop_next < 16 * INTERVAL { delta } else { 1 };
            self.drop_next = Rfc::control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0.map(|p| p.0)
    }
}

/// The queue before the element under test.
struct Before {
    queue: VecDeque<Packet>,
    gauge: Gauge,
}

impl Router for Before {
    fn pull(&mut self, core: &mut Core, me: u32, input: usize, max: usize, into: &mut Batch) {
        (0..max).for_each(|_| into.extend(self.pull_one(core, me, input)));
    }
    fn pull_one(&mut self, _: &mut Core, _: u32, _: usize) -> Option<Packet> {
        let p = self.queue.pop_front();
        self.gauge.set(self.queue.len());
        p
    }
    fn read(&mut self, _: &mut Core, _: Option<u32>, _: &str, _: &str) -> Result<String, CallError> {
        Ok(String::new())
    }
    fn write(&mut self, _: &mut Core, _: Option<u32>, _: &str, _: &str) -> Result<(), CallError> {
        Ok(())
    }
    fn has(&self, _: &Core, _: Option<u32>, _: &str) -> (bool, bool) {
        (false, false)
    }
}

/// An element and its queue.
struct Bench {
    kit: Kit<CoDel>,
    before: Before,
}

impl Bench {
    fn new(config: &str) -> Bench {
        let kit = Kit::<CoDel>::new(config).unwrap();
        let gauge = kit.gauge(2);
        Bench { kit, before: Before { queue: VecDeque::new(), gauge } }
    }
    fn supply(&mut self, name: u32, stamp: i64) {
        let mut p = packet(&name.to_be_bytes());
        p.set_timestamp(stamp);
        self.before.queue.push_back(p);
        self.before.gauge.set(self.before.queue.len());
    }
    /// Returns the names of the packets that a pull of at most `max` gives.
    fn pull(&mut self, max: usize) -> Vec<u32> {
        let Bench { kit, before } = self;
        let mut batch = Batch::new();
        kit.with(|e, cx| {
            let mut cx = Cx::new(&mut [], cx.core(), Some(before), 0, 0);
            e.pull(0, max, &mut batch, &mut cx);
        });
        batch.iter().map(|p| u32::from_be_bytes(p.data().try_into().unwrap())).collect()
    }
}

#[test]
fn decides_like_the_pseudo_code_at_any_batch() {
    let (mut dropped, mut passed, mut empty) = (0, 0, 0);
    for seed in 0..40 {
        for batch in [1, 2, 3, 32] {
            let mut random = Random::new(seed, "codel");
            let mut bench = Bench::new("5ms, 100ms");
            let mut rfc = Rfc { target: 5 * MS, ..Rfc::default() };
            let (mut now, mut next) = (1, 0);
            for round in 0..3000 {
                now += random.below(4 * MS as u64) as i64;
                bench.kit.at(now);
                // In some phases, more packets arrive than leave. In the phases between them, fewer arrive.
                for _ in 0..random.below(if (round / 400) % 2 == 0 { 4 } else { 1 + seed % 3 }) {
                    let stamp = START + now - random.below(3) as i64;
                    rfc.queue.push_back((next, stamp));
                    bench.supply(next, stamp);
                    next += 1;
                }
                let pulls = if round % batch == 0 { batch } else { 0 };
                let mut want = Vec::new();
                for _ in 0..pulls {
                    // A pull of several packets stops at the first `dequeue` that gives no packet.
                    match rfc.dequeue(START + now) {
                        Some(p) => want.push(p),
                        None => break,
                    }
                }
                assert_eq!(bench.pull(pulls), want, "seed {seed}, batch {batch}, round {round}");
                passed += want.len();
                empty += usize::from(want.len() < pulls);
            }
            assert_eq!(bench.kit.read("drops").unwrap(), rfc.dropped.len().to_string());
            assert_eq!(bench.kit.dropped(Reason::EarlyDrop), rfc.dropped.len() as u64);
            dropped += rfc.dropped.len();
        }
    }
    assert!(dropped > 10_000 && passed > 100_000 && empty > 1000, "{dropped} {passed} {empty}");
}

#[test]
fn packets_without_time_and_the_last_ones_are_kept() {
    let mut bench = Bench::new("1ns, 1ns");
    (0..50).for_each(|i| bench.supply(i, 0));
    for i in 0..50 {
        bench.kit.at(i64::from(i) * 1000 * MS);
        assert_eq!(bench.pull(1), [i]);
    }
    // With a tiny interval, the first pull notes that the wait is too long, the second begins to drop, and
    // the third drops all packets but the last two.
    (0..50).for_each(|i| bench.supply(i, START));
    let got: Vec<_> = (1..9)
        .flat_map(|i| {
            bench.kit.at((100 + i) * 1000 * MS);
            bench.pull(1)
        })
        .collect();
    assert_eq!(got, [0, 2, 48, 49]);
    assert_eq!(bench.kit.read("drops").unwrap(), "46");
}

#[test]
fn handlers_and_errors() {
    let mut kit = Kit::<CoDel>::new("").unwrap();
    let values = ["codel_target", "codel_interval", "drops", "stats"].map(|h| kit.read(h).unwrap());
    assert_eq!(values, ["0.005000s", "0.100000s", "0", "0 current queue\n0 drops\n"]);
    // Even without a queue, the value of the handler `config` is a valid configuration string.
    let config = kit.read("config").unwrap();
    assert_eq!(config, "0.005, 0.1");
    assert!(Kit::<CoDel>::new(&config).is_ok());
    kit.write("codel_target", "20ms").unwrap();
    kit.write("codel_interval", "1").unwrap();
    assert_eq!(
        [kit.read("codel_target").unwrap(), kit.read("codel_interval").unwrap()],
        ["0.020000s", "1.000000s"]
    );
    for (handler, value) in [("codel_target", "-1"), ("codel_interval", "0"), ("codel_interval", "x")] {
        assert!(kit.write(handler, value).is_err());
    }
    assert_eq!(Kit::<CoDel>::new("-1ms").err().unwrap(), ["TARGET: must not be negative"]);
    assert_eq!(Kit::<CoDel>::new("1ms, 0").err().unwrap(), ["INTERVAL: must be positive"]);
}

#[test]
fn hot_swap_goes_on_dropping() {
    let mut old = Bench::new("0, 100ms");
    (0..500).for_each(|i| old.supply(i, START));
    for i in 1..100 {
        old.kit.at(i * 10 * MS);
        old.pull(1);
    }
    let mut new = Kit::<CoDel>::new("0, 100ms").unwrap();
    let drops = old.kit.read("drops").unwrap();
    new.take_state_of(&mut old.kit).unwrap();
    assert_eq!((new.read("drops").unwrap(), old.kit.read("drops").unwrap()), (drops, "0".into()));
    assert!(new.element.law.dropping && new.element.law.count > 3);
}

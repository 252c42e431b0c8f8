// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC, compared with the formulas of RFC 9438 in floating-point numbers.

use super::network::End;
use super::recovery::data_of;
use super::states::{ISS, happen};
use super::{named, tcp};
use castanet_prolac::program::Program;
use std::collections::{BTreeMap, VecDeque};

/// RFC 9438, section 4.2: windows are segments, times are seconds.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

#[derive(Default)]
struct Model {
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    prior: f64,
    epoch: Option<Epoch>,
    /// Acknowledgements in each of the regions: slow start, Reno-friendly, concave, convex.
    regions: [usize; 4],
}

struct Epoch {
    k: f64,
    w_est: f64,
    t: f64,
    counted: f64,
}

impl Model {
    fn w_cubic(&self, t: f64, k: f64) -> f64 {
        C * (t - k).powi(3) + self.w_max
    }

    fn loss(&mut self, in_flight: f64, window: f64) {
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        (self.prior, self.epoch) = (window, None);
        self.ssthresh = (in_flight * BETA).max(2.0);
        self.cwnd = self.ssthresh;
    }

    fn timeout(&mut self, in_flight: f64, window: f64) {
        self.loss(in_flight, window);
        (self.cwnd, self.w_max) = (1.0, 0.0);
    }

    /// After a long silence the window is the initial one again (RFC 5681, section 4.1).
    fn idle_ends(&mut self, now: f64, long: bool) {
        self.epoch.iter_mut().for_each(|e| e.counted = now);
        if long && self.cwnd > 4.0 {
            (self.cwnd, self.epoch) = (4.0, None);
        }
    }

    fn acknowledged(&mut self, now: f64, rtt: f64, acked: f64, limited: bool) {
        if self.cwnd < self.ssthresh {
            self.cwnd += acked.min(1.0);
            self.regions[0] += 1;
            return;
        }
        if self.epoch.is_none() {
            self.w_max = self.w_max.max(self.cwnd);
            let k = ((self.w_max - self.cwnd) / C).cbrt();
            self.epoch = Some(Epoch { k, w_est: self.cwnd, t: 0.0, counted: now });
        }
        let (cwnd, prior) = (self.cwnd, self.prior);
        let e = self.epoch.as_mut().unwrap();
        e.t += if limited { now - e.counted } else { 0.0 };
        e.counted = now;
        if !limited {
            return;
        }
        let alpha = if e.w_est >= prior { 1.0 } else { 3.0 * (1.0 - BETA) / (1.0 + BETA) };
        e.w_est += alpha * acked / cwnd;
        let (t, k, w_est) = (e.t, e.k, e.w_est);
        if self.w_cubic(t, k) < w_est {
            self.cwnd = cwnd.max(w_est);
            self.regions[1] += 1;
        } else {
            let target = self.w_cubic(t + rtt, k).clamp(cwnd, 1.5 * cwnd);
            self.cwnd += (target - cwnd) * acked / cwnd;
            self.regions[if t < k { 2 } else { 3 }] += 1;
        }
    }
}

/// A TCP whose segments reach a receiver after half a round trip. Numbers count from the SYN.
struct Flow<'a> {
    end: End<'a>,
    model: Model,
    mss: f64,
    /// Milliseconds.
    now: u64,
    rtt: u64,
    last_sent: u64,
    /// When the answers to segments come: the first number of a segment, and the one after it.
    answers: VecDeque<(u64, u32, u32)>,
    early: BTreeMap<u32, u32>,
    acked: u32,
    lose: usize,
    /// How often the window was compared with the cubic function.
    checked: usize,
}

impl<'a> Flow<'a> {
    fn new(program: &'a Program, mss: u32, rtt: u64) -> Flow<'a> {
        let mut end = End::new(program, ISS, [1000, 80], Vec::new());
        // The clock wraps after some seconds.
        let now = 0xffff_ffff_u64 - 9_000;
        end.data.borrow_mut().clock = now;
        for event in ["listen", &format!("SYN 0 ws8 mss{mss}"), "ACK 1 1 w65535"] {
            happen(&mut end, event);
        }
        let cwnd = f64::from(end.field("cwnd")) / f64::from(mss);
        let model = Model { cwnd, ssthresh: f64::INFINITY, ..Model::default() };
        let mss = f64::from(mss);
        let (answers, early) = (VecDeque::new(), BTreeMap::new());
        Flow { end, model, mss, now, rtt, last_sent: now, answers, early, acked: 1, lose: 0, checked: 0 }
    }

    fn seconds(&self) -> f64 {
        self.now as f64 / 1000.0
    }

    fn segments(&mut self, field: &str) -> f64 {
        f64::from(self.end.field(field)) / self.mss
    }

    fn in_flight(&mut self) -> f64 {
        f64::from(self.end.field("snd_max").wrapping_sub(self.end.field("snd_una"))) / self.mss
    }

    /// Looks at what was sent.
    fn sent(&mut self) {
        let mut d = self.end.data.borrow_mut();
        d.trace.clear();
        for segment in std::mem::take(&mut d.out) {
            let (left, n) = data_of(&segment);
            let left = left.wrapping_sub(ISS);
            if n > 0 {
                self.last_sent = self.now;
            }
            if n > 0 && self.lose == 0 {
                self.answers.push_back((self.now + self.rtt, left, left + n));
            }
            self.lose = self.lose.saturating_sub(usize::from(n > 0));
        }
    }

    /// The user writes.
    fn write(&mut self, segments: usize) {
        if self.in_flight() == 0.0 {
            self.model.idle_ends(self.seconds(), self.now - self.last_sent > 3_000);
        }
        let length = self.end.data.borrow().send.len() + segments * self.mss as usize;
        self.end.data.borrow_mut().send.resize(length, 7);
        self.end.tcp("output");
        self.sent();
    }

    /// A segment arrives, and its acknowledgement.
    fn answer(&mut self, left: u32, right: u32) {
        self.early.insert(left, right);
        let before = self.acked;
        while let Some(right) = self.early.remove(&self.acked) {
            self.acked = right;
        }
        self.early.retain(|left, _| *left > self.acked);
        let recovering = self.end.field("recovering") != 0;
        let (in_flight, window) = (self.in_flight(), self.segments("cwnd"));
        let acked = f64::from(self.acked - before) / self.mss;
        if acked > 0.0 && !recovering {
            let limited = in_flight + 1.0 > window;
            self.model.acknowledged(self.seconds(), self.rtt as f64 / 1000.0, acked, limited);
        }
        happen(&mut self.end, &format!("ACK 1 {} w65535", self.acked));
        if !recovering && self.end.field("recovering") != 0 {
            // What limited transmit has sent does not count.
            self.model.loss(in_flight.min(window), window);
        }
        self.sent();
        if self.end.field("recovering") == 0 {
            self.check();
        }
    }

    fn check(&mut self) {
        let (is, want) = (self.segments("cwnd"), self.model.cwnd);
        assert!((is - want).abs() < 0.2 + want * 0.004, "{is} instead of {want} at {}", self.now);
        // The cubic function itself, but that the window is up to a round trip behind it.
        if let Some(e) = self.model.epoch.as_ref().filter(|e| e.t > 0.0) {
            let rtt = self.rtt as f64 / 1000.0;
            let [before, w, later] = [-1.0, 0.0, 2.0].map(|n| self.model.w_cubic(e.t + n * rtt, e.k));
            if w > e.w_est && later < 1.4 * is {
                self.checked += 1;
                assert!(is > before * 0.98 - 1.0 && is < later * 1.02 + 1.0, "{before} < {is} < {later}");
            }
        }
    }

    /// Runs for a time, and keeps this many segments to be sent, if any.
    fn run(&mut self, milliseconds: u64, backlog: usize) {
        let end = self.now + milliseconds;
        while self.now < end {
            self.now += 1;
            self.end.data.borrow_mut().clock = self.now;
            while self.answers.front().is_some_and(|a| a.0 <= self.now) {
                let (_, left, right) = self.answers.pop_front().unwrap();
                self.answer(left, right);
            }
            let queued = self.end.data.borrow().send.len() as f64 / self.mss;
            let unsent = queued - self.in_flight();
            if unsent < backlog as f64 {
                self.write(backlog);
            }
            if self.now.is_multiple_of(500) {
                let (in_flight, window) = (self.in_flight(), self.segments("cwnd"));
                let waiting = self.end.field("snd_next") == self.end.field("snd_max");
                self.end.tcp("slow-timeout");
                if waiting && window > 1.0 && self.segments("cwnd") == 1.0 {
                    self.model.timeout(in_flight, window);
                }
                self.sent();
            }
        }
    }
}

fn program() -> Program {
    tcp(&named(&["Slow-Start", "Fast-Retransmit", "Window-Scale", "Cubic"]))
}

/// Losses at a large window: concave and convex regions, and fast convergence.
#[test]
fn the_window_follows_the_cubic_function() {
    let program = program();
    for (mss, rtt) in [(536, 300), (1460, 230)] {
        let mut f = Flow::new(&program, mss, rtt);
        f.run(3 * rtt + rtt / 2, 400);
        f.lose = 1;
        f.run(7_000, 400);
        // The second loss comes below the window of the one before, if that was not passed.
        f.lose = 1;
        f.run(1_500, 400);
        let between = f.segments("cwnd");
        f.lose = 1;
        f.run(3_000, 400);
        assert!(f.model.w_max < between, "fast convergence");
        println!("{mss} {rtt}: {:?} {}", f.model.regions, f.checked);
        assert!(
            f.model.regions[2] > 500 && f.model.regions[3] > 200 && f.checked > 1_000,
            "{:?}",
            f.model.regions
        );
    }
}

/// At short round trips Reno is faster, and gets what it would have (section 4.3).
#[test]
fn the_window_is_at_least_that_of_reno() {
    let program = program();
    let mut f = Flow::new(&program, 1460, 8);
    f.run(20, 100);
    for _ in 0..2 {
        f.lose = 1;
        f.run(500, 100);
    }
    println!("{:?}", f.model.regions);
    assert!(f.model.regions[1] > 1_000, "{:?}", f.model.regions);
    // The round-trip time is smoothed.
    assert_eq!(f.end.field("round-trip") >> 3, 8);
    f.rtt = 20;
    f.run(120, 100);
    assert!((10..19).contains(&(f.end.field("round-trip") >> 3)));
    f.run(1_500, 100);
    assert!((19..21).contains(&(f.end.field("round-trip") >> 3)));
}

/// Section 4.8: after a timeout, slow start, then the function from its flat place on. The window grows by half in a round trip at
/// most (section 4.2).
#[test]
fn after_a_timeout_the_function_begins_anew() {
    let program = program();
    for (rtt, start) in [(300, 1_100), (900, 950)] {
        let mut f = Flow::new(&program, 536, rtt);
        f.run(start, 300);
        f.lose = usize::MAX;
        f.run(4_000, 300);
        f.lose = 0;
        f.run(13_000, 300);
        println!("{:?} {}", f.model.regions, f.checked);
        let epoch = f.model.epoch.as_ref().unwrap();
        assert_eq!(epoch.k, 0.0);
        assert!(f.model.regions[3] > 50, "{:?}", f.model.regions);
        // However long a time is, nothing overflows.
        let longest = f.end.ask("Cubic.TCB", "w-cubic", &[u32::MAX]);
        assert!((f64::from(longest) / f.mss / (C * 150f64.powi(3)) - 1.0).abs() < 0.01, "{longest}");
        // The next connection begins anew.
        f.end.tcp("abort");
        happen(&mut f.end, "listen");
        happen(&mut f.end, "SYN 0");
        assert_eq!(["w-max", "avoiding", "round-trip"].map(|name| f.end.field(name)), [0; 3]);
    }
}

/// Sections 4.2 and 5.8: time in which the application sends little does not count, and the window does not grow beyond the threshold.
#[test]
fn time_without_data_does_not_count() {
    let program = program();
    let mut f = Flow::new(&program, 536, 100);
    f.run(350, 300);
    f.lose = 1;
    f.run(3_000, 300);
    // The queued data is sent, then nothing, then one segment in a round trip.
    f.run(2_000, 0);
    let window = f.segments("cwnd");
    f.run(5_000, 0);
    assert_eq!(f.segments("cwnd"), window);
    f.write(1);
    assert_eq!(f.segments("cwnd"), 4.0);
    for _ in 0..50 {
        f.run(100, 0);
        f.write(1);
    }
    f.run(100, 0);
    let least = f.segments("ssthresh").min(50.0);
    assert!((least..=window).contains(&f.segments("cwnd")), "{window} {}", f.segments("cwnd"));
    f.run(1_000, 300);
    let counted = f.model.epoch.as_ref().unwrap().t;
    assert!(counted < 1.01, "{counted}");
    assert!(f.segments("cwnd") < window * 1.2);
    f.run(2_000, 0);
    f.run(7_000, 0);
    f.run(1_000, 300);
    let counted = f.model.epoch.as_ref().unwrap().t;
    assert!(counted < 0.7, "{counted}");
    // The threshold is two segments at least (section 4.6).
    f.run(3_000, 0);
    f.lose = 1;
    f.write(1);
    f.run(3_000, 0);
    assert_eq!(f.segments("ssthresh"), 2.0);
}

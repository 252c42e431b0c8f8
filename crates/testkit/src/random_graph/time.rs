// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements of random configurations that delay packets, or choose a port by rate or in turn.

use super::Maker;

impl Maker {
    /// Adds a shaper or delay on a pull path.
    pub(super) fn hold_up(&mut self) {
        let (from, n) = (self.take_pull(), 1 + self.below(9));
        let text = match self.below(4) {
            0 | 1 => format!("Shaper({})", 70 * n),
            2 => format!("BandwidthShaper({}Bps)", 3000 * n),
            _ => format!("DelayShaper(0.0{n})"),
        };
        let e = self.add(text, 1, 1, true);
        self.connect(from, e, 0);
        self.pull.push((e, 0));
    }
    /// Adds an element that pulls and pushes at certain times or rates.
    pub(super) fn unqueue(&mut self) {
        let (from, n) = (self.take_pull(), 1 + self.below(9));
        let text = match self.below(6) {
            0 | 1 => format!("DelayUnqueue(0.0{n})"),
            2 => format!("LinkUnqueue(0.0{n}, {}Bps)", 2000 * n),
            3 => format!("BandwidthRatedUnqueue({}Bps)", 4000 * n),
            4 => format!("TimedUnqueue(0.0{n}, {})", 10 - n),
            _ => format!("RatedUnqueue({}, BURST_SIZE {n})", 150 * n),
        };
        let e = self.add(text, 1, 1, true);
        self.connect(from, e, 0);
        self.push.push((e, 0));
    }
    /// Adds a switch or splitter.
    pub(super) fn share_out(&mut self) {
        let (from, n, turns) = (self.take_push(), 1 + self.below(9), 2 + self.below(2));
        let (text, outputs) = match self.below(10) {
            0 => (format!("RatedSplitter({})", 40 * n), 2),
            1 => (format!("BandwidthRatedSplitter({}Bps)", 1500 * n), 2),
            2 => (format!("Meter({})", 50 * n), 2),
            3 => (format!("BandwidthMeter({}Bps)", 2000 * n), 2),
            4 => ("RoundRobinSwitch".into(), turns),
            5 => (format!("HashSwitch({}, 2)", n), turns),
            6 => (format!("StrideSwitch({n}, 3, 2)"), 3),
            7 | 8 => (format!("RandomSample(0.{n})"), 2),
            _ => ("RandomSwitch".into(), turns),
        };
        let e = self.add(text, 1, outputs, false);
        self.connect(from, e, 0);
        for port in 0..outputs {
            self.open((e, port));
        }
    }
    /// Adds a scheduler of pull paths.
    pub(super) fn bring_together(&mut self) {
        let n = 1 + self.below(self.pull.len().min(3));
        let text = match self.below(3) {
            0 => "DRRSched".into(),
            _ => format!("StrideSched({})", ["3", "3, 1", "2, 5, 1"][n - 1]),
        };
        let e = self.add(text, n, 1, true);
        for input in 0..n {
            let from = self.take_pull();
            self.connect(from, e, input);
        }
        self.pull.push((e, 0));
    }
}

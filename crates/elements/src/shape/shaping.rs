// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate on a pull path, of packets or of bytes.

use super::gap::Gap;
use super::gate::Gate;
use super::rate::Unit;
use castanet_element::prelude::*;

/// What Shaper and BandwidthShaper do; they differ in what their rates count.
pub(super) struct Shaping {
    unit: Unit,
    gap: Gap,
    gate: Gate,
}

impl Shaping {
    pub(super) fn new(rate: u64, unit: Unit) -> Shaping {
        Shaping { unit, gap: Gap::new(rate), gate: Gate::default() }
    }
    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        self.gate.initialise(cx);
    }

    #[inline]
    pub(super) fn pull(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        // All single pulls of one turn fall into the same moment.
        let now = cx.core().clock.peek();
        let mut left = max;
        while left > 0 {
            let allowed = self.gap.allowed(now);
            if allowed == 0 {
                return self.gate.close_until(self.gap.next(), cx);
            }
            // How many bytes a packet has shows only when it is there.
            let n = match self.unit {
                Unit::Packets => usize::try_from(allowed).unwrap_or(usize::MAX).min(left),
                Unit::Bytes => 1,
            };
            let before = into.len();
            cx.pull(0, n, into);
            let got = into.as_slice().get(before..).unwrap_or_default();
            self.gap.went(match self.unit {
                Unit::Packets => got.len() as u64,
                Unit::Bytes => got.iter().map(|p| p.len() as u64).sum(),
            });
            left -= got.len().min(left);
            if got.len() < n {
                return self.gate.found_empty(cx);
            }
        }
    }

    #[inline]
    pub(super) fn pull_one(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.core().clock.peek();
        if self.gap.allowed(now) == 0 {
            self.gate.close_until(self.gap.next(), cx);
            return None;
        }
        let p = cx.pull_one(0);
        match &p {
            Some(p) => self.gap.went(self.unit.cost(p)),
            None => self.gate.found_empty(cx),
        }
        p
    }

    pub(super) fn woken(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.gate.woken(cx);
        Turn::Sleep
    }
    pub(super) fn expired(&mut self, cx: &mut Cx<'_>) {
        self.gate.open(cx);
    }
    pub(super) fn set_rate(&mut self, rate: u64, cx: &mut Cx<'_>) {
        self.gap.set_rate(rate);
        self.reopen(cx);
    }
    pub(super) fn reset(&mut self, cx: &mut Cx<'_>) {
        self.gap.reset();
        self.reopen(cx);
    }
    /// Goes on where another one is (hot swap); the first pull finds out whether it has to wait.
    pub(super) fn go_on_from(&mut self, old: &Shaping, cx: &mut Cx<'_>) {
        self.gap.go_on_from(&old.gap);
        self.reopen(cx);
    }
    fn reopen(&mut self, cx: &mut Cx<'_>) {
        cx.clear_timer(0);
        self.gate.open(cx);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of Shaper and BandwidthShaper: a rate on a pull path.

use super::gap::Gap;
use super::gate::Gate;
use super::rate::{RateArgs, Unit};
use castanet_element::prelude::*;

/// Keeps a rate on a pull path: packets that may not go yet stay upstream.
pub struct Shaping<A> {
    args: A,
    gap: Gap,
    gate: Gate,
}

impl<A: RateArgs> Shaping<A> {
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
            // The length of a packet is known only after the pull.
            let n =
                if A::Unit::PACKETS { usize::try_from(allowed).unwrap_or(usize::MAX).min(left) } else { 1 };
            let before = into.len();
            cx.pull(0, n, into);
            let got = into.as_slice().get(before..).unwrap_or_default();
            self.gap.went(A::Unit::cost_of_all(got));
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
            Some(p) => self.gap.went(A::Unit::cost(p)),
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
    fn reopen(&mut self, cx: &mut Cx<'_>) {
        cx.clear_timer(0);
        self.gate.open(cx);
    }
}

#[handlers]
impl<A: RateArgs> Shaping<A> {
    /// Forgets the packets that went, so that the next packet may go at once.
    #[write]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.gap.reset();
        self.reopen(cx);
    }
}

impl<A: RateArgs> Lifecycle for Shaping<A> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), String> {
        self.gate.initialise(cx);
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.gap.set_rate(self.args.rate());
        self.reopen(cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), String> {
        self.gap.go_on_from(&old.gap);
        // The first pull finds out whether it has to wait.
        self.reopen(cx);
        Ok(())
    }
}

impl<A: RateArgs> Engine for Shaping<A> {
    type Args = A;
    fn build(args: A, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Shaping { gap: Gap::new(args.rate()), gate: Gate::default(), args })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

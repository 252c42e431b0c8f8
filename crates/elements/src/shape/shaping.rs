// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of Shaper and BandwidthShaper: limits the rate on a pull path.

use super::gap::Gap;
use super::gate::Gate;
use super::rate::{RateArgs, Unit};
use castanet_element::prelude::*;

/// Limits the rate on a pull path. Packets that may not pass yet stay upstream.
#[derive(Counts)]
pub struct Shaping<A> {
    args: A,
    gap: Gap,
    gate: Gate,
    /// Whether output 1 is connected. With output 1, one of the two outputs can give a packet whenever there are
    /// packets upstream. So no task that pulls may sleep while there are packets upstream.
    has_rest: bool,
}

impl<A: RateArgs> Shaping<A> {
    /// Pulls packets for output 1, whose rate is not limited. Output 1 gives packets only when output 0 would give
    /// none.
    #[cold]
    fn pull_rest(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        let now = cx.peek();
        if self.gap.allowed(now) > 0 {
            return;
        }
        let before = into.len();
        cx.pull(0, max, into);
        if into.len().saturating_sub(before) < max {
            self.gate.found_empty(cx);
        }
    }
    #[cold]
    fn pull_one_rest(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.peek();
        if self.gap.allowed(now) > 0 {
            return None;
        }
        let p = cx.pull_one(0);
        if p.is_none() {
            self.gate.found_empty(cx);
        }
        p
    }
    /// Closes the gate until output 0 may give the next packet. If output 1 is connected, the gate stays open, because
    /// output 1 gives the packets that output 0 may not give yet.
    #[inline]
    fn wait(&mut self, cx: &mut Cx<'_>) {
        if !self.has_rest {
            self.gate.close_until(self.gap.next(), cx);
        }
    }

    #[inline]
    fn pull_shaped(&mut self, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        // Use one time for all packets, because single pulls in one turn also see the same time.
        let now = cx.peek();
        let mut left = max;
        while left > 0 {
            let allowed = self.gap.allowed(now);
            if allowed == 0 {
                return self.wait(cx);
            }
            // The length of a packet is known only after the pull, so pull single packets if the unit is bytes.
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
    fn pull_one_shaped(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.peek();
        if self.gap.allowed(now) == 0 {
            self.wait(cx);
            return None;
        }
        let p = cx.pull_one(0);
        match &p {
            Some(p) => self.gap.went(A::Unit::cost(p)),
            None => self.gate.found_empty(cx),
        }
        p
    }

    fn reopen(&mut self, cx: &mut Cx<'_>) {
        cx.clear_timer(0);
        self.gate.open(cx);
    }
}

impl<A: RateArgs> Element for Shaping<A> {
    #[inline]
    fn pull(&mut self, port: usize, max: usize, into: &mut Batch, cx: &mut Cx<'_>) {
        if port == 0 { self.pull_shaped(max, into, cx) } else { self.pull_rest(max, into, cx) }
    }
    #[inline]
    fn pull_one(&mut self, port: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        if port == 0 { self.pull_one_shaped(cx) } else { self.pull_one_rest(cx) }
    }
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.gate.woken(cx);
        Turn::Sleep
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        self.gate.open(cx);
    }
}

#[handlers]
impl<A: RateArgs> Shaping<A> {
    /// Restarts the rate limit as if no packet had passed, so that the next packet may pass immediately.
    #[write]
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.gap.reset();
        self.reopen(cx);
    }
}

impl<A: RateArgs> Lifecycle for Shaping<A> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.gate.initialise(cx);
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.gap.set_rate(self.args.rate());
        self.reopen(cx);
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.gap.go_on_from(&old.gap);
        // Open the gate. The first pull finds out whether it must wait.
        self.reopen(cx);
        Ok(())
    }
}

impl<A: RateArgs> Engine for Shaping<A> {
    type Args = A;
    fn build(args: A, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        Ok(Shaping { gap: Gap::new(args.rate()), gate: Gate::default(), has_rest: cx.outputs > 1, args })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

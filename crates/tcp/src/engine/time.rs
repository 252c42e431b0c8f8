// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time. As in 4.4BSD, connections get a slow timeout every half second and a fast one every fifth of a second; but only
//! those that wait for one.

use super::Engine;
use super::settle::is_busy;
use crate::protocol::{Ptr, Tcb, tcp_interface};

const SLOW: i64 = 500_000_000;
const FAST: i64 = 200_000_000;

impl Engine {
    /// When time must next be let pass, in nanoseconds. None if no connection waits for it.
    pub fn next_timeout(&self) -> Option<i64> {
        let next = |waiting: bool, passed: i64, every: i64| {
            waiting.then(|| passed.div_euclid(every).saturating_add(1).saturating_mul(every))
        };
        let slow = next(!self.ticking.is_empty(), self.passed, SLOW);
        slow.into_iter().chain(next(!self.delaying.is_empty(), self.passed_fast, FAST)).min()
    }

    /// Sets the time of a call. Where no connection waits for timeouts, those before the call are none of its business.
    pub(super) fn set_time(&mut self, now: i64) {
        self.host.now.set(now);
        if self.delaying.is_empty() {
            self.passed_fast = now;
        }
        if self.ticking.is_empty() {
            self.pass_slow(now);
        }
    }

    /// Lets time pass. A connection gets one timeout at a time, however late the call is.
    pub fn pass_time(&mut self, now: i64) {
        self.host.now.set(now);
        let passed = std::mem::replace(&mut self.passed_fast, now);
        if passed.div_euclid(FAST) != now.div_euclid(FAST) {
            self.fast();
        }
        self.pass_slow(now);
    }
    fn pass_slow(&mut self, now: i64) {
        let passed = std::mem::replace(&mut self.passed, now);
        let ticks = now.div_euclid(SLOW).saturating_sub(passed.div_euclid(SLOW));
        if ticks > 0 {
            self.ticks = self.ticks.saturating_add(ticks.unsigned_abs());
            self.slow();
        }
    }

    fn fast(&mut self) {
        for tcb in std::mem::take(&mut self.delaying) {
            if self.host.with(tcb, |c| std::mem::take(&mut c.delays)) != Some(true) {
                continue;
            }
            self.wake(tcb);
            self.call(&mut [], |cx, this| tcp_interface::fast_timeout(cx, this, tcb));
            self.settle(tcb);
        }
    }

    fn slow(&mut self) {
        for tcb in std::mem::take(&mut self.ticking) {
            let Some(true) = self.host.with(tcb, |c| std::mem::take(&mut c.ticks)) else { continue };
            self.skip(tcb, 1);
            self.call(&mut [], |cx, this| tcp_interface::slow_timeout(cx, this, tcb));
            self.host.with(tcb, |c| c.stirred |= std::mem::take(&mut c.starved));
            self.settle(tcb);
        }
    }

    /// Prepares a connection for a call: it may have left timeouts out because it did not wait for them.
    pub(super) fn wake(&mut self, tcb: Ptr<Tcb>) {
        if !is_busy(self.tcb(tcb)) {
            self.skip(tcb, 0);
        }
    }
    /// Moves the timestamp clock of a connection over the slow timeouts that it has left out, but for the last `but` ones.
    fn skip(&mut self, tcb: Ptr<Tcb>, but: u64) {
        let ticks = self.ticks;
        let left_out = self.host.with(tcb, |c| {
            let left_out = ticks.saturating_sub(c.seen).saturating_sub(but);
            c.seen = ticks;
            left_out
        });
        let clock = &self.tcb(tcb).clock;
        clock.set(clock.get().wrapping_add(left_out.unwrap_or(0) as u32));
    }
}

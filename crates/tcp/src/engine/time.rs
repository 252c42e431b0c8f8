// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time. As in 4.4BSD, connections get a slow timeout every half second and a fast one every fifth of a second; but only
//! those that wait for one.

use super::Engine;
use super::settle::is_busy;
use crate::protocol::{Ptr, Tcb, tcp_interface};

pub(super) const SLOW: i64 = 500_000_000;
pub(super) const FAST: i64 = 200_000_000;

impl Engine {
    /// When time must next be let pass, in nanoseconds. None if no connection waits for it.
    pub fn next_timeout(&self) -> Option<i64> {
        let slow = (!self.ticking.is_empty()).then_some(self.slow_due);
        let fast = (!self.delaying.is_empty()).then_some(self.fast_due);
        slow.into_iter().chain(fast).min()
    }

    /// Sets the time of a call. Where no connection waits for timeouts, those before the call are none of its business.
    pub(super) fn set_time(&mut self, now: i64) {
        self.host.set_now(now);
        if now >= self.fast_due && self.delaying.is_empty() {
            self.fast_due = after(now, FAST);
        }
        if now >= self.slow_due && self.ticking.is_empty() {
            self.pass_slow(now);
        }
    }

    /// Lets time pass. A connection gets one timeout at a time, however late the call is.
    pub fn pass_time(&mut self, now: i64) {
        self.host.set_now(now);
        if now >= self.fast_due {
            self.fast_due = after(now, FAST);
            self.fast();
        }
        if now >= self.slow_due {
            self.pass_slow(now);
        }
    }
    fn pass_slow(&mut self, now: i64) {
        let due = std::mem::replace(&mut self.slow_due, after(now, SLOW));
        self.host.set_last_tick(self.slow_due.saturating_sub(SLOW));
        let ticks = self.slow_due.saturating_sub(due).div_euclid(SLOW);
        self.ticks = self.ticks.saturating_add(ticks.unsigned_abs());
        self.slow();
    }

    fn fast(&mut self) {
        for tcb in std::mem::take(&mut self.delaying) {
            let delays = self.connections.get(tcb).map(|c| std::mem::take(&mut c.delays));
            if delays != Some(true) {
                continue;
            }
            self.wake(tcb);
            self.call(tcb, |cx, this| tcp_interface::fast_timeout(cx, this, tcb));
            self.settle(tcb);
        }
    }

    fn slow(&mut self) {
        for tcb in std::mem::take(&mut self.ticking) {
            let ticks = self.connections.get(tcb).map(|c| std::mem::take(&mut c.ticks));
            if ticks != Some(true) {
                continue;
            }
            self.skip(tcb, 1);
            self.call(tcb, |cx, this| tcp_interface::slow_timeout(cx, this, tcb));
            if let Some(c) = self.connections.get(tcb) {
                c.stirred |= std::mem::take(&mut c.starved);
            }
            self.settle(tcb);
        }
        self.counts.unanswered.add(self.host.unanswered.take());
    }

    /// Prepares a connection for a call: it may have left timeouts out because it did not wait for them.
    pub(super) fn wake(&mut self, tcb: Ptr<Tcb>) {
        let late = self.connections.peek(tcb).is_some_and(|c| c.seen != self.ticks);
        if late && !is_busy(self.tcb(tcb)) {
            self.skip(tcb, 0);
        }
    }
    /// Moves the timestamp clock of a connection over the slow timeouts that it has left out, but for the last `but` ones.
    fn skip(&mut self, tcb: Ptr<Tcb>, but: u64) {
        let Some(c) = self.connections.get(tcb) else { return };
        let left_out = self.ticks.saturating_sub(c.seen).saturating_sub(but);
        c.seen = self.ticks;
        let clock = &self.tcb(tcb).clock;
        clock.set(clock.get().wrapping_add(left_out as u32));
    }
}

/// The first multiple of an interval after a time.
fn after(now: i64, interval: i64) -> i64 {
    now.div_euclid(interval).saturating_add(1).saturating_mul(interval)
}

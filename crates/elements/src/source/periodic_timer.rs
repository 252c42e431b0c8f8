// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timer of a source that sends one packet every INTERVAL.

use castanet_element::prelude::*;

/// Timer 0 of a source that sends one packet every INTERVAL. All times are in nanoseconds.
#[derive(Default)]
pub(crate) struct PeriodicTimer {
    /// The time for which the timer is set; `None` while it is not set.
    next: Option<i64>,
}

impl PeriodicTimer {
    /// Sets the timer to expire one interval from now, unless it is set already.
    pub(crate) fn start(&mut self, interval: i64, cx: &mut Cx<'_>) {
        if self.next.is_none() {
            let now = cx.now();
            self.set(now.saturating_add(interval), cx);
        }
    }
    /// Called when the timer expires. Returns the time at which the timer was due, or `None` if it was not set.
    pub(crate) fn expired(&mut self) -> Option<i64> {
        self.next.take()
    }
    /// Sets the timer for the packet that follows one that was due at `due`.
    pub(crate) fn set_after(&mut self, due: i64, interval: i64, cx: &mut Cx<'_>) {
        // Count the interval from the time at which the last packet was due, so that delays do not add up. After a
        // long delay, at most one of the missed packets is sent late.
        let now = cx.peek();
        self.set(due.saturating_add(interval).max(now), cx);
    }
    /// If the timer of the old source is set, sets this timer for the same time (hot swap).
    pub(crate) fn go_on_from(&mut self, old: &PeriodicTimer, cx: &mut Cx<'_>) {
        if let Some(next) = old.next {
            self.set(next, cx);
        }
    }
    fn set(&mut self, at: i64, cx: &mut Cx<'_>) {
        self.next = Some(at);
        cx.set_timer(0, at);
    }
}

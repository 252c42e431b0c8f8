// SPDX-License-Identifier: MIT OR Apache-2.0
//! From pull to push at a rate, of packets or of bytes.

use crate::shape::rate::{Burst, Unit};
use crate::source::Pace;
use castanet_element::prelude::*;

/// What RatedUnqueue and BandwidthRatedUnqueue do; they differ in what their rates count.
pub(super) struct Rated {
    unit: Unit,
    burst: Burst,
    pace: Pace,
    calls: Count,
    active: bool,
    upstream: Signal,
    batch: Batch,
}

impl Rated {
    pub(super) fn new(rate: u64, unit: Unit, burst: Burst) -> Rated {
        Rated {
            unit,
            burst,
            pace: Pace::new(burst.bucket(rate, unit)),
            calls: Count::default(),
            active: true,
            upstream: Signal::always(),
            batch: Batch::new(),
        }
    }

    pub(super) fn initialise(&mut self, cx: &mut InitCx<'_>) {
        self.upstream = cx.upstream(0);
    }

    pub(super) fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.calls.add(1);
        if !self.active {
            return Turn::Sleep;
        }
        let at = match self.pace.ready(cx.now()) {
            Ok(at) => at,
            Err(timer) => {
                if let Some(t) = timer {
                    cx.set_timer(0, t);
                }
                return Turn::Sleep;
            }
        };
        cx.pull(0, 1, &mut self.batch);
        let Some(p) = self.batch.as_slice().first() else {
            return if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep };
        };
        self.pace.paid(self.unit.cost(p), at);
        cx.forward(0, &mut self.batch);
        Turn::Again
    }

    /// Goes on at another rate.
    pub(super) fn set_rate(&mut self, rate: u64, cx: &mut Cx<'_>) {
        self.pace.change(self.burst.bucket(rate, self.unit), cx.now());
        cx.schedule();
    }

    /// Goes on where another one is (hot swap).
    pub(super) fn go_on_from(&mut self, old: &mut Rated, cx: &mut Cx<'_>) {
        self.calls.take(&mut old.calls);
        self.pace.go_on_from(&mut old.pace, cx.now());
        cx.schedule();
    }

    /// Answers `calls` and `active`.
    pub(super) fn read(&self, handler: &str) -> String {
        if handler == "calls" { self.calls.show() } else { self.active.show() }
    }

    /// Sets `active`.
    pub(super) fn write(&mut self, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.active = cx.with_args(|a| bool::parse(value.trim(), a))?;
        cx.schedule();
        Ok(())
    }
}

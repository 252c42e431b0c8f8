// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine of RatedUnqueue and BandwidthRatedUnqueue: pulls packets and pushes them at a limited rate.

use crate::shape::rate::{Burst, BurstArgs, Unit};
use crate::source::Pace;
use castanet_element::prelude::*;

/// The engine of RatedUnqueue and BandwidthRatedUnqueue. `A` is the type of the class's arguments.
#[derive(Counts)]
pub struct Rated<A> {
    args: A,
    burst: Burst,
    pace: Pace,
    /// Turns of the task.
    #[count(unit = "turns", hidden)]
    turns: Count,
    /// Turns in which the rate did not allow a packet yet.
    #[count(unit = "turns", hidden)]
    empty: Count,
    /// Packets pushed.
    #[count(unit = "packets", hidden)]
    pushes: Count,
    /// Turns in which the rate allowed a packet, but there was none upstream.
    #[count(unit = "turns", hidden)]
    failed: Count,
    active: bool,
    upstream: Signal,
    batch: Batch,
}

impl<A: BurstArgs> Element for Rated<A> {
    fn task(&mut self, cx: &mut Cx<'_>) -> Turn {
        self.turns.add(1);
        if !self.active {
            return Turn::Sleep;
        }
        let at = match self.pace.ready(cx.now()) {
            Ok(at) => at,
            Err(timer) => {
                self.empty.add(1);
                if let Some(t) = timer {
                    cx.set_timer(0, t);
                }
                return Turn::Sleep;
            }
        };
        cx.pull(0, 1, &mut self.batch);
        let Some(p) = self.batch.as_slice().first() else {
            self.failed.add(1);
            return if cx.is_on(&self.upstream) { Turn::Again } else { Turn::Sleep };
        };
        self.pace.paid(A::Unit::cost(p), at);
        self.pushes.add(1);
        cx.forward(0, &mut self.batch);
        Turn::Again
    }
    fn timer(&mut self, _: u16, cx: &mut Cx<'_>) {
        cx.schedule();
    }
}

#[handlers]
impl<A: BurstArgs> Rated<A> {
    /// Four counts, one on each line: turns of the task, turns in which the rate did not allow a packet yet, packets
    /// pushed, and pulls that found no packet.
    #[read]
    fn calls(&self) -> Table {
        let [turns, empty] = [self.turns, self.empty].map(Count::get);
        let [pushes, failed] = [self.pushes, self.failed].map(Count::get);
        Table(format!(
            "{turns} calls to run_task()\n{empty} empty runs\n{pushes} pushes\n{failed} failed pulls\n"
        ))
    }
    /// Whether the task pulls packets.
    #[read]
    fn active(&self) -> bool {
        self.active
    }
    #[write]
    fn set_active(&mut self, active: bool, cx: &mut Cx<'_>) {
        self.active = active;
        cx.schedule();
    }
}

impl<A: BurstArgs> Lifecycle for Rated<A> {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        self.upstream = cx.upstream(0);
        Ok(())
    }
    fn changed(&mut self, _: &str, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.pace.change(self.burst.bucket::<A::Unit>(self.args.rate()), cx.now());
        cx.schedule();
        Ok(())
    }
    fn take_state(&mut self, old: &mut Self, cx: &mut Cx<'_>) -> Result<(), ElementError> {
        self.pace.go_on_from(&mut old.pace, cx.now());
        cx.schedule();
        Ok(())
    }
}

impl<A: BurstArgs> Engine for Rated<A> {
    type Args = A;
    fn build(args: A, _: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        let burst = args.burst();
        let pace = Pace::new(burst.bucket::<A::Unit>(args.rate()));
        let (upstream, batch) = (Signal::always(), Batch::new());
        let [turns, empty, pushes, failed] = Default::default();
        Ok(Rated { args, burst, pace, turns, empty, pushes, failed, active: true, upstream, batch })
    }
    fn args(&mut self) -> &mut A {
        &mut self.args
    }
}

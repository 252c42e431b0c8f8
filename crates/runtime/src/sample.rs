// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured rounds of the run loop, and the handler that shows their result ([`crate::profile`]).

use crate::nodes::Nodes;
use crate::profile::{Meter, Timed, monotonic};
use crate::shared::Shared;
use crate::wrapping::{unwrap, wrap};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

impl Nodes {
    /// Called before a round of the run loop if the router is profiled. Begins to measure, if this round is one of the
    /// sample. Returns whether it is.
    pub(crate) fn begin_sample(&mut self, worker: u32) -> bool {
        if !self.sampler.is_due() {
            return false;
        }
        let Some(slot) = self.shared.meters.0.get(worker as usize) else { return false };
        let elements = self.places.len();
        let meter = slot.get_or_init(|| Arc::new(Meter::new(elements, monotonic))).clone();
        // Calls of locked elements are measured where they are made ([`Nodes::visit`]).
        for node in &mut self.nodes {
            node.each_instance(|element, place| wrap(place, Timed { meter: meter.clone(), element }));
        }
        meter.begin();
        self.sampler.meter = Some(meter);
        true
    }

    /// Ends a measured round.
    pub(crate) fn end_sample(&mut self) {
        let Some(meter) = self.sampler.meter.take() else { return };
        // Nothing runs but the run loop, whose time ends here.
        meter.turn_to_run_loop();
        for node in &mut self.nodes {
            node.each_instance(|_, place| unwrap::<Timed>(place));
        }
    }
}

impl Shared {
    /// Begins a new profile, or ends the profile.
    pub(crate) fn set_profiling(&self, on: bool) {
        if on {
            for meter in self.meters.0.iter().filter_map(OnceLock::get) {
                meter.stale.store(true, Ordering::Relaxed);
            }
        }
        self.session.profiling.store(on, Ordering::Relaxed);
    }

    /// Returns the value of the global handler `profile`.
    pub(crate) fn profile(&self) -> String {
        let mut out = String::new();
        for (worker, meter) in self.meters.0.iter().enumerate() {
            for (element, time, packets) in meter.get().into_iter().flat_map(|m| m.values()) {
                let name = element.map_or("-", |e| self.graph.name(e));
                let class = element.and_then(|e| self.graph.element(e)).map_or("-", |e| e.class.as_str());
                let _ = writeln!(out, "{worker}\t{name}\t{class}\t{time}\t{packets}");
            }
        }
        out
    }
}

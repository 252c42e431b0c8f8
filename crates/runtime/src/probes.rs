// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wraps the elements of a worker while clients observe packets ([`crate::observe`]).

use crate::disabled::idle_action;
use crate::node::{Body, InstanceMut};
use crate::nodes::Nodes;
use crate::observe::probe::Probe;
use crate::observe::trace::{Event, Site};
use crate::observed::{Observed, has_pulled_source};
use crate::shared::Shared;
use crate::wrapping::{unwrap, wrap};
use castanet_element::Instance;
use castanet_element::run_loop::Core;
use castanet_packet::Packet;
use castanet_spec::Reason;
use castanet_typed::Typed;
use std::collections::HashMap;
use std::sync::Arc;

impl Shared {
    /// Records, for traces, that the run loop drops packets that element `from` has emitted.
    #[cold]
    pub(crate) fn note_drop(&self, core: &mut Core, from: u32, reason: Reason, packets: &[Packet]) {
        for p in packets.iter().filter(|p| p.mark() != 0) {
            let site = Site { element: Arc::from(core.name(from)), worker: core.worker() };
            let now = core.clock().peek();
            self.session.observers.tracer.record(p.mark(), &site, None, Event::Dropped(reason), None, now);
        }
    }
}

impl Nodes {
    /// Whether the wrappers are those that the traces and taps need now.
    #[inline(always)]
    pub(crate) fn observes(&self, generation: u32) -> bool {
        self.observed.generation == generation
    }

    /// Puts wrappers around the elements of this worker, or takes them off if nobody observes packets any more.
    #[cold]
    pub(crate) fn observe(&mut self, core: &mut Core) {
        self.end_observing(core);
        let shared = self.shared.clone();
        let observers = &shared.session.observers;
        let generation = observers.generation();
        if generation == 0 {
            return;
        }
        let mut taps: HashMap<u32, Vec<_>> = HashMap::new();
        for tap in observers.taps() {
            // A hot swap may have removed the element of the tap. A later one may bring it back.
            for (e, side, port) in tap.point.places(&shared.graph).unwrap_or_default() {
                taps.entry(e as u32).or_default().push((side, port, tap.clone()));
            }
        }
        let traces = observers.tracer.traces().into();
        self.observed = Observed { generation, pulls_new: has_pulled_source(&shared), traces, taps };
        self.each_place(core, |observed, element, place| {
            if let Some(probe) = observed.probe(&shared, element) {
                wrap(place, probe);
            }
        });
        observers.count_wrapped(1);
    }

    /// Takes the wrappers off.
    pub(crate) fn end_observing(&mut self, core: &mut Core) {
        if self.observed.generation == 0 {
            return;
        }
        self.each_place(core, |_, _, place| unwrap::<Probe>(place));
        self.observed = Observed::default();
        self.shared.session.observers.count_wrapped(-1);
    }

    /// Calls `f` with each element that this worker runs alone, and with each locked element whose home it is.
    fn each_place(&mut self, core: &mut Core, mut f: impl FnMut(&Observed, u32, InstanceMut<'_>)) {
        let observed = std::mem::take(&mut self.observed);
        let mut locked = Vec::new();
        for node in &mut self.nodes {
            node.each_instance(|element, place| f(&observed, element, place));
            if let Body::Locked(lock, _) = &node.body
                && lock.home == core.worker() as usize
            {
                locked.push(lock.element);
            }
        }
        for element in locked {
            // This fails if the element has panicked or is running. Nothing runs between two rounds, so the element has
            // panicked, and needs no wrapper.
            let _ = self.with_instance(core, element, |instance, _| {
                let nothing = Instance::Action(idle_action().into_inner());
                *instance = match std::mem::replace(instance, nothing) {
                    Instance::Element(e) => {
                        let mut place = Typed::new(e);
                        f(&observed, element, InstanceMut::Element(&mut place));
                        Instance::Element(place.into_inner())
                    }
                    Instance::Action(a) => {
                        let mut place = Typed::new(a);
                        f(&observed, element, InstanceMut::Action(&mut place));
                        Instance::Action(place.into_inner())
                    }
                };
            });
        }
        self.observed = observed;
    }

    /// Takes the wrapper off an element that is about to be replaced. The next round wraps all elements again.
    pub(crate) fn end_observing_of(&mut self, element: u32) {
        if let Some(place) = self.instance_mut(element) {
            unwrap::<Probe>(place);
        }
        if self.observed.generation != 0 {
            // This differs from the current generation, so that the next round wraps all elements again.
            self.observed.generation = u32::MAX;
        }
    }
}

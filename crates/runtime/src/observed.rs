// SPDX-License-Identifier: MIT OR Apache-2.0
//! The traces and taps that apply to one worker.

use crate::observe::probe::{Place, Probe};
use crate::observe::tap::{Side, Tap};
use crate::observe::trace::Trace;
use crate::shared::Shared;
use castanet_graph::PortKind;
use castanet_spec::LedgerRole;
use std::collections::HashMap;
use std::sync::Arc;

/// The traces and taps that apply to one worker.
#[derive(Default)]
pub(crate) struct Observed {
    /// The generation of traces and taps for which the elements are wrapped. 0 if they are not.
    pub generation: u32,
    /// Whether any source of the router is pulled from.
    pub pulls_new: bool,
    pub traces: Arc<[Arc<Trace>]>,
    /// The taps by element, at ports where packets can be seen.
    pub taps: HashMap<u32, Vec<(Side, usize, Arc<Tap>)>>,
}

/// Whether packets that are pulled may be new to the router: a source has a pull output.
pub(crate) fn has_pulled_source(shared: &Shared) -> bool {
    let graph = &shared.graph;
    (0..graph.len()).any(|e| {
        let enters = graph.spec(e).is_none_or(|s| s.ledger_role.contains(LedgerRole::ENTERS));
        enters && (0..graph.outputs(e)).any(|o| graph.output_kind(e, o) == PortKind::Pull)
    })
}

impl Observed {
    /// The probe of an element. None if nothing there is observed.
    pub(crate) fn probe(&self, shared: &Shared, element: u32) -> Option<Probe> {
        if self.generation == 0 {
            return None;
        }
        let observers = &shared.session.observers;
        let taps = self.taps.get(&element).cloned().unwrap_or_default();
        if taps.is_empty() && self.traces.is_empty() {
            return None;
        }
        let e = element as usize;
        let pulls = (0..shared.graph.inputs(e)).any(|i| shared.graph.input_kind(e, i) == PortKind::Pull);
        let place = Place {
            spec: shared.spec(element),
            element: Arc::from(shared.graph.name(e)),
            workers: shared.inboxes.len(),
            pulls_new: pulls && self.pulls_new,
            traces: self.traces.clone(),
            taps,
        };
        Some(Probe::new(observers.clone(), place))
    }
}

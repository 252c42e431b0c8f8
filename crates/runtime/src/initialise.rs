// SPDX-License-Identifier: MIT OR Apache-2.0
//! Initialises elements that were built and linked. Elements find their notifiers, open their files and devices, and
//! have their tasks scheduled.

use crate::assembly::Assembly;
use crate::build_state::BuildState;
use crate::errors::explain;
use castanet_element::build::Wiring;
use castanet_element::run_loop::{self, Internals as _};
use castanet_element::{ConfigError, Gauge, Note};
use castanet_graph::Graph;
use castanet_lang::Diagnostic;
use castanet_spec::Capability;
use std::collections::{HashMap, HashSet};

/// The flow-based router context that elements use during initialisation.
pub(crate) struct Context<'a> {
    pub graph: &'a Graph,
    pub notes: &'a HashMap<(u32, Capability), u32>,
    pub gauges: &'a HashMap<u32, Gauge>,
}

impl Context<'_> {
    fn numbers(&self, elements: Vec<usize>, c: Capability) -> Vec<u32> {
        elements.iter().filter_map(|&e| self.notes.get(&(e as u32, c)).copied()).collect()
    }
}

impl Wiring for Context<'_> {
    fn note(&self, element: u32, capability: Capability) -> Option<Note> {
        self.notes.get(&(element, capability)).map(|&n| Note::new(n))
    }
    fn upstream(&self, element: u32, input: usize, capability: Capability) -> (Vec<u32>, bool) {
        let (found, complete) = self.graph.nearest_upstream_complete(element as usize, input, capability);
        (self.numbers(found, capability), !complete)
    }
    fn downstream(&self, element: u32, output: usize, capability: Capability) -> (Vec<u32>, bool) {
        let found = self.graph.nearest_downstream(element as usize, Some(output), capability);
        (self.numbers(found, capability), false)
    }
    fn gauge(&self, element: u32) -> Option<Gauge> {
        self.gauges.get(&element).cloned()
    }
    fn storages_upstream(&self, element: u32, input: usize) -> Vec<u32> {
        let found = self.graph.nearest_upstream(element as usize, Some(input), Capability::Storage);
        found.into_iter().map(|e| e as u32).collect()
    }
    fn storages_downstream(&self, element: u32, output: usize) -> Vec<u32> {
        let found = self.graph.nearest_downstream(element as usize, Some(output), Capability::Storage);
        found.into_iter().map(|e| e as u32).collect()
    }
}

/// Initialises all elements, in order, and schedules their tasks. Elements in `inherited` do not open their resource,
/// because they will take it over from the previous router.
pub(crate) fn initialise(
    assembly: &mut Assembly,
    inherited: &HashSet<u32>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let shared = assembly.shared.clone();
    let BuildState { notes, notes_of, gauges, .. } = &shared.build_state;
    let context = Context { graph: &shared.graph, notes: notes_of, gauges };
    let mut listeners: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
    for e in 0..shared.graph.len() as u32 {
        for worker in &mut assembly.workers {
            let w = worker.core.worker();
            let (mut scheduled, mut listens) = (false, Vec::new());
            let inherits = inherited.contains(&e);
            let done = worker.nodes.with(&mut worker.core, e, |element, cx| {
                let done;
                (done, scheduled, listens) =
                    run_loop::initialise(cx.core(), e, &context, inherits, |cx| element.initialise(cx));
                done
            });
            for n in listens {
                listeners.entry(n).or_default().push((w, e));
            }
            let Some(done) = done else { continue };
            let error: Option<ConfigError> = match done {
                Ok(Ok(())) => None,
                Ok(Err(e)) => Some(e.into()),
                Err(panicked) => Some(panicked.to_string().into()),
            };
            if let Some(error) = error {
                diagnostics.extend(explain(&shared.graph, e as usize, "initializing", error));
            }
            if scheduled && shared.has_task(e) && shared.placement.task_worker(e as usize) == Some(w as usize)
            {
                if let Some(t) = shared.names.tickets(e as usize) {
                    worker.nodes.tasks.set_tickets(e, t);
                }
                worker.nodes.tasks.add(e);
            }
        }
    }
    for (n, mut who) in listeners {
        who.dedup();
        notes.listen(n as usize, who);
    }
}

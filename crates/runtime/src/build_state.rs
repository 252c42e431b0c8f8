// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters with which elements were built. Live reconfiguration builds new elements from these parameters, and
//! changes some of the parameters.

use castanet_element::build::Shared as Replicas;
use castanet_element::notify::Notes;
use castanet_element::{Gauge, Seed};
use castanet_graph::Graph;
use castanet_graph::batch::batch_limits;
use castanet_spec::{Capability, Effects};
use parking_lot::{Mutex, RwLock};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};

/// The states that replicas share, by element and type. The references are weak, so a state is freed with the last
/// replica that uses it.
type Reused = HashMap<(u32, TypeId), Weak<dyn Any + Send + Sync>>;

/// The parameters with which elements were built, and data that live reconfiguration changes.
pub(crate) struct BuildState {
    pub seed: Seed,
    pub batch: usize,
    pub notes: Notes,
    /// The number of each notifier, by element and capability (EmptyNotifier or FullNotifier).
    pub notes_of: HashMap<(u32, Capability), u32>,
    pub gauges: HashMap<u32, Gauge>,
    /// For each element, the maximum number of packets that its task may move at once.
    pub limits: Box<[AtomicU32]>,
    effects: Mutex<Vec<Effects>>,
    replicas: Mutex<Reused>,
    /// The current configuration string of each element that has been reconfigured. The graph still has the original
    /// strings.
    configs: RwLock<HashMap<u32, String>>,
}

fn elements(graph: &Graph) -> impl Iterator<Item = u32> {
    0..graph.len() as u32
}

fn has(graph: &Graph, element: u32, capability: Capability) -> bool {
    graph.spec(element as usize).is_some_and(|s| s.has(capability))
}

/// Gives a number to each notifier, by element and capability.
fn number_notes(graph: &Graph) -> HashMap<(u32, Capability), u32> {
    let notifiers = [Capability::EmptyNotifier, Capability::FullNotifier];
    let each = elements(graph).flat_map(|e| notifiers.map(|c| (e, c)));
    each.filter(|&(e, c)| has(graph, e, c)).zip(0..).collect()
}

fn weak(replicas: &Replicas) -> Reused {
    replicas.iter().map(|(&key, state)| (key, std::sync::Arc::downgrade(state))).collect()
}

impl BuildState {
    /// Makes the build state. `effects` are the effects of all elements, and `replicas` the states that replicas share.
    pub fn new(
        graph: &Graph,
        tasks: &[usize],
        (seed, batch): (Seed, usize),
        effects: Vec<Effects>,
        replicas: &Replicas,
    ) -> BuildState {
        let notes_of = number_notes(graph);
        let is_storage = |e: &u32| has(graph, *e, Capability::Storage);
        let state = BuildState {
            seed,
            batch,
            notes: Notes::new(notes_of.len()),
            notes_of,
            gauges: elements(graph).filter(is_storage).map(|e| (e, Gauge::default())).collect(),
            limits: elements(graph).map(|_| AtomicU32::new(batch as u32)).collect(),
            effects: Mutex::default(),
            replicas: Mutex::new(weak(replicas)),
            configs: RwLock::default(),
        };
        state.set_limits(graph, tasks, &effects);
        BuildState { effects: Mutex::new(effects), ..state }
    }
    /// Sets how many packets each task may move at once.
    fn set_limits(&self, graph: &Graph, tasks: &[usize], effects: &[Effects]) {
        for (task, why) in batch_limits(graph, &|e| effects.get(e).copied().unwrap_or_default(), tasks) {
            if let Some(limit) = self.limits.get(task) {
                limit.store(if why.is_some() { 1 } else { self.batch as u32 }, Ordering::Relaxed);
            }
        }
    }
    /// Records the effects that an element has after its reconfiguration, and updates the limits of the tasks.
    pub fn set_effects(&self, graph: &Graph, tasks: &[usize], element: u32, new: Effects) {
        let mut effects = self.effects.lock();
        let Some(x) = effects.get_mut(element as usize).filter(|x| **x != new) else { return };
        *x = new;
        self.set_limits(graph, tasks, &effects);
    }
    pub fn effects_of(&self, element: u32) -> Effects {
        let effects = self.effects.lock();
        effects.get(element as usize).copied().unwrap_or_default()
    }
    /// Calls `f` with the states that replicas share. `f` may add states.
    pub fn with_replicas<R>(&self, f: impl FnOnce(&mut Replicas) -> R) -> R {
        let mut reused = self.replicas.lock();
        let mut replicas: Replicas = reused.iter().filter_map(|(&k, s)| Some((k, s.upgrade()?))).collect();
        let out = f(&mut replicas);
        *reused = weak(&replicas);
        out
    }
    /// The current configuration string of an element. None if the element has not been reconfigured.
    pub fn config(&self, element: u32) -> Option<String> {
        self.configs.read().get(&element).cloned()
    }
    /// The current configuration string of each element that has been reconfigured.
    pub fn configs(&self) -> HashMap<u32, String> {
        self.configs.read().clone()
    }
    pub fn set_config(&self, element: u32, text: &str) {
        let mut configs = self.configs.write();
        configs.insert(element, text.to_string());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live reconfiguration: a write to the handler `config` gives an element another configuration string while the router
//! runs.
//!
//! A second element is built from the new string and initialised. It takes over the state of the first element, as in a
//! hot swap, and then replaces it. If a step fails, the first element continues unchanged. Each worker does this with
//! its own replica.

use crate::initialise::Context;
use crate::node::{Body, InstanceMut};
use crate::nodes::Nodes;
use crate::prepare::{Site, build_one};
use crate::profile::Timed;
use crate::quanta::Quanta;
use crate::shared::Shared;
use crate::wrapping::unwrap;
use castanet_element::count::move_counts;
use castanet_element::run_loop::{self, Core, Internals as _};
use castanet_element::{
    Busy, CallError, ConfigError, Cx, HandlerError, Instance, Messages as _, Missing, Object,
};
use castanet_spec::arg::{ArgCx, with_value};
use castanet_spec::{Effects, Reconfigure};
use castanet_typed::Typed;

impl Shared {
    /// Whether an element can be reconfigured while the router runs.
    pub(crate) fn is_reconfigurable(&self, element: u32) -> bool {
        self.spec(element).is_some_and(|s| s.reconfigure != Reconfigure::Refused)
    }

    /// Whether the class of an element returns the current configuration string itself, in its handler `config`. Writes
    /// to other handlers of the element may change this string.
    pub(crate) fn shows_config(&self, element: u32) -> bool {
        self.spec(element).is_some_and(|s| s.config_follows) && self.declared(element, "config").is_some()
    }

    /// Updates the stored configuration string of an element after a write to one of its handlers. Does so only if the
    /// class declares that writes to the handlers of arguments change `config` (`config_follows`).
    pub(crate) fn follow(&self, core: &Core, element: u32, handler: &str, value: &str) {
        let (Some(spec), Some(info)) = (self.spec(element), self.info.get(element as usize)) else { return };
        if !spec.config_follows {
            return;
        }
        let original = || self.graph.config(element as usize).to_string();
        let before = self.build_state.config(element).unwrap_or_else(original);
        let cx = ArgCx { scope: info.scope(), names: &self.names, origin: core.origin() };
        if let Some(text) = with_value(&before, spec.args, cx, handler, value.trim()) {
            self.build_state.set_config(element, &text);
        }
    }

    /// Builds an element from another configuration string, for the worker that `core` belongs to.
    fn rebuild(&self, core: &Core, element: u32, text: &str) -> Result<Instance, CallError> {
        let e = element as usize;
        let def = self.graph.element(e).and_then(|x| self.classes.get(&x.class));
        let def = def.ok_or_else(|| Missing::Write(self.handler_name(Some(element), "config")))?;
        // The new configuration string has the rights of the client that wrote it.
        let mut names = (*self.names).clone();
        names.set_origin(core.origin());
        let workers = self.workers_of(element);
        let replica = workers.iter().position(|&w| w == core.worker() as usize).unwrap_or(0);
        let site = Site {
            graph: &self.graph,
            names: &names,
            seed: self.build_state.seed,
            replica: (replica, workers.len()),
        };
        let (mut driver, mut signals) = (self.driver, self.signals.clone());
        let (made, warnings) = self
            .build_state
            .with_replicas(|replicas| build_one(&site, e, &def, text, replicas, &mut driver, &mut signals));
        if replica == 0 {
            for w in warnings.0 {
                self.message(&format!("{}: warning: {}", self.graph.declaration(e), w.message));
            }
        }
        made.map_err(|ConfigError(errors)| {
            let lines: Vec<String> = errors.into_iter().map(|e| e.message).collect();
            HandlerError::Value(lines.join("\n")).into()
        })
    }
}

/// Moves the counts and the state of one element to another. After an error, moves them back.
fn hand(
    old: &mut (dyn Object + 'static),
    new: &mut (dyn Object + 'static),
    cx: &mut Cx<'_>,
) -> Result<(), CallError> {
    let mut give = |from: &mut (dyn Object + 'static), to: &mut (dyn Object + 'static)| {
        move_counts(from, to);
        to.take_state_from(from, cx).map_err(|e| HandlerError::from(e).into())
    };
    let moved = give(old, new);
    if moved.is_err() {
        // Ignore an error here, because the first error is the one to report.
        let _ = give(new, old);
    }
    moved
}

/// Initialises an element that will replace another one. Returns whether its task is scheduled from the start.
fn initialise(
    new: &mut Instance,
    element: u32,
    context: &Context<'_>,
    core: &mut Core,
) -> Result<bool, CallError> {
    let (done, scheduled, _) =
        run_loop::initialise(core, element, context, false, |cx| new.common().initialise(cx));
    done.map_err(HandlerError::from)?;
    Ok(scheduled)
}

impl Nodes {
    /// Returns a reference to the instance of an element. None if the element is not on this worker, is locked, or is
    /// running.
    pub(crate) fn instance_mut(&mut self, element: u32) -> Option<InstanceMut<'_>> {
        let &(n, member) = self.places.get(element as usize)?;
        match &mut self.nodes.get_mut(n as usize)?.body {
            Body::Element(e) | Body::Reaching(e, _) => Some(InstanceMut::Element(e)),
            Body::Chain(members) => Some(InstanceMut::Action(&mut members.get_mut(member as usize)?.action)),
            Body::Locked(..) | Body::Busy | Body::Meeting(_) => None,
        }
    }

    /// Replaces the replica of an element on this worker by one with another configuration string.
    pub(crate) fn reconfigure(&mut self, core: &mut Core, element: u32, text: &str) -> Result<(), CallError> {
        let shared = self.shared.clone();
        let name = shared.graph.name(element as usize);
        let text = text.trim();
        if self.is_busy(element) {
            return Err(Busy::Element(name.to_string()).into());
        }
        if self.is_disabled(element) {
            return Err(HandlerError::Failed(format!("element '{name}' has panicked and is disabled")).into());
        }
        let spec = shared.spec(element).ok_or_else(|| Missing::Write(format!("{name}.config")))?;
        self.paths.forget(element);
        let mut new = self.guard(core, element, |_, core| shared.rebuild(core, element, text))??;
        let effects = new.common_ref().effects(spec.effects);
        let gained = effects.difference(shared.build_state.effects_of(element));
        let calls = gained.contains(Effects::CALLS);
        if calls && matches!(new, Instance::Action(_)) && !self.is_locked(element) {
            let text = "this configuration calls handlers and the one before did not: write the whole configuration to 'hotconfig'";
            return Err(HandlerError::from(text).into());
        }
        let build_state = &shared.build_state;
        let context =
            Context { graph: &shared.graph, notes: &build_state.notes_of, gauges: &build_state.gauges };
        let keeps = spec.reconfigure == Reconfigure::Keeps;
        let scheduled = if self.is_locked(element) {
            self.with_instance(core, element, |old, cx| {
                let scheduled = initialise(&mut new, element, &context, cx.core())?;
                if keeps {
                    hand(old.common(), new.common(), cx)?;
                }
                *old = new;
                Ok::<bool, CallError>(scheduled)
            })??
        } else {
            let scheduled =
                self.guard(core, element, |_, core| initialise(&mut new, element, &context, core))??;
            // A profile may be measuring this round.
            if let Some(instance) = self.instance_mut(element) {
                unwrap::<Timed>(instance);
            }
            self.end_observing_of(element);
            if keeps {
                let moved = self.with(core, element, |old, cx| hand(old, new.common(), cx));
                moved.ok_or_else(|| Missing::Write(format!("{name}.config")))???;
            }
            // Drop the old element without cleanup. The new element now has its open resources and the state that
            // replicas share.
            match (self.instance_mut(element), new) {
                (Some(InstanceMut::Action(instance)), Instance::Action(new)) => *instance = Typed::new(new),
                (Some(InstanceMut::Element(instance)), Instance::Element(new)) => *instance = Typed::new(new),
                _ => {
                    return Err(
                        HandlerError::Failed(format!("'{name}' cannot be configured while it runs")).into()
                    );
                }
            }
            scheduled
        };
        if calls {
            self.let_reach(element);
        }
        if !effects.is_empty() {
            self.quanta = Quanta::default();
        }
        build_state.set_effects(&shared.graph, &shared.tasks, element, effects);
        build_state.set_config(element, text);
        if scheduled
            && shared.has_task(element)
            && shared.placement.task_worker(element as usize) == Some(core.worker() as usize)
        {
            core.schedule(element);
        }
        Ok(())
    }

    fn is_disabled(&self, element: u32) -> bool {
        let locked =
            self.lock_of(element).and_then(|l| l.state()).is_some_and(|state| state.disabled.is_some());
        locked || self.panicked.disabled.iter().any(|d| d.0 == element)
    }

    /// Gives an element access to other elements from now on.
    fn let_reach(&mut self, element: u32) {
        let Some(n) = self.node_of(element) else { return };
        for node in self.nodes.iter_mut().filter(|x| x.direct.is_some_and(|d| d.0 as usize == n)) {
            node.direct = None;
        }
        let Some(node) = self.nodes.get_mut(n) else { return };
        node.direct = None;
        node.body = match std::mem::replace(&mut node.body, Body::Busy) {
            Body::Element(e) => Body::reaching(e, node.count),
            other => other,
        };
    }
}
